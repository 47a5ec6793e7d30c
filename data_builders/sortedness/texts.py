"""What is said about sortedness: dataset card, model card, report."""

from collections.abc import Mapping

from ..card_figures import draw_violation_positions
from ..tasks import DataCard, Texts
from .sequences import KINDS


def purpose(config: str, split: str) -> str:
    if split in ("train", "validation"):
        return "training" if split == "train" else "choosing; drawn like the training rows"
    kind = "the mixture of kinds" if config == "default" else f"`{config}`: {KINDS[config]}"
    return f"testing at length {split.removeprefix('test_')}; {kind}"


def summary(options: Mapping) -> str:
    return (
        "A small transformer that tells whether a sequence of integers from 0 to 99 is sorted, in non-decreasing "
        "order."
    )


def reads(options: Mapping) -> str:
    return "Integers from 0 to 99, separated by blanks. Sequences of length 1, and other values, it was never shown."


DATA = DataCard(
    summary="Sequences of integers 0-99: half in non-decreasing order, half with a violation of known kind and place.",
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
    purpose=purpose,
    balance="kind",
    balance_text="Rows by kind (`sorted` is exactly half everywhere):",
    balance_order=lambda kind: list(KINDS).index(kind),
    draw=draw_violation_positions,
    figure="violation_positions.png",
    figure_text="Where the first violation is: share of the unsorted rows by tenth of the sequence",
    category="text-classification",
)

TEXTS = Texts(
    title="Is it sorted?",
    short_title="Sortedness",
    description="tell whether a list of integers 0-99 is in non-decreasing order",
    data=DATA,
    summary=summary,
    reads=reads,
    problems="sequences",
    kinds="unsorted rows are",
    kind_noun="negatives",
    facts={"kind": "kind of negative", "length": "length"},
    kinds_text="`shuffle` is a random order, `swap` has two different neighbours exchanged, `move` one element put "
    "elsewhere.",
    pipeline_tag="text-classification",
)
