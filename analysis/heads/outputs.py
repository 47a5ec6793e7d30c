"""What every head puts out, before the output projection mixes the heads."""

import torch
from torch import Tensor
from transformers import PreTrainedModel

from ...modeling.heads import Head
from ..interventions.batches import Batch, as_batch
from ..interventions.subject import Subject


@torch.inference_mode()
def head_outputs(model: PreTrainedModel, batch: Batch) -> dict[Head, Tensor]:
    """What every head of the intact model puts out on a batch.

    >>> headcount.head_outputs(model, inputs)["decoder.1.cross.0"].shape
    torch.Size([3, 5, 8])

    Args:
        batch: the model's inputs by name, or a tensor of input ids; decoder inputs are made from labels.

    Returns:
        Head -> (batch, queries, head dimension), in the order of `list_heads`.
    """
    subject = Subject.of(model)
    was_training = model.training
    model.eval()
    try:
        _, record = subject.read(as_batch(batch), set(subject.layers))
    finally:
        model.train(was_training)
    return {
        Head(f"{name}.{number}"): record[name][:, :, place].cpu()
        for name, layer in subject.layers.items()
        for place, number in enumerate(layer.heads)
    }
