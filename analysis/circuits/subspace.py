"""A subspace of the residual stream that holds a variable: found by training, judged on pairs it has not seen.

Distributed alignment search (Geiger et al. 2023, arXiv 2303.02536): at some tokens of a site, the part of the stream
that lies in k directions is taken from the run on the source, everything else stays the base's:

    states = base + Q Q^T (source - base),    Q (E, k) with orthonormal columns.

Q starts from the directions in which the stream's mean differs between values of the variable, and is trained, with
the model fixed, so that the model writes the answer that is right if just the variable is the source's. Where training
does not help (a model with sharp thresholds has no useful gradients), the start is kept. The directions are shared by
all tokens of the site. The pass goes on from the site, so what lies below it is computed once for all steps.

Shapes: N pairs, L tokens, E hidden size, k directions, T labelled places.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ...data_builders.examples import PairedExamples
from ...data_builders.vocabulary import IGNORED
from ...modeling.layers import HeadcountLayer
from ...modeling.modeling_headcount import HeadcountPreTrainedModel
from ...modeling.stack import HeadcountStack
from ..interventions.intervention import INTACT
from ..interventions.measures import predicts_next
from ..interventions.plan import Progress
from ..interventions.shared_states import cut_rows, length_groups
from ..interventions.sites import Site, sites
from ..interventions.walk import Walk


STEPS = 250
BATCH = 128
LEARNING_RATE = 0.05
WARM_UP = 10  # steps; then the rate falls to zero in a line
ROWS_AT_ONCE = 500


@dataclass(frozen=True)
class Streams:
    """Pairs of one length: the residual streams of both runs after every layer, and what a pass needs to go on."""

    model: HeadcountPreTrainedModel
    rows: dict[str, Tensor]  # the base's questions with the answers that are expected
    base: dict[str, Tensor]  # site without its tokens -> (N, L, E)
    source: dict[str, Tensor]
    memory: Tensor | None  # (N, L, E): what a decoder that reads an encoder reads in the base's run
    numbers: Tensor  # (N,): which of all pairs these are

    def __len__(self) -> int:
        return len(self.numbers)


def read_streams(model: HeadcountPreTrainedModel, pairs: PairedExamples) -> list[Streams]:
    """The streams of all pairs, by their lengths."""
    modules = [str(site) for site in sites(model) if site.kind == "residual"]
    with torch.no_grad():
        return [
            _read(model, pairs, modules, list(group.split(ROWS_AT_ONCE)))
            for group in length_groups(pairs.expected.rows)
        ]


def _read(model: HeadcountPreTrainedModel, pairs: PairedExamples, modules: list[str], parts: list[Tensor]) -> Streams:
    rows, base, source, memory = [], [], [], []
    for part in parts:
        own = cut_rows(model, pairs.expected.rows, part)
        rows.append(own)
        base.append(_outputs(model, own, modules))
        source.append(_outputs(model, cut_rows(model, pairs.source.rows, part), modules))
        if model.config.is_encoder_decoder:
            memory.append(model.base_model.encoder(own["input_ids"], return_dict=True).last_hidden_state)

    def joined(some: list[dict[str, Tensor]]) -> dict[str, Tensor]:
        return {name: torch.cat([each[name] for each in some]) for name in some[0]}

    whole = torch.cat(memory) if memory else None
    return Streams(model, joined(rows), joined(base), joined(source), whole, torch.cat(parts))


def _outputs(model: HeadcountPreTrainedModel, rows: dict[str, Tensor], modules: list[str]) -> dict[str, Tensor]:
    record = dict.fromkeys(modules, torch.empty(0))  # to be filled
    Walk([INTACT]).logits(model, rows, record=record)
    return record


@dataclass(frozen=True)
class Swaps:
    """Pairs of one length at a site: whose stream is changed at which tokens."""

    streams: Streams
    site: Site
    chosen: Tensor  # (M,): the pairs that have such tokens
    tokens: Tensor  # (M, L)

    def __len__(self) -> int:
        return len(self.chosen)

    def logits(self, part: Tensor, basis: Tensor) -> Tensor:
        """Of some pairs, with the part of the stream within the basis (E, k) taken from the source."""
        own, streams = self.chosen[part], self.streams
        base, source = (side[self.site.module][own] for side in (streams.base, streams.source))
        states = base + ((source - base) * self.tokens[part, :, None] @ basis) @ basis.T
        rows = {name: values[own] for name, values in streams.rows.items()}
        memory = streams.memory[own] if streams.memory is not None and self.site.stack == "decoder" else None
        return logits_from(streams.model, rows, self.site, states, memory)

    def labels(self, part: Tensor) -> Tensor:
        """In the places of the logits; what a decoder alone says about the question does not count."""
        labels = self.streams.rows["labels"][self.chosen[part]]
        if predicts_next(self.streams.model):
            return nn.functional.pad(labels[:, 1:], (0, 1), value=IGNORED)
        return labels


def make_swaps(streams: list[Streams], pairs: PairedExamples, site: Site) -> list[Swaps]:
    """The pairs by their length, at one site; those without such tokens are left out."""
    model = streams[0].model
    side = "answer" if site.stack == "decoder" and model.config.is_encoder_decoder else "input"
    assert site.role is not None  # a variable is at some tokens
    tokens = torch.from_numpy(np.ascontiguousarray(pairs.roles(side).where(site.role, site.index)))
    found = []
    for own in streams:
        here = tokens[own.numbers, : own.base[site.module].shape[1]]
        chosen = here.any(-1).nonzero()[:, 0]
        if len(chosen):
            found.append(Swaps(own, site, chosen, here[chosen].to(model.dtype)))
    return found


def logits_from(
    model: HeadcountPreTrainedModel, rows: dict[str, Tensor], site: Site, states: Tensor, memory: Tensor | None = None
) -> Tensor:
    """The rest of a pass, from the residual stream after a layer on."""
    stacks, upwards = model.base_model, site.layer + 1
    if not model.config.is_encoder_decoder:
        stack = stacks.first_stack
        return model.read_out(_layers(stack, upwards, states, stack.prepare(rows["input_ids"])))
    decoder_input_ids = model.prepare_decoder_input_ids_from_labels(rows["labels"])
    prepared = stacks.encoder.prepare(rows["input_ids"])
    if memory is None:
        memory = _layers(stacks.encoder, upwards, states, prepared)
    own = stacks.decoder.prepare(decoder_input_ids, encoder_hidden_states=memory, encoder_position_ids=prepared[1])
    first, states = (upwards, states) if site.stack == "decoder" else (0, own[0])
    return model.read_out(_layers(stacks.decoder, first, states, own, memory))


def _layers(
    stack: HeadcountStack, first: int, states: Tensor, prepared: tuple, memory: Tensor | None = None
) -> Tensor:
    """The last states of a stack whose first layers were passed through already."""
    _, _, self_inputs, cross_inputs = prepared
    for layer in list(cast(Iterable[HeadcountLayer], stack.layers))[first:]:
        states = layer(states, memory, self_inputs, cross_inputs)[0]
    return stack.final_norm(states)


def value_directions(swaps: list[Swaps], values: NDArray[np.int64], most: int) -> Tensor:
    """(E, k): where the mean stream differs most between values (N,) of the bases: at most one fewer than values.

    The stream is the mean over the tokens of the site.
    """
    features, known = features_at(swaps, values)
    means = torch.stack([features[known == value].mean(0) for value in np.unique(known)])
    found = torch.linalg.svd(means - means.mean(0), full_matrices=False)
    kept = found.Vh[1e-5 * float(found.S[0]) < found.S][:most]
    return torch.linalg.qr(kept.T)[0]


def features_at(swaps: list[Swaps], values: NDArray[np.int64]) -> tuple[Tensor, NDArray[np.int64]]:
    """(M, E) the mean stream of the bases over the tokens of a site, and the variable's values (M,)."""
    features, chosen = [], []
    for own in swaps:
        states = own.streams.base[own.site.module][own.chosen]
        weights = own.tokens / own.tokens.sum(-1, keepdim=True)
        features.append((states * weights[..., None]).sum(1))
        chosen.append(own.streams.numbers[own.chosen])
    return torch.cat(features), values[torch.cat(chosen).numpy()]


