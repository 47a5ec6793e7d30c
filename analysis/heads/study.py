"""The head study: every analysis of `headcount heads` by name, `fn(model, data, **options) -> rows`.

`data` is a `StudyData`. An analysis that builds on others takes their rows as options, as `NEEDS` says.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ...data_builders.examples import Examples, PairedExamples
from ...modeling.modeling_headcount import HeadcountPreTrainedModel
from ...records.rows import Rows, select
from ...trainers.evaluation import outcomes
from ..circuits.searches import searches
from ..circuits.signature import signature_rows
from ..circuits.swap import swap_rows, swap_sets
from ..interventions.batches import row_lengths
from ..interventions.plan import Progress
from ..interventions.sets import SiteSet, standard_sets, with_complements
from ..interventions.sites import sites
from .ablation import MODES, ablate_examples, ablate_sets, say_where_modes_disagree
from .atlas import atlas_rows
from .fourier import fourier_rows
from .importance import agreement, gradient_importance
from .maps import average_rows, map_rows
from .specialization import specialization
from .subsets import MOST_HEADS, subset_rows
from .toggles import toggle_rows


SHOWN = 6
GRADIENT_ROWS = 256  # of one backward pass

Bars = Callable[[str], Progress]  # title -> progress of one piece of work


@dataclass(frozen=True)
class StudyData:
    """What a study looks at: examples, those of them that are shown, and counterfactual pairs for each variable."""

    examples: Examples
    shown: Examples
    pairs: dict[str, dict[str, PairedExamples]] = field(default_factory=dict)  # variable -> kind -> pairs


def choose_shown(model: HeadcountPreTrainedModel, examples: Examples, count: int = SHOWN) -> Examples:
    """Examples worth a look: failures first, then one for each value of the task's first fact, the last values first.

    Of addition, these are the longest carry chains.
    """
    right = outcomes(model, examples)
    fact = next(iter(examples.facts.values()), np.zeros(len(examples)))
    chosen = np.flatnonzero(~right)[: count // 2].tolist()
    by_value = [np.flatnonzero(right & (fact == value)).tolist() for value in np.unique(fact)[::-1]]
    for number in range(count):
        chosen += [rows[number] for rows in by_value if number < len(rows)]
    return examples[np.array(chosen[:count])]


def study_ablation(
    model: HeadcountPreTrainedModel,
    data: StudyData,
    modes: tuple[str, ...] = tuple(MODES),
    progress: Bars | None = None,
) -> Rows:
    rows: Rows = []
    for mode in modes:
        bar = None if progress is None else progress(f"ablation, {mode}")
        rows += ablate_examples(model, data.examples, mode, progress=bar)
    return say_where_modes_disagree(rows)


def study_sets(
    model: HeadcountPreTrainedModel,
    data: StudyData,
    modes: tuple[str, ...] = tuple(MODES),
    progress: Bars | None = None,
) -> Rows:
    """Feed-forward sublayers alone, sets of heads and of sublayers, and what each leaves, all three ways."""
    sublayers = [SiteSet(str(site), (site,)) for site in sites(model) if site.kind == "mlp"]
    sets = [*sublayers, *with_complements(model, standard_sets(model))]
    return ablate_sets(model, data.examples, sets, modes, progress)


def study_gradient(
    model: HeadcountPreTrainedModel, data: StudyData, ablation: Rows, progress: Bars | None = None
) -> Rows:
    gradient = gradient_importance(model, data.examples.batches(GRADIENT_ROWS))
    return gradient + agreement(ablation, gradient)


def study_specialization(model: HeadcountPreTrainedModel, data: StudyData, progress: Bars | None = None) -> Rows:
    return specialization(model, data.examples, progress=progress and progress("specialization"))


def study_maps(model: HeadcountPreTrainedModel, data: StudyData, progress: Bars | None = None) -> Rows:
    return map_rows(model, data.shown) + average_rows(model, _of_one_length(data.examples))


def _of_one_length(examples: Examples) -> Examples:
    """The examples of the commonest length of input and answer."""
    lengths = row_lengths(examples.rows).numpy()
    _, length_of, counts = np.unique(lengths, axis=0, return_inverse=True, return_counts=True)
    return examples[np.flatnonzero(length_of.reshape(-1) == counts.argmax())]


def study_toggles(model: HeadcountPreTrainedModel, data: StudyData, progress: Bars | None = None) -> Rows:
    return toggle_rows(model, data.shown, progress=progress and progress("toggles"))


def study_interchange(model: HeadcountPreTrainedModel, data: StudyData, progress: Bars | None = None) -> Rows:
    if not data.pairs:
        raise ValueError(
            "interchange needs pairs in which a variable differs; expected data of a task that has variables, with "
            "pairs."
        )
    rows: Rows = []
    for variable, kinds in data.pairs.items():
        for kind, pairs in kinds.items():
            bar = None if progress is None else progress(f"interchange, {variable}, {kind} pairs")
            rows += swap_rows(model, pairs, swap_sets(model, pairs), progress=bar)
    return rows


def study_signature(model: HeadcountPreTrainedModel, data: StudyData, progress: Bars | None = None) -> Rows:
    single = [SiteSet(str(site), (site,)) for site in sites(model) if site.kind != "residual"]
    sets = [*single, *standard_sets(model)]
    bar = None if progress is None else progress("signature")
    return [row for name in with_errors(data) for row in signature_rows(model, data.examples, name, sets, bar)]


def with_errors(data: StudyData) -> list[str]:
    """The variables of which errors tell something."""
    variables = data.examples.task.variables
    return [name for name in data.pairs if variables[name].errors is not None]


def study_selection(model: HeadcountPreTrainedModel, data: StudyData, progress: Bars | None = None) -> Rows:
    """The smallest sets that move a variable, and that are enough for the answers."""
    rows: Rows = []
    for searched in searches(model, data.examples, data.pairs):
        bar = None if progress is None else progress(f"search, {searched.title}")
        rows += searched.rows(bar)
    return rows


def study_fourier(model: HeadcountPreTrainedModel, data: StudyData, progress: Bars | None = None) -> Rows:
    return fourier_rows(model, data.examples)


def study_atlas(
    model: HeadcountPreTrainedModel,
    data: StudyData,
    ablation: Rows,
    sets: Rows,
    interchange: Rows,
    signature: Rows,
    specialization: Rows,
    progress: Bars | None = None,
) -> Rows:
    task = data.examples.task
    rows: Rows = []
    for name in with_errors(data):
        rows += atlas_rows(task, name, [*ablation, *sets], interchange, signature, specialization)
    return rows


def study_subsets(
    model: HeadcountPreTrainedModel,
    data: StudyData,
    ablation: Rows,
    gradient: Rows,
    rows_used: int = 200,
    progress: Bars | None = None,
) -> Rows:
    """Every subset of the heads of a small model, and how far each ranking is from the best."""
    drop = f"{data.examples.measure['metric']}_drop"
    own = select(ablation, scope={}, mode="zero")
    rankings = {
        "drop_one_at_a_time": select(own, metric=drop),
        "loss_rise": select(own, metric="loss_rise"),
        "gradient": select(gradient, metric="gradient_importance"),
    }
    orders = {name: [r["head"] for r in sorted(rows, key=lambda r: r["value"])] for name, rows in rankings.items()}
    examples = data.examples[np.arange(min(rows_used, len(data.examples)))]
    return subset_rows(model, examples, orders, progress=progress and progress("subsets"))


ANALYSES: dict[str, Callable[..., Rows]] = {
    "ablation": study_ablation,
    "sets": study_sets,
    "gradient": study_gradient,
    "specialization": study_specialization,
    "maps": study_maps,
    "toggles": study_toggles,
    "interchange": study_interchange,
    "signature": study_signature,
    "selection": study_selection,
    "atlas": study_atlas,
    "subsets": study_subsets,
    "fourier": study_fourier,
}
NEEDS = {
    "gradient": ("ablation",),
    "atlas": ("ablation", "sets", "interchange", "signature", "specialization"),
    "subsets": ("ablation", "gradient"),
}


def analyses_for(model: HeadcountPreTrainedModel, data: StudyData) -> list[str]:
    """The analyses that make sense: interchange needs pairs, the atlas errors that tell, all subsets a small model,
    Fourier transforms residues.
    """
    left_out = set()
    if not data.pairs:
        left_out |= {"interchange"}
    if not with_errors(data):
        left_out |= {"signature", "atlas"}
    if len(model.list_heads()) > MOST_HEADS:
        left_out |= {"subsets"}
    if data.examples.task.residues(data.examples.options) is None:
        left_out |= {"fourier"}
    return [name for name in ANALYSES if name not in left_out]
