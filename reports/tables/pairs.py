"""What swaps of sites do to the answers of pairs of texts, as plain text for standard output."""

from ...records.rows import Row, Rows, only, values_of


EXPLAINED = (
    "difference: logit of the base's answer minus that of the source's, mean and 95 % interval; recovered: how far "
    "that goes from the run on the base (0) to the run on the source (100); flips: pairs on which the source's "
    "answer has the larger logit; none: nothing is swapped."
)


def pair_text(rows: Rows) -> str:
    """A line for every set of sites."""
    sites = values_of(rows, "site")
    width = max(len("sites"), *(len(site) for site in sites))
    lines = [
        f"pairs of texts; n = {rows[0]['n']:,}",
        f"  {'sites':{width}} {'size':>4}{'difference':>12}{'interval':>20}{'recovered':>11}{'flips':>8}",
    ]
    for site in sites:
        difference, recovered, flips = (
            only(rows, site=site, metric=metric) for metric in ("logit_difference", "recovered", "answer_flip")
        )
        if difference is None:
            continue
        lines.append(
            f"  {site:{width}} {difference['size']:>4}{difference['value']:>12.3f}{_interval(difference):>20}"
            f"{_percent(recovered):>11}{_percent(flips):>8}"
        )
    return "\n".join([*lines, EXPLAINED])


def _interval(row: Row) -> str:
    return "-" if row["interval"] is None else "{:.3f} to {:.3f}".format(*row["interval"])


def _percent(row: Row | None) -> str:
    return "-" if row is None or row["value"] is None else f"{100 * row['value'] + 0.0:.1f}"  # no "-0.0"
