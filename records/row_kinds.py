"""What the fields of a row may hold, checked where rows are read: a file may have been cut, edited or made by others.

A field has one kind in all studies. One that is missing is found by whoever needs it: `ReadRow` says in which file.
"""

from collections.abc import Callable
from typing import Any

from ..configuration.rules import is_whole_number


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def is_real(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def is_estimate(value: Any) -> bool:
    """As records.intervals makes them: value, interval and n; of an estimate without a count, n is left out."""
    if not isinstance(value, dict) or not is_real(value.get("value")) or not is_whole_number(value.get("n", 0)):
        return False
    between = value.get("interval")
    return between is None or (isinstance(between, list) and len(between) == 2 and all(map(is_real, between)))


def is_figure_of_a_length(value: Any) -> bool:
    """An estimate, or one that was not measured."""
    return isinstance(value, dict) and ("value" not in value or is_estimate(value))


def list_of(accepts: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(accepts, value))


def dict_of(accepts: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(map(accepts, value.values()))


def is_figures(value: Any) -> bool:
    return list_of(lambda row: list_of(lambda cell: cell is None or is_real(cell))(row))(value)


def is_or_none(accepts: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or accepts(value)


TEXTS = (
    "answer answer_order by compared_with construction control direction edge encoding generated input label layer "
    "level looks method model name normalizer pairs quantity ranking reads recipe role run runner says scheme "
    "searched searched_under source stage statement subject target twin variant"
)
COUNTS = (
    "agreeing bytes directions disagree example examples finetune_steps frequency labels layers learned map_starts_at "
    "of parameters pool position random_sets rank resumed_at seed settings shift size steps tested_to"
)
NUMBERS = (
    "by_chance examples_per_second goal majority_class_rate p_holm p_value regret relative_speed tolerance "
    "training_seconds uniform"
)
FLAGS = "as_expected expected fine_tuned holds kept modes_disagree one_class_only right shuffled zero_pad"
ESTIMATES = "ablated circuit drop empty intact moved on_chosen_half random_best random_mean"
MAYBE_ESTIMATES = (
    "chance decided_beyond decided_within_training_range errors in_distribution margin violations_beyond "
    "violations_within_training_range"
)

# Field -> (whether a value fits, what is expected)
KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(TEXTS.split(), (is_text, "a text")),
    **dict.fromkeys(COUNTS.split(), (is_whole_number, "a whole number")),
    **dict.fromkeys(NUMBERS.split(), (is_real, "a number")),
    **dict.fromkeys(FLAGS.split(), (is_flag, "true or false")),
    **dict.fromkeys(ESTIMATES.split(), (is_estimate, "value, n and interval")),
    **dict.fromkeys(MAYBE_ESTIMATES.split(), (is_or_none(is_estimate), "value, n and interval, or null")),
    **dict.fromkeys(("p_holm", "p_value"), (is_or_none(is_real), "a number or null")),
    # With more than two classes, none of them is the positive one.
    **dict.fromkeys(("true_negative_rate", "true_positive_rate"), (is_or_none(is_real), "a number or null")),
    **dict.fromkeys(("map", "cosine", "table"), (is_figures, "rows of numbers")),
    **dict.fromkeys(
        ("keys", "queries", "built_in", "flags", "nodes", "edges", "lines", "kinds", "commands"),
        (list_of(is_text), "a list of texts"),
    ),
    **dict.fromkeys(("distance", "lengths", "seeds"), (list_of(is_whole_number), "a list of whole numbers")),
    "trained": (lambda value: list_of(is_whole_number)(value) and len(value) == 2, "[shortest, longest]"),
    "accuracy": (dict_of(is_figure_of_a_length), "figures by length"),
    "by_distance": (dict_of(is_real), "numbers by distance"),
    "drops": (dict_of(is_estimate), "drops by mode"),
    "weights_on": (dict_of(is_estimate), "weights by relation"),
    "variable": (is_or_none(is_text), "a name or null"),
    "class_is_certain": (is_or_none(is_flag), "true, false or null"),
    "difference": (lambda value: is_whole_number(value) or is_text(value), "a whole number or a name"),
    "data": (lambda value: isinstance(value, dict), "options of the data"),
    "fails_at": (dict_of(is_or_none(is_whole_number)), "lengths by seed"),
    "fails_with": (dict_of(is_or_none(is_real)), "numbers by seed"),
    "entropy_share": (is_or_none(is_real), "a number or null"),
    "heads": (list_of(lambda head: is_whole_number(head) or is_text(head)), "a list of heads"),
    "holds_to": (dict_of(is_or_none(is_whole_number)), "lengths by seed"),
    "in_distribution_by_seed": (dict_of(is_or_none(is_real)), "numbers by seed"),
    "jitter": (is_or_none(is_real), "a number or null"),
    "length": (is_or_none(is_whole_number), "a whole number or null"),
    "map_values": (list_of(lambda part: is_whole_number(part) or is_text(part)), "a list of values"),
    "not_measured": (is_or_none(is_text), "a text or null"),
    "one_class_from": (dict_of(is_or_none(is_whole_number)), "lengths by seed"),
    "pooling": (is_or_none(is_text), "a name or null"),
    "probability": (is_or_none(is_real), "a number or null"),
    "removed": (lambda value: is_whole_number(value) or list_of(is_text)(value), "a number of heads, or their names"),
    "scores": (list_of(is_or_none(is_real)), "a list of numbers"),
    "seconds": (lambda value: is_real(value) or dict_of(is_or_none(is_real))(value), "a number"),
    "trained_up_to": (is_or_none(is_whole_number), "a whole number or null"),
    "weights": (list_of(is_figures), "a map of numbers for every head"),
    "window": (is_or_none(is_whole_number), "a whole number or null"),
}


NUMBERED_HEADS = ("positions",)  # studies of one layer, whose heads have no other name


class ReadRow(dict[str, Any]):
    """A row from a file, which names the file if a field is asked for that it does not have."""

    def __init__(self, content: dict[str, Any], where: Any):
        super().__init__(content)
        self.where = where

    def __missing__(self, name: str) -> Any:
        raise ValueError(f"{self.where} has a row without {name!r}; expected rows as headcount writes them.")


def check_kinds(found: dict[str, Any], where: Any) -> None:
    """Raises unless every field that is known holds what it should."""
    for name, value in found.items():
        accepts, expected = KINDS.get(name, (None, ""))
        if accepts is not None and not accepts(value):
            shown = repr(value) if len(repr(value)) <= 100 else f"{repr(value)[:100]}..."
            raise ValueError(f"{where} has a row with {name}={shown}; expected {expected}.")
    if is_measured(found) and (found["value"] is None or found["interval"] is None):
        raise ValueError(
            f"{where} has a row of {found['metric']} without a value or an interval; expected rows as headcount "
            "writes them."
        )
    if is_whole_number(found.get("head")) and found["study"] not in NUMBERED_HEADS:
        raise ValueError(f"{where} has a row with head={found['head']!r}; expected the name of a head.")
    if found["study"] == "lengths" and not is_whole_number(found.get("length")):
        raise ValueError(f"{where} has a row with length={found.get('length')!r}; expected a whole number.")
    if found["study"] == "evaluation" and found.get("kind") is not None and found.get("length") is None:
        raise ValueError(f"{where} has a row of the class {found['kind']!r} without a length; expected one.")
    if "class_is_certain" in found and "class" not in found:
        raise ValueError(f"{where} has a row without 'class'; expected rows as headcount writes them.")


def is_measured(found: dict[str, Any]) -> bool:
    """Whether a row says how often a model is right, or what a head costs: there is no such row without a figure."""
    if found["study"] == "evaluation":
        return found["metric"] != "wrong_answer"
    return found["study"] == "ablation" and found["metric"].endswith("_drop")
