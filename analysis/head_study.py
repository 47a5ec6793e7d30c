"""The head study: every analysis of `headcount heads` by name, `fn(model, data, **options) -> rows`.

`data` is a `StudyData`. An analysis that builds on others takes their rows as options.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .ablation import MODES, row_lengths
from .carry import carry_atlas, interchange
from .examples import Examples
from .importance import agreement, gradient_importance, head_importance
from .maps import average_rows, map_rows
from .pruning import outcomes_of
from .specialization import specialization
from .subsets import MOST_HEADS, subset_rows
from .toggles import toggle_rows


Rows = list[dict]
SHOWN = 6


@dataclass(frozen=True)
class StudyData:
    """What a study looks at: examples, those of them whose maps are shown, and pairs that differ in one carry."""

    examples: Examples
    shown: Examples
    pairs: tuple[Examples, Examples] | None = None


def choose_shown(model, examples: Examples, count: int = SHOWN) -> Examples:
    """Examples worth a look: failures first, then one of every kind or carry chain, the longest chains first."""
    right = outcomes_of(model, examples)
    fact = examples.facts.get("longest_chain", examples.facts.get("kind"))
    chosen = np.flatnonzero(~right)[: count // 2].tolist()
    by_value = [np.flatnonzero(right & (fact == value)).tolist() for value in np.unique(fact)[::-1]]
    for number in range(count):
        chosen += [rows[number] for rows in by_value if number < len(rows)]
    return examples[np.array(chosen[:count])]


def study_ablation(model, data: StudyData, modes: tuple[str, ...] = tuple(MODES), progress=None) -> Rows:
    rows: Rows = []
    for mode in modes:
        rows += head_importance(model, data.examples, mode, progress=progress and progress(f"ablation, {mode}"))
    return rows


def study_gradient(model, data: StudyData, ablation: Rows, progress=None) -> Rows:
    gradient = gradient_importance(model, data.examples)
    return gradient + agreement([row for row in ablation if row["mode"] == "zero"], gradient)


def study_specialization(model, data: StudyData, progress=None) -> Rows:
    return specialization(model, data.examples, progress=progress and progress("specialization"))


def study_maps(model, data: StudyData, progress=None) -> Rows:
    return map_rows(model, data.shown) + average_rows(model, _of_one_length(data.examples))


def _of_one_length(examples: Examples) -> Examples:
    """The examples of the commonest length of input and answer."""
    lengths = row_lengths(examples.rows).numpy()
    _, length_of, counts = np.unique(lengths, axis=0, return_inverse=True, return_counts=True)
    return examples[np.flatnonzero(length_of.reshape(-1) == counts.argmax())]


def study_toggles(model, data: StudyData, progress=None) -> Rows:
    return toggle_rows(model, data.shown, progress=progress and progress("toggles"))


def study_interchange(model, data: StudyData, progress=None) -> Rows:
    if data.pairs is None:
        raise ValueError("interchange needs pairs that differ in one carry; expected addition data with pairs.")
    return interchange(model, *data.pairs, progress=progress and progress("interchange"))


def study_carry_atlas(
    model, data: StudyData, ablation: Rows, interchange: Rows, specialization: Rows, progress=None
) -> Rows:
    return carry_atlas(ablation, interchange, specialization)


def study_subsets(model, data: StudyData, ablation: Rows, gradient: Rows, rows_used: int = 200, progress=None) -> Rows:
    """Every subset of the heads of a small model, and how far each ranking is from the best."""
    own = [row for row in ablation if row["mode"] == "zero"]
    rankings = {
        "drop_one_at_a_time": {r["head"]: r["value"] for r in own if "class" in r},
        "loss_rise": {r["head"]: r["value"] for r in own if r["metric"] == "loss_rise"},
        "gradient": {r["head"]: r["value"] for r in gradient if "head" in r},
    }
    orders = {name: sorted(values, key=values.get) for name, values in rankings.items()}
    examples = data.examples[np.arange(min(rows_used, len(data.examples)))]
    return subset_rows(model, examples, orders, progress=progress and progress("subsets"))


ANALYSES: dict[str, Callable[..., Rows]] = {
    "ablation": study_ablation,
    "gradient": study_gradient,
    "specialization": study_specialization,
    "maps": study_maps,
    "toggles": study_toggles,
    "interchange": study_interchange,
    "carry_atlas": study_carry_atlas,
    "subsets": study_subsets,
}
NEEDS = {
    "gradient": ("ablation",),
    "carry_atlas": ("ablation", "interchange", "specialization"),
    "subsets": ("ablation", "gradient"),
}


def analyses_for(model, data: StudyData) -> list[str]:
    """The analyses that make sense: carries need pairs, all subsets need a small model."""
    left_out = set()
    if data.pairs is None:
        left_out |= {"interchange", "carry_atlas"}
    if len(model.list_heads()) > MOST_HEADS:
        left_out |= {"subsets"}
    return [name for name in ANALYSES if name not in left_out]
