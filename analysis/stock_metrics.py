"""What an ablation measures: one value per example for every version of a model.

A metric is a function of a model's outputs and the batch they came from that gives one value per example, (B,):
booleans (right or wrong) or numbers, the higher the better. Without one, labels decide. An `evaluate` metric gets
predictions and references and gives one value for all examples.

Shapes: B rows, T labelled places, V versions (the intact model first), N all rows.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor, nn

from ..data_builders.tokenization import IGNORED
from .importance import classify
from .statistics import holm, mcnemar, mean_with_interval, paired_drop, rate


RESAMPLES = 1000
Values = dict[str, NDArray]  # name -> (N,), or (N, T) of an `evaluate` metric


def labelled(model, outputs, batch: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
    """Logits (B, T, classes) and labels (B, T), each label in the place where the model predicts it."""
    if "labels" not in batch or "logits" not in outputs:
        raise ValueError(
            f"{type(model).__name__} gives no logits, or the batch has no labels; expected both, or a metric: a "
            "function of outputs and batch that gives one value per example."
        )
    logits, labels = outputs["logits"], batch["labels"].to(outputs["logits"].device)
    if logits.ndim == 2:
        logits, labels = logits[:, None], labels[:, None]
    elif _predicts_next(model):
        logits, labels = logits[:, :-1], labels[:, 1:]
    if logits.shape[:2] != labels.shape:
        raise ValueError(
            f"logits for {tuple(logits.shape[:2])} places and labels of shape {tuple(labels.shape)} do not match; "
            "expected one label for every place, or a metric of your own."
        )
    return logits, labels


def _predicts_next(model) -> bool:
    """A decoder without encoder predicts, at each place, the token of the next one."""
    return not getattr(model.config, "is_encoder_decoder", False) and type(model).__name__.endswith(
        ("ForCausalLM", "LMHeadModel")
    )


def right_and_loss(model, outputs, batch: Mapping[str, Any]) -> dict[str, Tensor]:
    """`right` (B,): every label is the argmax, given the labels before it; `loss` (B,), summed over its labels."""
    logits, labels = labelled(model, outputs, batch)
    right = ((logits.argmax(-1) == labels) | (labels == IGNORED)).all(-1)
    return {"right": right, "loss": summed_loss(logits, labels)}


def summed_loss(logits: Tensor, labels: Tensor) -> Tensor:
    loss = nn.functional.cross_entropy(
        logits.flatten(0, 1).float(), labels.flatten(), ignore_index=IGNORED, reduction="none"
    )
    return loss.view(labels.shape).sum(-1)


def predictions(model, outputs, batch: Mapping[str, Any]) -> dict[str, Tensor]:
    logits, labels = labelled(model, outputs, batch)
    return {"predictions": logits.argmax(-1), "references": labels}


class Measure:
    """A metric by whichever way it was given, and the rows that come of it."""

    def __init__(self, model, metric: Callable | Any | None):
        self.model, self.metric = model, metric
        self.is_module = hasattr(metric, "compute")
        if metric is not None and not self.is_module and not callable(metric):
            raise TypeError(
                f"metric is a {type(metric).__name__}, expected a function of outputs and batch or an evaluate metric."
            )
        self.decoding = "teacher-forced"
        self.name = getattr(metric, "name", None) or getattr(metric, "__name__", type(metric).__name__)

    def values(self, outputs, batch: Mapping[str, Any], rows: int) -> Values:
        if self.metric is None:
            found = right_and_loss(self.model, outputs, batch)
        elif self.is_module:
            found = predictions(self.model, outputs, batch)
        else:
            value = torch.as_tensor(self.metric(outputs, batch))
            if value.shape != (rows,):
                raise ValueError(
                    f"metric {self.name} gave shape {tuple(value.shape)}, expected ({rows},): one value per example."
                )
            found = {self.name: value}
        return {n: (v.float() if v.is_floating_point() else v).detach().cpu().numpy() for n, v in found.items()}

    def rows(self, heads: list[str], versions: list[Values], mode: str) -> list[dict]:
        """Rows for every head from the values of the intact model, which come first, and without each head."""
        base = [{"analysis": "ablation", "mode": mode, "head": head} for head in heads]
        if self.is_module:
            return self._module_rows(base, versions)
        if self.metric is not None:
            (name,) = versions[0]
            values = [version[name] for version in versions]
            return share_rows(base, values, {"metric": name}) if values[0].dtype == bool else mean_rows(
                base, values, name)  # fmt: skip
        measure = {"metric": "exact_match", "decoding": self.decoding} if self._is_sequence else {"metric": "accuracy"}
        rows = share_rows(base, [version["right"] for version in versions], measure)
        for own, version in zip(base, versions[1:], strict=True):
            rise = version["loss"] - versions[0]["loss"]
            rows.append({**own, "metric": "loss_rise", **mean_with_interval(rise)})
        return rows

    @property
    def _is_sequence(self) -> bool:
        """Whether an example has many labels; a classifier of whole examples has one."""
        name = type(self.model).__name__
        return not name.endswith("Classification") or name.endswith("TokenClassification")

    def _module_rows(self, base: list[dict], versions: list[Values]) -> list[dict]:
        """The difference of the metric on all examples, its interval by resampling examples, the same for both."""
        references = versions[0]["references"]
        n = len(references)
        draws = np.random.default_rng(0).integers(0, n, (RESAMPLES, n))

        # `compute` writes every example to disk and reads it again; for the resamples the metric itself is enough.
        resampled = getattr(self.metric, "_compute", self.metric.compute)

        def compute(version: Values, chosen, by: Callable = resampled) -> float:
            found, wanted = version["predictions"][chosen].ravel(), references[chosen].ravel()
            real = wanted != IGNORED
            result = by(predictions=found[real].tolist(), references=wanted[real].tolist())
            return float(next(iter(result.values())))

        whole = [compute(version, slice(None), self.metric.compute) for version in versions]
        intact = np.array([compute(versions[0], draw) for draw in draws])
        rows = []
        for own, version, value in zip(base, versions[1:], whole[1:], strict=True):
            drops = intact - [compute(version, draw) for draw in draws]
            rows.append({
                **own, "metric": f"{self.name}_drop", "value": whole[0] - value, "n": n,
                "interval": np.quantile(drops, [0.025, 0.975]).tolist(), "interval_by": f"{RESAMPLES} resamples",
                "intact": {"value": whole[0], "n": n}, "ablated": {"value": value, "n": n},
            })  # fmt: skip
        return ranked(rows)


def share_rows(base: list[dict], values: list[NDArray], measure: dict) -> list[dict]:
    """Right or wrong: the rows of headcount's own ablation."""
    intact = values[0].astype(bool)
    p_values = [mcnemar(intact, value) for value in values[1:]]
    rows = []
    for own, value, p_value, p_holm in zip(base, values[1:], p_values, holm(p_values), strict=True):
        drop = paired_drop(intact, value)
        rows.append({
            **own, **measure, "metric": f"{measure['metric']}_drop", **drop, **classify(drop), "p_value": p_value,
            "p_holm": p_holm, "intact": rate(int(intact.sum()), len(intact)),
            "ablated": rate(int(value.sum()), len(intact)),
        })  # fmt: skip
    return ranked(rows)


def mean_rows(base: list[dict], values: list[NDArray], name: str) -> list[dict]:
    """Numbers: mean drop over examples, intact minus ablated, with a paired t interval and test."""
    drops = [values[0] - value for value in values[1:]]
    p_values = [1.0 if np.ptp(drop) == 0 else float(stats.ttest_1samp(drop, 0.0).pvalue) for drop in drops]
    rows = []
    for own, drop, value, p_value, p_holm in zip(base, drops, values[1:], p_values, holm(p_values), strict=True):
        rows.append({
            **own, "metric": f"{name}_drop", **mean_with_interval(drop), "p_value": p_value, "p_holm": p_holm,
            "intact": mean_with_interval(values[0]), "ablated": mean_with_interval(value),
        })  # fmt: skip
    return ranked(rows)


def ranked(rows: list[dict]) -> list[dict]:
    """The head that costs most first."""
    rows = sorted(rows, key=lambda row: -row["value"])
    return [{**row, "rank": rank} for rank, row in enumerate(rows, start=1)]
