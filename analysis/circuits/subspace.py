"""Directions of the residual stream that hold a variable: found by training, judged on pairs they have not seen.

Distributed alignment search (Geiger et al. 2023, arXiv 2303.02536): at some tokens of a stream, the part that lies in
k directions is taken from the run on the source, everything else stays the base's:

    states = base + Q Q^T (source - base),    Q (E, k) with orthonormal columns.

Q starts from the directions in which the stream's mean differs between values of the variable, and is trained, with
the model fixed, so that the model writes the answer that is right if just the variable is the source's.

A `Spot` is one stream at the tokens of one or more places, each with directions of its own; tokens of one place share
them. Places of the variable (the units column, the tens column) have directions of their own where there are pairs
enough, because a model need not keep a variable in the same directions everywhere. The pass goes on from the stream,
so what lies below it is computed once for all steps.

Shapes: N pairs, L tokens, E hidden size, k directions, T labelled places; P places with directions of their own, S
sites of a spot. A basis is (P, S, E, k).
"""

from collections.abc import Iterable
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


STEPS = 150
BATCH = 96
LEARNING_RATE = 0.02
WARM_UP = 10  # steps; then the rate falls to zero in a line
ROWS_AT_ONCE = 500


class Spot(tuple[Site, ...]):
    """Sites of one residual stream that are swapped together.

    >>> Spot([Site("encoder.1.residual@column"), Site("encoder.1.residual@left")]).name
    'encoder.1.residual@column+left'
    """

    @property
    def stream(self) -> Site:
        return Site(self[0].place)

    @property
    def name(self) -> str:
        return f"{self.stream}@{'+'.join(str(site.role) for site in self)}"


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
    """Pairs of one length at a spot: whose stream is changed at which tokens."""

    streams: Streams
    spot: Spot
    chosen: Tensor  # (M,): the pairs that have such tokens
    tokens: Tensor  # (M, S, L)
    places: Tensor  # (M,): whose directions a pair has

    def __len__(self) -> int:
        return len(self.chosen)

    @property
    def numbers(self) -> NDArray[np.int64]:
        """(M,): which of all pairs these are."""
        return self.streams.numbers[self.chosen].numpy()

    def only(self, places: Iterable[int]) -> "Swaps":
        """The pairs at some places."""
        kept = torch.isin(self.places, torch.tensor(sorted(places))).nonzero()[:, 0]
        return Swaps(self.streams, self.spot, self.chosen[kept], self.tokens[kept], self.places[kept])

    def logits(self, part: Tensor, basis: Tensor) -> Tensor:
        """Of some pairs, with the part of the stream within the basis (P, S, E, k) taken from the source."""
        own, streams, stream = self.chosen[part], self.streams, self.spot.stream
        base, source = (side[stream.module][own] for side in (streams.base, streams.source))
        directions = basis[self.places[part]] if len(basis) > 1 else basis  # (B or 1, S, E, k)
        states = base
        for number in range(len(self.spot)):
            change = (source - base) * self.tokens[part, number, :, None]
            states = states + change @ directions[:, number] @ directions[:, number].mT
        rows = {name: values[own] for name, values in streams.rows.items()}
        memory = streams.memory[own] if streams.memory is not None and stream.stack == "decoder" else None
        return logits_from(streams.model, rows, stream, states, memory)

    def labels(self, part: Tensor) -> Tensor:
        """In the places of the logits; what a decoder alone says about the question does not count."""
        labels = self.streams.rows["labels"][self.chosen[part]]
        if predicts_next(self.streams.model):
            return nn.functional.pad(labels[:, 1:], (0, 1), value=IGNORED)
        return labels


