"""What the dataset card of each task says."""

from collections.abc import Callable
from dataclasses import dataclass

from .choices import KINDS, PROBLEM_CLASSES


@dataclass(frozen=True)
class CardText:
    title: str
    summary: str
    task_categories: list[str]
    method: str
    balance_column: str
    balance_order: Callable
    balance_text: str
    figure: str
    figure_text: str
    limits: str
    columns: dict[str, dict[str, str]]  # config -> column -> meaning; "" stands for the configs without an entry
    purpose: Callable[[str, str], str]
    example_load: Callable[[dict], str]

    def columns_of(self, splits: dict) -> list[tuple[list[str], dict[str, str]]]:
        """(configs, their columns) for the configs that there are."""
        with_own = [([config], self.columns[config]) for config in splits if config in self.columns]
        others = [config for config in splits if config not in self.columns]
        return [*([(others, self.columns[""])] if others else []), *with_own]


ADDITION_PURPOSES = {
    ("default", "train"): "training",
    ("default", "validation"): "choosing; uniform",
    ("default", "test"): "testing; uniform",
    ("default", "hard"): "testing: equal shares of every carry group, all-nines problems among them",
    ("pairs", "test"): "causal studies: exactly one carry differs within a pair",
    ("pairs", "ripple"): "the same, but the carry passes on through one or more columns that sum to nine",
    ("exhaustive", "exhaustive"): "every problem there is, training problems included",
}


def _addition_purpose(config: str, split: str) -> str:
    if config in PROBLEM_CLASSES:
        return f"testing at {split.removeprefix('test_')} digits; `{config}`: {PROBLEM_CLASSES[config]}"
    return ADDITION_PURPOSES[config, split]


ADDITION = CardText(
    title="Addition, digit by digit",
    summary="Addition problems with exact answers and the anatomy of their carries, for models that compute.",
    task_categories=["text-generation"],
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
    balance_column="group",
    balance_order=lambda group: (group != "nines", int(group.removeprefix("chain_")) if group != "nines" else 0),
    balance_text="Rows by carry group:",
    figure="carry_chains.png",
    figure_text="Share of rows by the length of their longest carry chain",
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
    purpose=_addition_purpose,
    example_load=lambda splits: "\n".join(
        f'{split} = load_dataset(DIR, "{config}", split="{split}")'
        for config, sizes in splits.items()
        for split in list(sizes)[:2]
    ),
)


def _sortedness_purpose(config: str, split: str) -> str:
    if split in ("train", "validation"):
        return "training" if split == "train" else "choosing; drawn like the training rows"
    kind = "the mixture of kinds" if config == "default" else f"`{config}`: {KINDS[config]}"
    return f"testing at length {split.removeprefix('test_')}; {kind}"


SORTEDNESS = CardText(
    title="Is it sorted?",
    summary="Sequences of integers 0-99: half in non-decreasing order, half with a violation of known kind and place.",
    task_categories=["text-classification"],
    method="""\
- Every row starts as a sorted draw of values. Half of the rows, chosen without looking at the values, are then put
  out of order; so no statistic of the values tells the classes apart, and the classes are exactly balanced in every
  split and at every length.
- Kinds of unsorted rows: `shuffle`, a random order; `swap`, two different neighbours exchanged, every such place
  equally likely; `move`, one element put two or more places away, across a random rise. `swap` and `move` have
  exactly one violation. A shuffle that came out sorted was shuffled again.
- In training and validation a share of rows (`narrow_share`) draws its values from a random sub-range of 0-99, with
  a width log-uniform from 3 to 100: ties and steps of one, which rule long sequences, are then seen in short ones.
- Sequences of one value only cannot be put out of order, and kept among the sorted ones they would give the label
  away: they were drawn again in both classes. For the same reason there is no length 1; `move` starts at length 3.
- No training row has the multiset of values of a validation or test row, nor a validation row that of a test row.""",
    balance_column="kind",
    balance_order=lambda kind: list(KINDS).index(kind),
    balance_text="Rows by kind (`sorted` is exactly half everywhere):",
    figure="violation_positions.png",
    figure_text="Where the first violation is: share of the unsorted rows by tenth of the sequence",
    limits="""\
- Shuffled rows are easy: a model that only learned them can be at chance on `swap`. Report each kind by itself.
- The first violation of a shuffled row is almost always at the very start, see the figure.
- Training rows may repeat: sub-ranges of three values have few sequences.
- Half of the rows are sorted, so a model that always says the same has 50 %.""",
    columns={
        "": {
            "values": "the integers, 0-99",
            "length": "how many",
            "label": "`sorted` (1): no value is smaller than the one before; `unsorted` (0)",
            "kind": "sorted, shuffle, swap or move",
            "position": "the first place i with values[i] > values[i + 1], from 0; -1 if sorted",
            "violations": "how many such places there are",
        }
    },
    purpose=_sortedness_purpose,
    example_load=lambda splits: "\n".join(
        f'rows = load_dataset(DIR, "{config}", split="{list(sizes)[-1]}")' for config, sizes in splits.items()
    ),
)

CARDS = {"addition": ADDITION, "sortedness": SORTEDNESS}
