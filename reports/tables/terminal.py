"""Results as plain text, for standard output."""

from ...records.rows import Row, Rows, only, select
from ..head_rows import flip_of, number_drops, whole_drops
from ..wording import interval, percent


def head_ranking_text(results: dict[str, Rows]) -> str:
    """Heads by what they cost under zero ablation, with class and, where a variable was traced, what each moves."""
    shares = whole_drops(results["ablation"])
    drops = sorted(shares or number_drops(results["ablation"]), key=_by_cost)
    gradient = {r["head"]: r["value"] for r in select(results["gradient"], metric="gradient_importance")}
    atlas = {r["head"]: r for r in results.get("atlas", [])}
    is_share = bool(shares)
    scale, places = (100, 2) if is_share else (1, 4)
    head = f"{'head':20} {'drop':>9}  {'95 % interval':22}" + (f" {'class':10}" if is_share else "")
    head += f" {'p (Holm)':>9} {'gradient':>9}"
    if atlas:
        head += f"  {next(iter(atlas.values()))['variable'] + ' moved':>11}  role"
    lines = [head]
    for row in drops:
        low, high = row["interval"] or (float("nan"), float("nan"))
        span = f"{scale * low:.{places}f} to {scale * high:.{places}f}"
        line = f"{row['head']:20} {scale * row['value']:9.{places}f}  {span:22}"
        if is_share:
            line += f" {row['class'] if row['class_is_certain'] else row['class'] + '?':10}"
        line += f" {'-' if row['p_holm'] is None else format(row['p_holm'], '.2g'):>9} {gradient[row['head']]:9.3g}"
        if row["head"] in atlas:
            found = atlas[row["head"]]
            line += f"  {100 * flip_of(found)['value']:9.1f} %  {found['role']}"
        lines.append(line)
    return "\n".join([*lines, _intact_text(drops[0], is_share, len(drops))])


def _by_cost(row: Row) -> float:
    return -row["value"]


def _intact_text(row: Row, is_share: bool, heads: int) -> str:
    intact = row["intact"]["value"]
    figure = percent(intact) if is_share else f"{intact:.4f}"
    unit = "points" if is_share else row["metric"]
    text = f"{heads} heads, intact {figure}, n = {row['n']:,}; drops in {unit}, zero ablation, run by {row['runner']}"
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
