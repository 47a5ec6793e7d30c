"""Estimates of what cutting each edge does, for all edges at once, by gradients.

- EAP, edge attribution patching (Syed, Rager and Conmy 2023, arXiv 2310.10348): to first order, cutting an edge
  changes the metric by (replacement - what the sender puts out) . (gradient of what the reader reads).
- EAP-IG (Hanna, Pezzelle and Belinkov 2024, arXiv 2403.17806): the gradient is the mean over `steps` inputs on the
  straight way from the replacement of the embeddings (left out) to the embeddings themselves (the last step). It does
  not vanish where the model saturates.

The sum over all edges out of a node is the estimate for the node itself: attribution patching. Estimates are quick and
can be far off; verdicts belong to `EdgeRuns`, which cuts.

Shapes: M edges, N examples, B rows of a portion, L tokens, E hidden size.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput

from ..interventions.measures import labelled, summed_loss
from .edge_runs import EdgeRuns, Portion, evaluating
from .graph import LOGITS
from .network import Network, Prepared


IG_STEPS = 5

Differentiable = Callable[[Any, Mapping[str, Any]], Tensor]


def minus_loss(model: PreTrainedModel) -> Differentiable:
    """A metric: minus the cross-entropy of an example's labels, summed."""

    def minus_the_loss(outputs: Any, batch: Mapping[str, Any]) -> Tensor:
        return -summed_loss(*labelled(model, outputs, batch))

    return minus_the_loss


def edge_estimates(runs: EdgeRuns, metric: Differentiable | None = None, steps: int = 1) -> NDArray[np.float64]:
    """(M, N): by how much each edge of the graph, if cut, would change the metric of each example.

    >>> import torch
    >>> from headcount import HeadcountConfig, HeadcountForCausalLM
    >>> model = HeadcountForCausalLM(HeadcountConfig(architecture="decoder", num_hidden_layers=1))
    >>> ids = torch.tensor([[5, 6, 7], [8, 9, 5]])
    >>> runs = EdgeRuns(model, {"input_ids": ids, "labels": ids}, "mean")
    >>> edge_estimates(runs, steps=5).shape == (len(runs.graph.edges), 2)
    True

    Args:
        runs: a model with its data and what a cut edge brings.
        metric: a function of outputs and batch with a gradient, one value per example; without it, minus the loss.
        steps: 1 for EAP, more for EAP-IG.

    Returns:
        One row for each of `runs.graph.edges`.
    """
    if steps < 1:
        raise ValueError(f"steps={steps}; expected at least 1.")
    metric = metric or minus_loss(runs.model)
    found = np.zeros((len(runs.graph.edges), sum(len(portion.rows) for portion in runs.portions)))
    with evaluating(runs.model):
        for portion in runs.portions:
            clean = runs.put_out(portion)
            slopes = _slopes(runs.network, portion, metric, steps)
            for number, (sender, reader) in enumerate(runs.graph.edges):
                change = portion.replacements[sender][:, : portion.length(sender)] - clean[sender]
                product = (change * slopes[reader, sender.split(".")[0]]).flatten(1).double().sum(-1)
                found[number, portion.rows.numpy()] = product.cpu().numpy()
    return found


def node_estimates(runs: EdgeRuns, estimates: NDArray[np.float64]) -> NDArray[np.float64]:
    """(nodes, N): for each node the sum over all edges out of it."""
    senders = np.array([sender for sender, _ in runs.graph.edges])
    return np.stack([estimates[senders == node].sum(0) for node in runs.graph.nodes])


def _slopes(network: Network, portion: Portion, metric: Differentiable, steps: int) -> dict[tuple[str, str], Tensor]:
    """For every sum that is read, (B, L, E): the gradient of the metric, mean over the steps."""
    total: dict[tuple[str, str], Tensor] = {}
    for step in range(1, steps + 1):
        embeds = {
            name: portion.replacements[name][:, : own.shape[1]].lerp(own, step / steps)
            for name, own in portion.prepared.embeds.items()
        }
        with torch.enable_grad():
            logits, read = _trace(network, portion.prepared, embeds)
            value = metric(CausalLMOutput(logits=logits), portion.batch)
            if not value.requires_grad:
                raise ValueError("the metric has no gradient; expected a differentiable one, computed by torch.")
            found = torch.autograd.grad(value.sum(), list(read.values()), allow_unused=True)
        for name, slope, own in zip(read, found, read.values(), strict=True):
            part = torch.zeros_like(own[0]) if slope is None else slope[0] / steps
            total[name] = total[name] + part if name in total else part
    return total


def _trace(
    network: Network, prepared: Prepared, embeds: dict[str, Tensor]
) -> tuple[Tensor, dict[tuple[str, str], Tensor]]:
    """Logits (B, ...) from these embeddings, and all sums that were read on the way, (1, B, L, E), with gradients."""
    values = {name: own.detach().clone().requires_grad_() for name, own in embeds.items()}
    read: dict[tuple[str, str], Tensor] = {}
    for reader, stacks in network.reads.items():
        own = {}
        for stack, parents in stacks.items():
            total = network.constant(reader, stack)
            for parent in parents:
                total = total + values[parent]
            own[stack] = read[reader, stack] = total[None]
        values[reader] = network.put_out(reader, own, prepared)[0]
    return values[LOGITS], read
