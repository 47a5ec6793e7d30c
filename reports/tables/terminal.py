"""Results as plain text, for standard output."""

from ...records.rows import Row, Rows, only, select, values_of
from ..head_rows import class_words, number_drops, whole_drops
from ..set_rows import by_site, complement_of, first_variable, is_complement, joint_drops, swaps, typical_words
from ..wording import interval, percent


def head_ranking_text(results: dict[str, Rows]) -> str:
    """Heads by what they cost alone under zero ablation, then sets that were ablated or swapped together."""
    shares = whole_drops(results["ablation"])
    drops = sorted(shares or number_drops(results["ablation"]), key=_by_cost)
    gradient = {r["head"]: r["value"] for r in select(results["gradient"], metric="gradient_importance")}
    atlas = by_site(results.get("atlas", []))
    is_share = bool(shares)
    scale, places = (100, 2) if is_share else (1, 4)
    head = f"{'head':20} {'drop':>9}  {'95 % interval':22}" + (f" {'class':17}" if is_share else "")
    head += f" {'gradient':>9}"
    if atlas:
        name = next(iter(atlas.values()))["variable"]
        head += f"  {name + ' moved':>11}  {typical_words(name):>22}  role"
    lines = [head]
    for row in drops:
        low, high = row["interval"] or (float("nan"), float("nan"))
        span = f"{scale * low:.{places}f} to {scale * high:.{places}f}"
        line = f"{row['head']:20} {scale * row['value']:9.{places}f}  {span:22}"
        if is_share:
            line += f" {class_words(row):17}"
        line += f" {gradient[row['head']]:9.3g}"
        if row["head"] in atlas:
            line += _role_text(atlas[row["head"]])
        lines.append(line)
    lines.append(_intact_text(drops[0], is_share, len(drops)))
    return "\n".join([*lines, *_sets_lines(results.get("sets", []), results.get("interchange", []))])


def _role_text(found: Row) -> str:
    errors = found["errors"]
    typical = "no errors" if errors is None else f"{100 * errors['value']:.0f} % of {errors['n']:,}"
    return f"  {100 * found['moved']['value']:9.1f} %  {typical:>22}  {found['role']}"


def _sets_lines(sets: Rows, interchange: Rows) -> list[str]:
    """What is left without each set, in every mode; beside it, what its swap moves. Complements are lines, too."""
    drops = joint_drops(sets)
    if not drops:
        return []
    modes = values_of(sets, "mode")
    name = first_variable(interchange) if interchange else ""
    moved = {word: swaps(select(interchange, variable=name), f"{name}_{word}") for word in ("flip", "moved")}
    moved = {word: found for word, found in moved.items() if found}
    names = [each for site in drops if not is_complement(site) for each in (site, complement_of(site))]
    width = max(map(len, names))
    lines = [f"{'set':{width}} {'sites':>5}" + "".join(f" {mode:>9}" for mode in modes)]
    lines[0] += "".join(f" {f'{name} {word}':>12}" for word in moved)
    for site in (each for each in names if each in drops):
        own = drops[site]
        line = f"{site:{width}} {next(iter(own.values()))['size']:5}"
        line += "".join(
            f" {100 * own[mode]['ablated']['value']:7.1f} %" if mode in own else " " * 10 for mode in modes
        )
        line += "".join(f" {100 * found[site]['value']:10.1f} %" for found in moved.values() if site in found)
        lines.append(line)
    note = f"share still right without the whole set, n = {sets[0]['n']:,}"
    if moved:
        pairs = next(iter(next(iter(moved.values())).values()))["n"]
        note += (
            f"; {name} moved: it is swapped on {pairs:,} minimal pairs; flip: and the label of the own place is right"
        )
    return ["", *lines, f"{note}; intervals are in the rows"]


def _by_cost(row: Row) -> float:
    return -row["value"]


def _intact_text(row: Row, is_share: bool, heads: int) -> str:
    intact = row["intact"]["value"]
    figure = percent(intact) if is_share else f"{intact:.4f}"
    unit = "points" if is_share else row["metric"]
    text = f"{heads} heads, intact {figure}, n = {row['n']:,}; drops in {unit}, one head at a time, zero ablation"
    text += f", run by {row['runner']}"
    return text + ("; '?': the interval reaches into another class" if is_share else "")


def pruning_text(rows: Rows, removed: list[str]) -> str:
    """What is gone, and the smaller models on test data."""
    harmless = only(rows, metric="harmless_one_at_a_time")
    lines = []
    if harmless is not None:
        lines.append(f"removed {len(removed)} of {harmless['n']} heads: {', '.join(removed) or 'none'}")
        lines.append(f"{harmless['value']} of {harmless['n']} heads cost less than a point one at a time")
    head = f"{'model':28} {'test':>9}  {'95 % interval':19} {'n':>6} {'parameters':>11} {'bytes':>10} {'speed':>7}"
    lines.append(head)
    for row in select(rows, split="test"):
        lines.append(
            f"{row['model']:28} {percent(row['value']):>9}  {interval(row):19} {row['n']:6,} "
            f"{row['parameters']:11,} {row['bytes']:10,} {row['relative_speed']:6.2f}x"
        )
    return "\n".join(lines)
