"""`TASKS`: every task with its options, corpus, oracle, tokenizer and collator, by name."""

from collections.abc import Callable
from dataclasses import dataclass

from .addition import AdditionCorpus, add_by_oracle
from .addition_options import AdditionOptions
from .collators import AdditionCollator, SortednessCollator
from .sortedness import is_sorted
from .sortedness_corpus import SortednessCorpus, SortednessOptions
from .tokenization import addition_tokenizer, sortedness_tokenizer


@dataclass(frozen=True)
class Task:
    """One task. To add one: a corpus class with `splits`, `features`, `tables` and `tally`, and a line in `TASKS`."""

    options: type  # a data class with every choice, checked on construction
    corpus: type  # corpus(options) gives the splits as arrow tables
    oracle: Callable  # the exact answer
    tokenizer: Callable[..., object]
    collator: type
    metric: str  # the figure that a model of this task is judged by


TASKS: dict[str, Task] = {
    "addition": Task(
        AdditionOptions, AdditionCorpus, add_by_oracle, addition_tokenizer, AdditionCollator, "exact_match"
    ),
    "sortedness": Task(
        SortednessOptions, SortednessCorpus, is_sorted, sortedness_tokenizer, SortednessCollator, "accuracy"
    ),
}
