"""Which sites bring a variable to the answer, in sentences. Each function: rows and their file -> findings.

A role is said of a single site; that sites move a variable together, and what the others do, is said of sets.
"""

from collections.abc import Callable
from functools import wraps

from ...records.rows import Row, Rows, only, select, values_of
from ..head_rows import relation_words
from ..set_rows import (
    FEWEST_ERRORS,
    NO_SITE,
    complement_of,
    control_words,
    is_complement,
    is_set,
    members,
    more_per_site,
    others_words,
    swaps,
    typical_words,
)
from ..wording import Finding, apart, counted, listed, percent, share


MOVES = 0.05  # share of pairs above which, at the near end of the interval, something moves a variable
NEARLY_ALL = 0.95
QUIET = 0.01  # share of flips without any intervention up to which a control needs no word
MOST = 3  # examples in one sentence

Findings = Callable[[Rows, str], list[Finding]]


def by_variable(of_one: Callable[[Rows, str, str], list[Finding]]) -> Findings:
    """What (rows of a variable, its name, their file) say, for one variable after the other."""

    @wraps(of_one)
    def of_all(rows: Rows, source: str) -> list[Finding]:
        names = values_of(rows, "variable")
        return [finding for name in names for finding in of_one(select(rows, variable=name), name, source)]

    return of_all


@by_variable
def movers(rows: Rows, name: str, source: str) -> list[Finding]:
    """By variable: single sites for which both kinds of evidence agree, else that there is none; then half-proven."""
    rows = sorted(rows, key=lambda row: -row["moved"]["value"])
    proven = select(rows, role=f"{name} mover")
    found = [_mover(row, name, source) for row in proven] or _no_mover(rows, name, source)
    half = [row for row in rows if row not in proven and row["moved"]["interval"][0] > MOVES]
    return found + _half_proven(half, name, source)


def _mover(row: Row, name: str, source: str) -> Finding:
    text = (
        f"{row['site']} is a {name} mover: swapped alone with what it puts out on a problem that differs in one "
        f"{name}, it moves that {name} in {share(row['moved'])} of pairs; and {_errors(row, name)}. The role is the "
        f"same for {row['agreeing']} of the {row['settings']} thresholds that were tried."
    )
    return Finding(percent(row["moved"]["value"], 1), text, source)


def _errors(row: Row, name: str) -> str:
    errors = row["errors"]
    if errors is None:
        return "no label is wrong if it is resampled"
    return f"of the labels that are wrong if it is resampled {share(errors)} are {typical_words(name)}"


def _half_proven(rows: Rows, name: str, source: str) -> list[Finding]:
    if not rows:
        return []
    each = listed(
        [f"{row['site']} in {share(row['moved'])} of pairs, but {_errors(row, name)}" for row in rows[:MOST]]
    )
    text = f"These move the {name}, too, while their errors are not, or not surely, those of a lost {name}: {each}."
    return [Finding(percent(rows[0]["moved"]["value"], 1), text, source)]


def _no_mover(rows: Rows, name: str, source: str) -> list[Finding]:
    most = rows[0]
    text = (
        f"No single site was found to move the {name} by both kinds of evidence. The one that comes "
        f"closest, {most['site']}, moves it in {share(most['moved'])} of pairs. Sets of sites may do so together."
    )
    return [Finding("no site", text, source)]


def readers(rows: Rows, source: str) -> list[Finding]:
    heads = [row for row in select(rows, role="reader") if row["weights_on"]]
    if not heads:
        return []
    best, name, figure = max((_looks_most(row) for row in heads), key=lambda found: found[2]["value"])
    low, high = figure["interval"]
    text = (
        f"{counted(len(heads), 'head')} that the model needs {'looks' if len(heads) == 1 else 'look'} at "
        f"{relation_words(name)}: {listed([row['site'] for row in heads])}. The most, {best['site']}, "
        f"puts {percent(figure['value'], 1)} of its weight there "
        f"(95 % interval {100 * low:.1f} to {100 * high:.1f} %, n = {figure['n']:,}; "
        f"a head without preference {percent(figure['uniform'], 1)})."
    )
    return [Finding(counted(len(heads), "head"), text, source)]