def make_swaps(
    streams: list[Streams], pairs: PairedExamples, spot: Iterable[Site], by_place: bool = False
) -> list[Swaps]:
    """The pairs by their length, at one spot; those that lack any of its tokens are left out.

    `by_place`: directions differ by the place of the variable; else all pairs share them.
    """
    model, spot = streams[0].model, Spot(spot)
    side = "answer" if spot.stream.stack == "decoder" and model.config.is_encoder_decoder else "input"
    roles = pairs.roles(side)
    assert all(site.role is not None for site in spot)  # a variable is at some tokens
    tokens = torch.from_numpy(np.stack([roles.where(str(site.role), site.index) for site in spot], 1))
    places = torch.from_numpy(pairs.index if by_place else np.zeros_like(pairs.index))
    found = []
    for own in streams:
        here = tokens[own.numbers, :, : own.base[spot.stream.module].shape[1]]
        chosen = here.any(-1).all(-1).nonzero()[:, 0]
        if len(chosen):
            found.append(Swaps(own, spot, chosen, here[chosen].to(model.dtype), places[own.numbers[chosen]]))
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


def value_directions(swaps: list[Swaps], values: NDArray[np.int64], places: int, directions: int) -> Tensor:
    """(P, S, E, k): where the mean stream differs most between values (N,) of the bases; what is left over is zero.

    There are at most one fewer of them than values. The stream is the mean over the tokens of a site.
    """
    sites, hidden = len(swaps[0].spot), swaps[0].streams.model.config.hidden_size
    basis = torch.zeros(places, sites, hidden, directions)
    for number in range(sites):
        features, known, place = features_at(swaps, values, number)
        for here in place.unique().tolist():
            own, there = known[place.numpy() == here], features[place == here]
            means = torch.stack([there[own == value].mean(0) for value in np.unique(own)])
            found = torch.linalg.svd(means - means.mean(0), full_matrices=False)
            kept = found.Vh[1e-5 * float(found.S[0]) < found.S][:directions]
            basis[here, number, :, : len(kept)] = torch.linalg.qr(kept.T)[0]
    return basis


def features_at(
    swaps: list[Swaps], values: NDArray[np.int64], number: int = 0
) -> tuple[Tensor, NDArray[np.int64], Tensor]:
    """(M, E) the mean stream of the bases over the tokens of a spot's site, the variable's values (M,), the places."""
    features = []
    for own in swaps:
        states, tokens = own.streams.base[own.spot.stream.module][own.chosen], own.tokens[:, number]
        features.append((states * (tokens / tokens.sum(-1, keepdim=True))[..., None]).sum(1))
    numbers = np.concatenate([own.numbers for own in swaps])
    return torch.cat(features), values[numbers], torch.cat([own.places for own in swaps])


def train_basis(
    swaps: list[Swaps],
    start: Tensor,
    steps: int = STEPS,
    batch: int = BATCH,
    seed: int = 0,
    progress: Progress | None = None,
) -> Tensor:
    """(P, S, E, k): orthonormal directions, trained on these pairs.

    Training begins at the start, with random directions where that has zeros. The model's weights stay as they are.
    """
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(start.shape, generator=generator) * start.shape[-2] ** -0.5
    weights = torch.where((start == 0).all(-2, keepdim=True), drawn, start).requires_grad_()
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
    return torch.linalg.qr(weights.detach())[0]


def right_by_place(swaps: list[Swaps], basis: Tensor, places: int) -> NDArray[np.float64]:
    """(P,): the share of answers that are as expected at every place; NaN where there are no pairs."""
    with torch.no_grad():
        right = torch.cat([_right(own, part, basis) for own in swaps for part in _parts(own)])
    place = torch.cat([own.places for own in swaps])
    return np.array([float(right[place == here].float().mean()) for here in range(places)])


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
            found[own.numbers] = torch.cat([_right(own, part, basis) for part in _parts(own)]).numpy()
    return found


def _parts(own: Swaps) -> tuple[Tensor, ...]:
    return torch.arange(len(own)).split(ROWS_AT_ONCE)


def _right(own: Swaps, part: Tensor, basis: Tensor) -> Tensor:
    logits = own.logits(part, basis)
    best, labels = logits.argmax(-1), own.labels(part)
    if labels.ndim == 1:
        return best == labels
    return ((best == labels) | (labels == IGNORED)).all(-1)


def random_basis(like: Tensor, seed: int) -> Tensor:
    """A control: as many directions, drawn at random."""
    return torch.linalg.qr(torch.randn(like.shape, generator=torch.Generator().manual_seed(seed)))[0]
