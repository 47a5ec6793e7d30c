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

    >>> import headcount, torch
    >>> from transformers import GPT2Config, GPT2Model
    >>> model = GPT2Model(GPT2Config(n_layer=1, n_head=2, n_embd=8, vocab_size=9))
    >>> headcount.head_outputs(model, torch.tensor([[5, 6, 7]]))["decoder.0.self.1"].shape
    torch.Size([1, 3, 4])

    Args:
        model: one of headcount's own, or any transformers model whose attention asks transformers' interface.
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
