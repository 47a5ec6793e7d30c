"""Whether the mathematics of position encodings came out as expected, in sentences."""

from ...records.rows import Rows
from ..wording import Finding, listed


def mathematics_holds(rows: Rows, source: str) -> list[Finding]:
    wrong = [row for row in rows if not row["as_expected"]]
    if wrong:
        each = listed([f"{row['statement']} ({row['subject']}: {row['value']:.3g})" for row in wrong])
        text = f"{len(wrong)} of {len(rows)} checks of the mathematics came out against expectation: {each}."
        return [Finding(f"{len(wrong)} of {len(rows)}", text, source)]
    text = (
        f"All {len(rows)} checks of the mathematics of position encodings came out as expected, "
        f"{sum(not row['expected'] for row in rows)} of them statements that were expected to fail and do."
    )
    return [Finding(f"{len(rows)} of {len(rows)}", text, source)]