def _looks_most(row: Row) -> tuple[Row, str, dict]:
    """The relation that a head gives most weight to."""
    looks = row["weights_on"]
    name = max(looks, key=lambda name: looks[name]["value"])
    return row, name, looks[name]


@by_variable
def signatures(rows: Rows, name: str, source: str) -> list[Finding]:
    """How errors of the single sites look: the most and the least typical, of those with enough errors."""
    own = select(rows, scope={}, metric=f"{name}_errors", size=1)
    own = sorted((row for row in own if row["n"] >= FEWEST_ERRORS), key=lambda row: -row["value"])
    if len(own) < 2 or apart(own[0], own[-1]) != 1:
        return []
    most, least = own[0], own[-1]
    text = (
        f"Errors tell sites apart. Resampled alone, {most['site']} makes errors of which {share(most)} are "
        f"{typical_words(name)}; of those of {least['site']}, {share(least)}. n counts wrong labels; "
        f"{counted(len(own), 'site')} made at least {FEWEST_ERRORS}."
    )
    return [Finding(percent(most["value"], 1), text, source)]


@by_variable
def moved_together(rows: Rows, name: str, source: str) -> list[Finding]:
    """Sets that move a variable in more pairs than the best of their members alone."""
    flips, moved = swaps(rows, f"{name}_flip"), swaps(rows, f"{name}_moved")
    single = {site: row for site, row in flips.items() if row["size"] == 1 and "@" not in site}
    more = []
    for row in filter(is_set, flips.values()):
        best = max((single[site] for site in members(row["site"], list(single))), key=_value, default=None)
        if best is not None and apart(row, best) == 1 and row["interval"][0] <= NEARLY_ALL:  # no complete cut
            more.append((row, best))
    more.sort(key=lambda pair: -more_per_site(*pair))
    if not more:
        return []
    each = "; ".join(
        f"{row['site']} ({row['size']} sites) in {share(row)} of pairs, the best of them, {best['site']}, in "
        f"{share(best)}, and the set in {percent(moved[row['site']]['value'], 1)} if only the labels that show it "
        "count"
        for row, best in more[:MOST]
    )
    text = f"Together is not one at a time: swapped together, sites move the {name} more often. {each}."
    return [Finding(percent(more[0][0]["value"], 1), text, source)]


def _value(row: Row) -> float:
    return row["value"]


@by_variable
def ways_of_a_variable(rows: Rows, name: str, source: str) -> list[Finding]:
    """Whether a set is the only one that moves a variable: what all others move stands beside it.

    That both move it does not make two ways of them: sites that come after each other on one way both do.
    """
    found = []
    flips = swaps(rows, f"{name}_flip")
    pairs = [(row, flips[complement_of(site)]) for site, row in flips.items() if complement_of(site) in flips]
    both = [(own, rest) for own, rest in pairs if min(own["interval"][0], rest["interval"][0]) > MOVES]
    both.sort(key=lambda pair: -min(pair[0]["value"], pair[1]["value"]))
    both = _once(both, list(flips))
    if both:
        each = "; ".join(
            f"{own['site']} {_move(own)} it in {share(own)} of pairs, {others_words(own['site'])} in {share(rest)}"
            for own, rest in both[:MOST]
        )
        text = (
            f"None of these sets is the only one that moves the {name}: {each}. That does not make two ways of "
            "them: sites that come after each other on one way both move it. Swap the others with the set frozen "
            "to tell."
        )
        found.append(Finding(counted(len(both), "set"), text, source))
    only_way = [(own, rest) for own, rest in pairs if own["interval"][0] > NEARLY_ALL and rest["interval"][1] < MOVES]
    for own, rest in sorted(only_way, key=lambda pair: pair[0]["size"])[:1]:
        text = (
            f"The {name} passes through {own['site']} ({own['size']} sites): swapped together they move it in "
            f"{share(own)} of pairs, {others_words(own['site'])} in {share(rest)}."
        )
        found.append(Finding(percent(own["value"], 1), text, source))
    return found


