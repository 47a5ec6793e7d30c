"""What a model writes, token by token, while an intervention is in force.

One parallel pass tells the next token for every prefix that it is given. So a pass over the right answers is enough
wherever they come out; where not, what was written takes their place as the prefix of another pass, until nothing
changes any more: after pass number i the first i tokens are those of greedy decoding.

Shapes: V interventions, N examples, T labelled places.
"""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...data_builders.vocabulary import IGNORED
from ...modeling.modeling_headcount import HeadcountPreTrainedModel
from ..interventions.intervention import Intervention
from ..interventions.measures import labels_in_place, predicts_next
from ..interventions.plan import RoleFinders
from ..interventions.sweep import sweep


Rows = dict[str, Tensor]


def free_running(
    model: HeadcountPreTrainedModel,
    rows: Rows,
    intervention: Intervention,
    sources: Rows,
    roles: Callable[[NDArray[np.int64]], RoleFinders] | None = None,
) -> NDArray[np.int64]:
    """(N, T): the tokens of greedy decoding under an intervention with sources, -100 where there is no label.

    The sources read their right answers. Answers are as many tokens as the right ones. `roles`: of some of the
    examples, for sites at some tokens only.
    """
    if set(intervention.replacements) != {"source"}:
        raise ValueError(
            f"replacement={intervention.replacement!r}; expected 'source', what others put out may change."
        )
    labels = labels_in_place(model, rows["labels"]).numpy()
    written = read = labels
    open_rows = np.arange(len(labels))
    for _ in range(labels.shape[1]):
        chosen = torch.from_numpy(open_rows)
        own = {name: values[chosen] for name, values in rows.items()}
        own = with_answers(model, own, torch.from_numpy(np.where(labels == IGNORED, IGNORED, read))[chosen])
        found = sweep(
            model,
            own,
            [intervention],
            sources={name: values[chosen] for name, values in sources.items()},
            roles=None if roles is None else roles(open_rows),
        )
        written = written.copy()
        written[open_rows] = found.by_labels()[0][1]
        # The last token is read by nobody.
        differs = (written[:, :-1] != read[:, :-1]) & (labels[:, :-1] != IGNORED)
        open_rows, read = np.flatnonzero(differs.any(-1)), written
        if not len(open_rows):
            break
    return written


def with_answers(model: HeadcountPreTrainedModel, rows: Rows, answers: Tensor) -> Rows:
    """The same questions with other answers (N, T), each in the place where it is predicted, to be read."""
    if not predicts_next(model):
        return {**rows, "labels": answers.view_as(rows["labels"])}
    labels = torch.nn.functional.pad(answers, (1, 0), value=IGNORED)
    return {**rows, "labels": labels, "input_ids": torch.where(labels == IGNORED, rows["input_ids"], labels)}