def train_basis(
    swaps: list[Swaps],
    start: Tensor,
    directions: int,
    steps: int = STEPS,
    batch: int = BATCH,
    seed: int = 0,
    progress: Progress | None = None,
) -> Tensor:
    """(E, k): so many orthonormal directions, trained on these pairs; or the start (E, k or fewer), if it does better.

    Training begins at the start, with random directions beside it. The model's weights stay as they are.
    """
    generator = torch.Generator().manual_seed(seed)
    more = torch.randn(len(start), directions - start.shape[1], generator=generator) * len(start) ** -0.5
    weights = torch.cat([start, more], 1).requires_grad_()
    optimizer = torch.optim.Adam([weights], lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / WARM_UP) * (1 - step / steps)
    )
    shares = torch.tensor([float(len(each)) for each in swaps])
    with Fixed(swaps[0].streams.model), torch.enable_grad():
        for step in range(steps):
            own = swaps[int(torch.multinomial(shares, 1, generator=generator))]
            part = torch.randint(len(own), (min(batch, len(own)),), generator=generator)
            logits = own.logits(part, torch.linalg.qr(weights)[0])
            loss = nn.functional.cross_entropy(logits.flatten(0, -2), own.labels(part).flatten(), ignore_index=IGNORED)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            if progress is not None:
                progress(step + 1, steps)
    trained = torch.linalg.qr(weights.detach())[0]
    pairs = int(max(each.streams.numbers.max() for each in swaps)) + 1
    reached = [np.nanmean(answers_as_expected(swaps, basis, pairs)) for basis in (start, trained)]
    return trained if reached[1] >= reached[0] else start


