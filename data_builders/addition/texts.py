"""What is said about addition: dataset card, model card, report."""

from collections.abc import Mapping
from functools import partial

from ..card_figures import draw_counts
from ..tasks import DataCard, Texts
from .carry_groups import NINES
from .choices import PROBLEM_CLASSES


PURPOSES = {
    ("default", "train"): "training",
    ("default", "validation"): "choosing; uniform",
    ("default", "test"): "testing; uniform",
    ("default", "hard"): "testing: equal shares of every carry group, all-nines problems among them",
    ("pairs", "test"): "causal studies: exactly one carry differs within a pair",
    ("pairs", "ripple"): "the same, but the carry passes on through one or more columns that sum to nine",
    ("exhaustive", "exhaustive"): "every problem there is, training problems included",
}


def purpose(config: str, split: str) -> str:
    if config in PROBLEM_CLASSES:
        return f"testing at {split.removeprefix('test_')} digits; `{config}`: {PROBLEM_CLASSES[config]}"
    return PURPOSES[config, split]


def numbers(options: Mapping) -> str:
    """ "up to 3 digits", "1 to 20 digits"."""
    digits, fewest = options["digits"], options["min_digits"]
    return f"up to {digits} digits" if fewest is None else f"{fewest} to {digits} digits"


def summary(options: Mapping) -> str:
    order = "units first" if options["answer_order"] == "reversed" else "most significant digit first"
    return (
        f"A small transformer that adds two whole numbers of {numbers(options)}. It writes the sum digit by digit, "
        f"{order}; nothing but the weights does the arithmetic."
    )


def reads(options: Mapping) -> str:
    return (
        f"It knows whole numbers of {numbers(options)}. Anything else (signs, decimals, more than two operands, "
        "words) it cannot read."
    )


DATA = DataCard(
    summary="Addition problems with exact answers and the anatomy of their carries, for models that compute.",
    method="""\
- `test` and `validation` are drawn first, uniformly and without repetition; then `hard`, from every carry group in
  equal shares (at most one in three problems of a group, so that training still meets the group); then `pairs`;
  then `train` from what is left. No problem of `train` is in any of the others. Unless `split_by` is `ordered`, a+b
  and b+a are one problem: neither is in `train` if one of them is held out, and no split has both.
- A uniform draw is a seeded permutation of all problems, so that it never repeats one. Where a+b and b+a are one
  problem, every unordered pair is equally likely and a coin decides which operand comes first.
- Carry groups: a *chain* is one carry from the column that makes it through the columns of sum nine that pass it on.
  `chain_c`: the longest chain has c columns. `nines`: every column sums to nine and there is no carry at all, so that
  a single wrong carry would change every digit. The full chain (`chain_3` for three digits) is its counterpart: nines
  above units that make a carry. Problems of more than 32 digits have the groups 0, 1, 2, 4, ... and the full chain.
- With `min_digits` the uniform splits draw the number of digits of each operand; carry groups are drawn by width, and
  their operands may have leading zeros.
- The two problems of a pair differ in one column only, and there the digit sums are s and s + 10: the column's own
  answer digit stays and the carry out of it flips. A problem may be part of several pairs.""",
    limits="""\
- `exhaustive` contains the training problems by its nature: it shows what a model knows, not what it generalises to.
- A uniform test set has next to no long chains and about one all-nines problem in a thousand; a score on it says
  little about them. That is what `hard` is for.
- `carry_balanced` training data uses up most of the rare groups of small problems; the table above shows what is
  there.
- Numbers are 64-bit integers up to 18 digits, and decimal text beyond.""",
    columns={
        "": {
            "input": "the problem as text, most significant digit first",
            "target": "the sum as text, in the order of the option `answer_order`",
            "a, b, sum": "operands and sum (int64; text beyond 18 digits)",
            "digits": "columns of the problem: digits of the longer operand as written",
            "carries": "columns that a carry leaves",
            "longest_chain": "columns that the longest-lived carry leaves; 0 without carry",
            "group": "`nines` or `chain_c`, see above",
            "carry_into": "the carry into each answer digit, units first; the last one is the leading digit",
            "column_class": "kill, propagate or generate (the digits sum to at most 8, to 9, to more), units first",
        },
        "pairs": {
            "base_input, base_target": "the first problem as text",
            "source_input, source_target": "the second problem as text",
            "base_a, base_b, base_sum, source_a, source_b, source_sum": "their numbers",
            "digits": "columns of both problems",
            "column": "the column in which they differ; 0 is the units",
            "base_carry_out": "the carry out of that column in the base; it is the opposite in the source",
            "own_digit": "the answer digit of that column, the same in both",
            "ripple": "how many columns further left also send out a different carry",
        },
    },
    purpose=purpose,
    balance="group",
    balance_text="Rows by carry group:",
    balance_order=lambda group: (group != NINES, int(group.removeprefix("chain_")) if group != NINES else 0),
    draw=partial(draw_counts, facts={"longest_chain": "longest carry chain (columns)", "column": "changed column"}),
    figure="carry_chains.png",
    figure_text="Share of rows by the length of their longest carry chain",
)

TEXTS = Texts(
    title="Addition, digit by digit",
    short_title="Addition",
    description="add two numbers, digit by digit: 374+814 -> 1188",
    data=DATA,
    summary=summary,
    reads=reads,
    length="digits",
    place="digit of the answer",
    difference_note="+1 is the column being written, 0 the one to its right",
    facts={"longest_chain": "longest carry chain", "group": "carry group", "carry": "carry"},
    main_facts=("group",),
    splits={
        "test": "all numbers equally likely",
        "hard": "equal shares of the groups, as far as problems exist",
        "exhaustive": "every problem there is, training problems included",
    },
    kinds_text="; ".join(f"`{name}`: {says}" for name, says in PROBLEM_CLASSES.items()) + ".",
    answer_note=lambda options: "units first" if options.get("answer_order") == "reversed" else "",
)
