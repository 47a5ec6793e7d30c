"""What a model says about examples of any length, in one parallel pass: margins, whose sign is the answer.

For greedy decoding, an answer comes out exactly right if and only if every argmax is right with the right tokens
before it, <eos> included. So one pass decides; `generated.py` lets `generate()` write token by token, with its cache,
and counts where the two disagree.

Shapes: N examples, T labelled places, V tokens of the vocabulary.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...data_builders.vocabulary import IGNORED
from ...trainers.evaluation import slices


@torch.inference_mode()
def answer_margin(model: Any, rows: dict[str, Tensor]) -> NDArray[np.float32]:
    """(N,): the smallest margin of each answer, right token minus best wrong one, by a decoder or encoder-decoder.

    An answer is right if and only if its smallest margin is positive.
    """
    inputs = {name: values for name, values in rows.items() if name != "labels"}
    labels, width = rows["labels"], rows["input_ids"].shape[1]
    has_encoder = model.config.is_encoder_decoder
    if has_encoder:
        inputs["decoder_input_ids"] = model.prepare_decoder_input_ids_from_labels(labels)
        width += labels.shape[1]
    margins = []
    for part in slices(len(labels), width, shared="attention_mask" not in rows):
        batch = {name: values[part].to(model.device) for name, values in inputs.items()}
        logits, wanted = model(**batch, use_cache=False).logits.float(), labels[part].to(model.device)
        if not has_encoder:  # a causal model predicts the token after the one it reads
            logits, wanted = logits[:, :-1], wanted[:, 1:]
        asked = wanted != IGNORED
        target = wanted.masked_fill(~asked, 0)[..., None]
        own = logits.gather(-1, target)[..., 0]
        best_other = logits.scatter(-1, target, float("-inf")).amax(-1)
        margins.append((own - best_other).masked_fill(~asked, float("inf")).amin(-1).cpu())
    return torch.cat(margins).numpy()


@torch.inference_mode()
def label_margin(model: Any, rows: dict[str, Tensor], position_ids: Tensor | None = None) -> NDArray[np.float32]:
    """(N,): logit of class 1 minus logit of class 0; positive: the model says class 1."""
    inputs = {name: values for name, values in rows.items() if name != "labels"}
    count, width = inputs["input_ids"].shape
    logits = []
    for part in slices(count, width):
        batch = {name: values[part].to(model.device) for name, values in inputs.items()}
        logits.append(model(**batch, position_ids=position_ids).logits.float().cpu())
    both = torch.cat(logits)
    return (both[:, 1] - both[:, 0]).numpy()
