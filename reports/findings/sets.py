"""What sets of sites do together and how many are needed, in sentences; and what several seeds have in common.

Nothing is called redundant unless it was tested as a set, and what it leaves was tested, too.
"""

from collections.abc import Mapping

from ...records.rows import Row, Rows, select, values_of
from ..head_rows import modes_of, whole_drops
from ..set_rows import complement_of, joint_drops, members, more_per_site, others_words
from ..study import Part
from ..wording import Finding, apart, counted, listed, percent, points, share


MOST = 3  # examples in one sentence
MODE_WORDS = {"zero": "set to zero", "mean": "set to its mean", "resample": "taken from another example"}
ENOUGH_MOVED, ENOUGH_RIGHT = 0.95, 0.99  # shares that make a set large enough


def lost_together(heads: Part) -> list[Finding]:
    """Sets of heads none of which is critical alone, and that cost more together than the costliest of them."""
    drops = joint_drops(heads.get("sets"))
    mode = "mean" if "mean" in modes_of(heads.get("ablation")) else "zero"
    single = {row["head"]: row for row in whole_drops(heads.get("ablation"), mode)}
    found = []
    for name, own in drops.items():
        inside = members(name, list(single))
        if mode not in own or len(inside) < own[mode]["size"] or 2 * len(inside) > len(single):
            continue
        costliest = max((single[site] for site in inside), key=lambda row: row["value"])
        if costliest["class"] != "critical" and apart(own[mode], costliest) == 1:
            found.append((own[mode], costliest))
    if not found:
        return []
    found.sort(key=lambda pair: -more_per_site(*pair))
    each = "; ".join(
        f"{row['site']} ({row['size']} heads) leave {share(row['ablated'])} right, the costliest of them alone, "
        f"{one['head']}, {share(one['ablated'])}"
        for row, one in found[:MOST]
    )
    words = "every head set to its mean" if mode == "mean" else "every head set to zero"
    text = f"What costs little alone may cost much together ({words}): {each}."
    return [Finding(points(found[0][0]["value"]), text, heads.source("sets"))]


def redundant_sets(heads: Part) -> list[Finding]:
    """Sets without which, as a whole, less than a point is lost in every mode; and what happens without the rest."""
    found = []
    drops = joint_drops(heads.get("sets"))
    for name, own in drops.items():
        rest = drops.get(complement_of(name), {})
        if not rest or not all(row["class"] == "redundant" and row["class_is_certain"] for row in own.values()):
            continue
        words = listed([f"{share(row['ablated'])} {MODE_WORDS[mode]}" for mode, row in own.items()])
        others = listed([f"{percent(row['ablated']['value'], 1)} {MODE_WORDS[mode]}" for mode, row in rest.items()])
        size = next(iter(own.values()))["size"]
        text = (
            f"As a set, {name} ({size} sites) is redundant on this data: without all of it {words} are right; without "
            f"{others_words(name)} {others}."
        )
        found.append(Finding(f"{size} sites", text, heads.source("sets")))
    return found


def modes_disagree(heads: Part) -> list[Finding]:
    """How often zero, mean and resample differ by more than their intervals, where most, and why."""
    single = {mode: {row["head"]: row for row in whole_drops(heads.get("ablation"), mode)} for mode in MODE_WORDS}
    alone: dict[str, dict[str, Row]] = {}
    for mode, rows in single.items():
        for head, row in rows.items():
            alone.setdefault(head, {})[mode] = row
    joint = joint_drops(heads.get("sets"))
    groups = {word: found for word, found in (("head", alone), ("set", joint)) if found}
    differ = {
        word: {name: own for name, own in found.items() if len(own) > 1 and _disagree(own)}
        for word, found in groups.items()
    }
    every = {name: own for found in differ.values() for name, own in found.items()}
    if not every:
        return []
    counts = " and ".join(f"{len(differ[word])} of {counted(len(found), word)}" for word, found in groups.items())
    most = max(every, key=lambda name: _spread(every[name]))
    shares = listed([f"{share(row['ablated'])} {MODE_WORDS[mode]}" for mode, row in every[most].items()])
    text = (
        f"The ways of ablation do not say the same: for {counts} their intervals have nothing in common. Most for "
        f"{most}: without it are right {shares}. Zero and the mean are the same for every problem, so what they "
        "measure is the default that the model falls into, which suits some problems; another example's output says "
        "something definite and wrong."
    )
    name = "sets" if most in joint else "ablation"
    return [Finding(counts, text, heads.source(name))]


def _disagree(own: Mapping[str, Row]) -> bool:
    return any(row["modes_disagree"] for row in own.values())


def _spread(own: Mapping[str, Row]) -> float:
    values = [row["value"] for row in own.values()]
    return max(values) - min(values)


def sites_needed(rows: Rows, source: str) -> list[Finding]:
    """By search: the smallest set that did enough on the half that it was chosen on, tested on the other."""
    found = []
    for searched in values_of(rows, "searched"):
        own = select(rows, searched=searched)
        variable = own[0]["variable"]
        enough = ENOUGH_RIGHT if variable is None else ENOUGH_MOVED
        reached = [row for row in own if row["on_chosen_half"]["value"] >= enough]
        if not reached:
            continue
        row = min(reached, key=lambda row: (row["size"], -row["on_chosen_half"]["value"]))
        does = (
            "is enough for the right answer, every other head at its mean,"
            if variable is None
            else f"moves the {variable}"
        )
        which = f": {listed(row['heads'])}" if row["size"] <= 2 * MOST else ""
        text = (
            f"{searched.capitalize()}: the smallest set found that {does} in at least {percent(enough, 0)} of what it "
            f"was chosen on has {row['size']} of {row['pool']} sites ({row['method']}){which}. On the other half: "
            f"{share(row)}{_against_chance(row)}."
        )
        found.append(Finding(f"{row['size']} of {row['pool']}", text, source))
    return found


def _against_chance(row: Row) -> str:
    """What random sets of the same size reach; there is only one of all sites."""
    if row["size"] == row["pool"]:
        return "; no smaller set was enough"
    mean, best = row["random_mean"]["value"], row["random_best"]["value"]
    words = (
        f"; {row['random_sets']} random sets of that size: {percent(mean, 1)} on average, {percent(best, 1)} at best"
    )
    return words + (", which cannot be told from it" if best >= row["interval"][0] else "")


def roles_by_seed(parts: Mapping[str, Part]) -> list[Finding]:
    """On how many seeds a single site is a mover: seeds are the unit of a claim."""
    atlases = {seed: part for seed, part in parts.items() if part.get("atlas")}
    if len(atlases) < 2:
        return []
    found = []
    first = next(iter(atlases.values()))
    for name in values_of(first.get("atlas"), "variable"):
        movers = {
            seed: [row["site"] for row in select(part.get("atlas"), variable=name, role=f"{name} mover")]
            for seed, part in atlases.items()
        }
        holds = sum(bool(sites) for sites in movers.values())
        each = "; ".join(f"{seed}: {listed(sites) if sites else 'none'}" for seed, sites in movers.items())
        text = (
            f"A single site is a {name} mover on {holds} of {len(movers)} seeds. {each}. The number of a head within "
            "its layer means nothing across seeds."
        )
        found.append(Finding(f"{holds} of {len(movers)} seeds", text, first.source("atlas")))
    return found


TOGETHER = (lost_together, redundant_sets, modes_disagree)
SELECTION_FINDINGS = {"selection": (sites_needed,)}
