"""docs/coverage.md from the rows of `try_all.py`.

python tests/coverage/page.py build/coverage.jsonl
"""

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

import transformers
from checks import USES


PAGE = Path(__file__).parent.parent.parent / "docs" / "coverage.md"
INTRODUCTION = """# Every architecture, tried

`make coverage` builds a tiny random model of every model type in transformers {version}, from its config class alone,
and compares what headcount does with it: masks with value projections that are set to zero and with plain hooks;
ablation by the quickest runner with one pass per head, in three modes, for all heads and for a few; replacements
(mean, resample, a swap with another run) of one head in each class of layers with values that are recorded and put in
by plain hooks, or at torch's attention, without headcount's recorder; pruned models with masked ones. Maps are
counted, one for every head and call, and compared with what the model gives by `output_attentions=True` where it does.
Model types of a later release show up by themselves.

{types} model types (towers and parts count for themselves); {missing} could not be built or run tiny, {without} have
no attention heads. Of the other {left}:

"""
SHORT = {"right": "yes", "refused": "no", "partial": "some", "unverified": "?", "none": "-", "not run": "-"}


def verdict(row: dict, use: str) -> str:
    """The first word of a verdict; a use that was not reached counts as not run."""
    return str(row.get(use, "not run")).split(":")[0]


def counts(rows: list[dict], use: str) -> str:
    found = Counter(verdict(row, use) for row in rows)
    known = ("right", "unverified", "refused", "partial", "WRONG", "FAILED")
    return " | ".join(str(found[name]) for name in known)


def reasons(rows: list[dict], use: str) -> list[str]:
    """The sentences of what is refused, each with the models that get it."""
    found = defaultdict(list)
    for row in rows:
        text = str(row.get(use, ""))
        if text.startswith(("refused", "partial", "WRONG", "FAILED", "unverified")):
            sentence = text.partition(": ")[2].replace(row["class"], "the model")
            found[sentence.partition(";")[0].partition("(")[0].strip()].append(row["type"])
    order = sorted(found.items(), key=lambda item: -len(item[1]))
    return [
        f"- {sentence}: {len(types)} ({', '.join(types[:6])}{', ...' if len(types) > 6 else ''})"
        for sentence, types in order
    ]


def page(rows: list[dict]) -> str:
    built = [row for row in rows if "zoo" not in row]
    with_heads = [row for row in built if verdict(row, "heads") != "none"]
    lines = [
        *INTRODUCTION.format(
            version=transformers.__version__,
            types=len(rows),
            missing=len(rows) - len(built),
            without=len(built) - len(with_heads),
            left=len(with_heads),
        ).splitlines(),
        "| use | right | unverified | refused, with a sentence | some layers only, named | wrong | failed |",
        "|---|---|---|---|---|---|---|",
        *(f"| {use} | {counts(with_heads, use)} |" for use in ("heads", *USES)),
        "",
        "*Unverified*: the attention interface gives the heads, and nothing was found to compare them with.",
        "",
        "## What is refused, and why",
        "",
    ]
    for use in ("heads", *USES):
        found = reasons(with_heads, use)
        if found:
            lines += [f"### {use}", "", *found, ""]
    lines += ["## Not built", "", "By the first words of the error:", ""]
    errors = Counter(str(row["zoo"])[:70].strip() for row in rows if "zoo" in row)
    lines += [f"- `{error}`: {count}" for error, count in errors.most_common()]
    lines += ["", "## One by one", "", f"| model type | class | heads | {' | '.join(USES)} |"]
    lines += [f"|---|---|---|{'---|' * len(USES)}"]
    for row in sorted(built, key=lambda row: row["type"]):
        heads = verdict(row, "heads")
        shown = str(row["heads"]).partition(": ")[2] if heads == "right" else SHORT.get(heads, heads)
        cells = [SHORT.get(each := verdict(row, use), each) for use in USES]
        lines.append(f"| {row['type']} | `{row['class']}` | {shown} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page([json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]))
    print(f"wrote {PAGE}")
