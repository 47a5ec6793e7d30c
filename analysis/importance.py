"""How much each head matters: exact, by ablation, and estimated, by one backward pass."""

from collections.abc import Callable

import numpy as np
import torch

from .ablation import Outcomes, ablate, one_head_at_a_time
from .examples import Examples, label_columns
from .statistics import holm, mcnemar, mean_with_interval, paired_drop, rank_correlation, rate


CRITICAL, IMPORTANT = 0.10, 0.01  # drops in exact match above which a head is called so; below: redundant
BREAKDOWNS = ("carry", "longest_chain", "group", "kind", "length")


def head_importance(
    model, examples: Examples, mode: str = "zero", seed: int = 0, progress: Callable | None = None
) -> list[dict]:
    """Rows for every head: what the model loses without it, as a whole and by carry chain, column, kind and length.

    The drop in exact match is free-running; digit accuracy by column is teacher-forced, and each row says so.
    """
    outcomes = ablate(model, examples.rows, one_head_at_a_time(model), mode, seed=seed, progress=progress)
    return importance_rows(outcomes, examples, mode)


def importance_rows(outcomes: Outcomes, examples: Examples, mode: str) -> list[dict]:
    """The rows of a sweep whose first gate is the intact model and whose others close one head each."""
    right, hits = outcomes.right, outcomes.hits
    intact = right[0]
    heads = [next(iter(gate)) for gate in outcomes.gates[1:]]
    p_values = [mcnemar(intact, right[version]) for version in range(1, len(right))]
    measure = {**examples.measure, "metric": f"{examples.measure['metric']}_drop"}
    rows = []
    for version, (head, p_value, p_holm) in enumerate(zip(heads, p_values, holm(p_values), strict=True), start=1):
        base = {"analysis": "ablation", "mode": mode, "head": head}
        drop = paired_drop(intact, right[version])
        whole = {**base, **measure, **drop, **classify(drop)}
        whole |= {"p_value": p_value, "p_holm": p_holm}
        whole |= {
            "intact": rate(int(intact.sum()), len(intact)),
            "ablated": rate(int(right[version].sum()), len(intact)),
        }
        rows.append(whole)
        rise = outcomes.loss[version] - outcomes.loss[0]
        rows.append({**base, "metric": "loss_rise", **mean_with_interval(rise)})
        for fact in BREAKDOWNS:
            for value in np.unique(examples.facts.get(fact, np.array([], int)).astype(str)):
                own = examples.facts[fact].astype(str) == value
                name = int(value) if value.isdigit() else value
                parted = paired_drop(intact[own], right[version][own])
                rows.append({**base, **measure, fact: name, **parted})
        if examples.task == "addition":
            rows += _column_rows(base, hits[0], hits[version], outcomes, examples)
    return rows


def _column_rows(base: dict, intact, ablated, outcomes: Outcomes, examples: Examples) -> list[dict]:
    columns = label_columns(torch.from_numpy(outcomes.labels), examples.answer_order).numpy()
    rows = []
    for column in range(columns.max() + 1):
        own = columns == column
        drop = paired_drop(intact[own], ablated[own])
        rows.append({**base, "metric": "digit_accuracy_drop", "decoding": "teacher-forced", "column": column, **drop})
    return rows


def classify(drop: dict) -> dict:
    """Critical (> 10 points), important (1 to 10) or redundant (< 1), and whether the whole interval says so."""

    def name(value: float) -> str:
        return "critical" if value > CRITICAL else "important" if value >= IMPORTANT else "redundant"

    low, high = drop["interval"]
    return {"class": name(drop["value"]), "class_is_certain": name(low) == name(high)}


def gradient_importance(model, examples: Examples, batch_size: int = 256) -> list[dict]:
    """An estimate from one backward pass: the mean over examples of |d loss / d gate|, all gates open.

    Michel, Levy and Neubig 2019, "Are sixteen heads really better than one?", without their scaling by layer.
    """
    model.eval()
    gradients: dict[str, list[np.ndarray]] = {head: [] for head in model.list_heads()}
    count = len(examples)
    for start in range(0, count, batch_size):
        batch = {name: values[start : start + batch_size].to(model.device) for name, values in examples.rows.items()}
        size = len(batch["labels"])
        masks = {
            argument: mask.expand(size, *mask.shape).clone().requires_grad_()
            for argument, mask in model.head_mask_for([]).items()
        }
        # The sum, not the mean, over examples and labels: then each example's gradient is its own.
        model(**batch, **masks, num_items_in_batch=1).loss.backward(inputs=list(masks.values()))
        for head in gradients:
            argument, layer, number = model.mask_entry(head)
            gradients[head].append(masks[argument].grad[:, layer, number].abs().cpu().numpy())
    return [
        {
            "analysis": "gradient",
            "head": head,
            "metric": "gradient_importance",
            **mean_with_interval(np.concatenate(g)),
        }
        for head, g in gradients.items()
    ]


def agreement(ablation: list[dict], gradient: list[dict]) -> list[dict]:
    """Spearman's rank correlation over heads between the gradient estimate and each exact measure."""
    estimate = {row["head"]: row["value"] for row in gradient}
    rows = []
    for metric in sorted({row["metric"] for row in ablation}):
        exact = {
            r["head"]: r["value"] for r in ablation if r["metric"] == metric and not r.keys() & {*BREAKDOWNS, "column"}
        }
        if not exact:
            continue
        value = rank_correlation([exact[head] for head in exact], [estimate[head] for head in exact])
        rows.append(
            {"analysis": "agreement", "metric": "rank_correlation", "with": metric, "value": value, "n": len(exact)}
        )
    return rows
