"""What `headcount heads` searches for in a model: sets that move a variable, and sets that are enough for the answers.

- `carry, cross-attention`: of the sites through which a variable can pass, which ones move it if they are swapped
- `answers, heads`: which heads are enough if every other one puts out its mean
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...data_builders.examples import Examples, PairedExamples
from ...modeling.modeling_headcount import HeadcountPreTrainedModel
from ...records.rows import Rows
from ..interventions.intervention import Intervention
from ..interventions.plan import Progress
from ..interventions.sets import SiteSet, find_set
from ..interventions.sites import Site, sites
from ..interventions.sweep import sweep
from .selection import Sets, Trial, selection_rows
from .swap import swap, what_happened


MOST_PAIRS = 1000  # and examples: a search tries hundreds of sets


@dataclass(frozen=True)
class Search:
    title: str
    pool: Sequence[Site]
    trial: Trial
    n: int
    metric: str
    variable: str | None
    decoding: str | None

    def rows(self, progress: Progress | None = None) -> Rows:
        about = {"searched": self.title, "variable": self.variable}
        return selection_rows(self.pool, self.trial, self.n, self.metric, progress, decoding=self.decoding, **about)


def searches(
    model: HeadcountPreTrainedModel, examples: Examples, pairs: Mapping[str, Mapping[str, PairedExamples]]
) -> list[Search]:
    """All searches that a model and its data allow."""
    found = []
    heads = [site for site in sites(model) if site.head is not None]
    sublayers = [site for site in sites(model) if site.kind == "mlp"]
    for variable, kinds in pairs.items():
        if "minimal" in kinds:
            own = kinds["minimal"][:MOST_PAIRS]
            if model.config.is_encoder_decoder:  # everything that the answer knows comes through here
                cross = find_set(model, "decoder.*.cross.*")
                found.append(moving(model, own, cross.sites, f"{variable}, cross-attention"))
            found.append(moving(model, own, [*heads, *sublayers], f"{variable}, heads and feed-forward sublayers"))
    found.append(enough(model, examples[np.arange(min(MOST_PAIRS, len(examples)))], heads))
    return found


def moving(model: HeadcountPreTrainedModel, pairs: PairedExamples, pool: Sequence[Site], title: str) -> Search:
    """Which sites move the variable if they are swapped together."""
    metric = f"{pairs.variable}_flip"

    def trial(sets: Sets, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        own = pairs[rows]
        outcomes = swap(model, own, [SiteSet("tried", some) for some in sets])
        return what_happened(model, own, outcomes)[metric][1:]

    return Search(title, pool, trial, len(pairs), metric, pairs.variable, pairs.base.measure["decoding"])


def enough(model: HeadcountPreTrainedModel, examples: Examples, pool: Sequence[Site]) -> Search:
    """Which heads are enough for right answers if every other head puts out its mean over the data."""

    def trial(sets: Sets, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        left = [tuple(site for site in pool if site not in some) for some in sets]
        wanted = [Intervention(some, replacement="mean", title="tried") for some in left]
        return sweep(model, examples[rows].rows, [Intervention(), *wanted]).right[1:]

    measure = examples.measure
    return Search("answers, heads", pool, trial, len(examples), measure["metric"], None, measure["decoding"])