class Fixed:
    """Within the context, no weight of a model gets a gradient, and it is in evaluation mode."""

    def __init__(self, model: HeadcountPreTrainedModel):
        self.model, self.wanted, self.was_training = (
            model,
            [p.requires_grad for p in model.parameters()],
            model.training,
        )

    def __enter__(self) -> None:
        self.model.eval().requires_grad_(False)

    def __exit__(self, *error: object) -> None:
        self.model.train(self.was_training)
        for parameter, wanted in zip(self.model.parameters(), self.wanted, strict=True):
            parameter.requires_grad_(wanted)


def answers_as_expected(swaps: list[Swaps], basis: Tensor, n: int) -> NDArray[np.float64]:
    """(n,): 1 where the whole answer is the one expected, 0 where not, NaN for pairs that have no such tokens."""
    found = np.full(n, np.nan)
    with torch.no_grad():
        for own in swaps:
            for part in torch.arange(len(own)).split(ROWS_AT_ONCE):
                found[own.streams.numbers[own.chosen[part]].numpy()] = _right(own, part, basis).numpy()
    return found


def _right(own: Swaps, part: Tensor, basis: Tensor) -> Tensor:
    logits = own.logits(part, basis)
    best, labels = logits.argmax(-1), own.labels(part)
    if labels.ndim == 1:
        return best == labels
    return ((best == labels) | (labels == IGNORED)).all(-1)


def random_bases(hidden: int, directions: int, count: int, seed: int = 0) -> Iterator[Tensor]:
    """Controls: as many directions, drawn at random."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(count):
        yield torch.linalg.qr(torch.randn(hidden, directions, generator=generator))[0]