def _once(pairs: list[tuple[Row, Row]], known: list[str]) -> list[tuple[Row, Row]]:
    """Each set and its complement once, also where the complement is a set with a name of its own."""
    single = [site for site in known if "*" not in site and "@" not in site and site != NO_SITE]
    found: dict[frozenset, tuple[Row, Row]] = {}
    for own, rest in pairs:
        sides = [frozenset(members(row["site"], single)) or row["site"] for row in (own, rest)]
        found.setdefault(frozenset(sides), (own, rest))
    return list(found.values())


def _move(row: Row) -> str:
    return "moves" if row["size"] == 1 else "move"


@by_variable
def feed_forward(rows: Rows, name: str, source: str) -> list[Finding]:
    """What the feed-forward sublayers move together: whether attention alone brings a variable to the answer."""
    flips = swaps(rows, f"{name}_flip")
    sets = [row for row in flips.values() if row["size"] > 1 and row["site"].endswith(".mlp")]
    if not sets:
        return []
    most = max(sets, key=_value)
    each = listed([f"{row['site']} {share(row)}" for row in sets])
    text = f"Feed-forward sublayers move the {name}, too, swapped together in so many pairs: {each}."
    return [Finding(percent(most["value"], 1), text, source)]


@by_variable
def where_it_sits(rows: Rows, name: str, source: str) -> list[Finding]:
    """The residual stream, swapped at the place of the variable and beside it."""
    flips = swaps(rows, f"{name}_flip")
    at: dict[str, list[Row]] = {}
    for site, row in flips.items():
        if ".residual@" in site:
            at.setdefault(site.split("@")[0], []).append(row)
    if not at:
        return []
    each = "; ".join(
        f"{place}, " + listed([f"at {row['site'].split('@')[1]} in {share(row)} of pairs" for row in own])
        for place, own in at.items()
    )
    most = max((row for own in at.values() for row in own), key=_value)
    text = f"Where the {name} is: swapping the residual stream moves it, {each}."
    return [Finding(percent(most["value"], 1), text, source)]


@by_variable
def controls(rows: Rows, name: str, source: str) -> list[Finding]:
    """Pairs without any intervention, and pairs whose digits change and the variable does not."""
    found = []
    untouched = swaps(rows, f"{name}_flip").get(NO_SITE)
    if untouched is not None and untouched["value"] > QUIET:  # a quiet one is in the table
        text = f"Read the {name} figures with care: without any intervention {share(untouched)} of pairs already flip."
        found.append(Finding(percent(untouched["value"], 1), text, source))
    return found + _own_place(rows, name, source) + _false_flips(rows, name, source)


def _own_place(rows: Rows, name: str, source: str) -> list[Finding]:
    kept = only(rows, scope={}, metric=f"{name}_kept_own", pairs="minimal", site=NO_SITE)
    if kept is None or kept["interval"][1] > 1 - QUIET:
        return []
    text = (
        f"A {name} flip also asks that the label at the {name}'s own place is right; without any intervention it is "
        f"in {share(kept)} of pairs, for both runs read the answer that is expected. So tables and figures also show "
        f"the labels that show the {name} by themselves, as {name} moved."
    )
    return [Finding(percent(kept["value"], 1), text, source)]


def _false_flips(rows: Rows, name: str, source: str) -> list[Finding]:
    false, moved = swaps(rows, f"{name}_false_flip", "control"), swaps(rows, f"{name}_moved")
    moving = [false[site] for site, row in moved.items() if site in false and row["interval"][0] > MOVES]
    moving = [row for row in moving if not is_complement(row["site"])]
    if not moving:
        return []
    worst = max(moving, key=_value)
    says = control_words(name)
    text = (
        f"On control pairs{f' ({says})' if says else ''}, of the {len(moving)} sites and sets that move the {name}, "
        f"{worst['site']} changes the label that would show it most often, in {share(worst)} of pairs"
    )
    if worst["interval"][0] > QUIET:
        text += f": not all that it moves is the {name}"
    elif worst["interval"][1] < MOVES:
        text += ": what they move is not just any change"
    return [Finding(percent(worst["value"], 1), f"{text}.", source)]


ATLAS_FINDINGS = {"atlas": (movers, readers), "signature": (signatures,)}
SWAP_FINDINGS = {"interchange": (moved_together, ways_of_a_variable, feed_forward, where_it_sits, controls)}
