"""Numbers on circles: the discrete Fourier transform of what a model makes of the residues 0..p-1.

A model that adds modulo p may turn a number a into angles 2 pi k a / p, for a few frequencies k, and add angles (Nanda
et al. 2023, https://arxiv.org/abs/2301.05217). Then anything that depends on a alone, as a function of a, has its
power at these frequencies: the embedding of a, and what a head puts out while the answer is read, with a as the first
number.

Two controls: a model of the same config before training, and the trained one with the residues in random order, which
has the same vectors. In neither is there a frequency, and five of them have the share that the five largest of many
random numbers have.

Shapes: p residues, F features, K frequencies.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ...data_builders.examples import Examples, is_labelled
from ...modeling.modeling_headcount import HeadcountPreTrainedModel
from ...records.rows import Rows, row
from .outputs import head_outputs


TOP = 5  # frequencies whose share is told
OTHERS = 8  # examples in which the first number runs through all residues
TRAINED, UNTRAINED, SHUFFLED = "none", "untrained model", "shuffled residues"  # controls
EMBEDDING = "embedding"


def power_by_frequency(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """(p, F) -> (K,): shares of the power at the frequencies 1..p // 2, all features together; the mean is left out.

    >>> turns = 2 * np.pi * 3 * np.arange(11) / 11
    >>> power_by_frequency(np.stack([np.cos(turns), np.sin(turns)], 1)).round(6).tolist()
    [0.0, 0.0, 1.0, 0.0, 0.0]
    """
    spectrum = np.abs(np.fft.rfft(np.asarray(values, np.float64), axis=0)[1:]) ** 2
    if len(values) % 2 == 0:
        spectrum[-1] /= 2  # the one frequency that has no mirror image
    power = spectrum.sum(1)
    return power / max(power.sum(), np.finfo(np.float64).tiny)


def fourier_rows(model: HeadcountPreTrainedModel, examples: Examples, seed: int = 0) -> Rows:
    """Shares of power by frequency, and of the five largest, of the embedding and of every head, with both controls.

    Args:
        model: a trained model of a task with residues.
        examples: of its test data.
        seed: of the untrained model, and of the random order.

    Returns:
        Rows of the metrics `power` (with `frequency`) and `top_five_power`; `subject` is "embedding" or a head,
        `control` one of "none", "untrained model" and "shuffled residues".
    """
    tokens = examples.task.residues(examples.options)
    if tokens is None:
        raise ValueError(
            f"the tokens of {examples.task.name} stand for no residues; expected a task that counts modulo a number."
        )
    order = np.random.default_rng(seed).permutation(len(tokens))
    found: Rows = []
    for subject, values in _by_residue(model, examples, tokens).items():
        found += _spectrum_rows(subject, TRAINED, values)
        found += _spectrum_rows(subject, SHUFFLED, values[order])
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        untrained = type(model)(model.config).eval()
    for subject, values in _by_residue(untrained, examples, tokens).items():
        found += _spectrum_rows(subject, UNTRAINED, values)
    return found


def _by_residue(
    model: HeadcountPreTrainedModel, examples: Examples, tokens: NDArray[np.int64]
) -> dict[str, NDArray[np.float32]]:
    """Embedding and heads -> (p, F): what the model makes of every residue."""
    table = model.get_input_embeddings().weight.detach()
    found = {EMBEDDING: table[torch.from_numpy(tokens)].numpy()}
    if model.config.architecture != "decoder":  # elsewhere no single place reads both numbers
        return found
    others = examples[slice(OTHERS)].rows
    ids = others["input_ids"].repeat_interleave(len(tokens), 0)  # (others * p, L)
    first = int(torch.isin(ids[0], torch.from_numpy(tokens)).int().argmax())
    ids[:, first] = torch.from_numpy(tokens).repeat(len(others["input_ids"]))
    reads = int(is_labelled(others["labels"][0]).int().argmax()) - 1  # where the answer is predicted
    for head, output in head_outputs(model, ids[:, : reads + 1]).items():
        by_other = output[:, -1].view(-1, len(tokens), output.shape[-1])  # (others, p, D)
        found[str(head)] = by_other.transpose(0, 1).flatten(1).numpy()
    return found


def _spectrum_rows(subject: str, control: str, values: NDArray) -> Rows:
    power = power_by_frequency(values)
    about: dict[str, Any] = {"subject": subject, "control": control}
    found = [row("fourier", "top_five_power", _share(np.sort(power)[-TOP:].sum(), values), **about)]
    for frequency, share in enumerate(power, 1):
        found.append(row("fourier", "power", _share(share, values), frequency=frequency, **about))
    return found


def _share(value: float, values: NDArray) -> dict[str, float]:
    return {"value": float(value), "n": len(values)}
