"""One engine for everything that switches heads off, weakens or replaces them.

It takes a model, rows of tokens and any number of gates (`{"encoder.0.self.3": 0.0}`; heads that are not named stay as
they are) and gives the outcome of every gate on every example. Ablation sweeps, pruning, Shapley values and the
carry study are all small generators of gates for it.

It is exact, and faster than one pass per gate, because versions of the model that have not yet differed share their
states: the walk goes through the layers once with S distinct states (S, B, L, E) and parts them at the first layer
where two gates differ. So layers below an ablated head are computed once, the encoder is not repeated for heads of the
decoder, and heads are folded into the batch. Greedy exact match is decided by one parallel pass (see
trainers/evaluation.py: an answer is generated exactly right if and only if every teacher-forced argmax is right).

Shapes: V gates (versions of the model), S distinct states, B rows of one batch, N all rows, T labelled places,
L tokens, E hidden size, H heads, D head dimension.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..data_builders.tokenization import IGNORED


Rows = dict[str, Tensor]  # input_ids (N, L), labels (N, T) or (N,), attention_mask where there is padding
Gates = Mapping[str, float]

MODES = {
    "zero": "the head's output becomes zero",
    "mean": "the head's output becomes its mean over the data, place by place",
    "resample": "the head's output becomes that of another example",
}
TOKENS_AT_ONCE = (
    24_576  # states held at one time, S * B * L: large enough for the cores, small enough for their caches
)
FEWEST_ROWS = 32


@dataclass(frozen=True)
class Outcomes:
    """What every version of the model does on every example."""

    gates: list[dict[str, float]]
    tokens: NDArray[np.int64]  # (V, N, T): argmax for every label, teacher-forced; -100 where there is no label
    labels: NDArray[np.int64]  # (N, T)
    loss: NDArray[np.float32]  # (V, N): summed over the labels of an example

    @property
    def right(self) -> NDArray[np.bool_]:
        """(V, N): greedy generation gives exactly the labels; of a classifier, its class is right."""
        return (self.tokens == self.labels).all(-1)

    @property
    def hits(self) -> NDArray[np.bool_]:
        """(V, N, T): the argmax is right, given the right tokens before it; False where there is no label."""
        return (self.tokens == self.labels) & (self.labels != IGNORED)


def one_head_at_a_time(model) -> Iterator[dict[str, float]]:
    """The intact model first, then the gates of an ablation sweep."""
    yield {}
    for head in model.list_heads():
        yield {head: 0.0}


@torch.inference_mode()
def ablate(
    model,
    rows: Rows,
    gates: Iterable[Gates],
    mode: str = "zero",
    donors: Rows | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Outcomes:
    """The outcome of every gate on every row.

    >>> outcomes = ablate(model, rows, one_head_at_a_time(model))
    >>> intact, without_head = outcomes.right[0], outcomes.right[1:]

    A gate g makes g * (the head's output) + (1 - g) * (its replacement), and `mode` says what replaces it. `donors`
    are the rows to resample from, one for each row and of the same lengths; without them every row takes another row
    of its own length, drawn by `seed`.
    """
    gates = [dict(gate) for gate in gates]
    table = _gate_table(model, gates)
    if mode not in MODES:
        raise ValueError(f"mode={mode!r} is not known; expected one of {', '.join(MODES)}.")
    if donors is not None and mode != "resample":
        raise ValueError(f"donors have no effect with mode={mode!r}; expected mode='resample'.")
    was_training = model.training
    model.eval()
    labels = _labelled(model, rows["labels"])
    tokens = torch.full((len(gates), *labels.shape), IGNORED)
    loss = torch.zeros(len(gates), len(labels))
    done, total = 0, len(gates) * len(labels)
    try:
        for group in _rows_of_one_length(rows, donors):
            partners = None
            if mode == "resample" and donors is None:
                partners = _partners(group, seed)
            means = _mean_outputs(model, rows, group) if mode == "mean" else None
            for part, versions, walk in _portions(rows, group, table):
                batch = _cut(rows, part)
                if mode == "zero":
                    replacements = None
                elif mode == "mean":
                    replacements = means
                else:
                    donor = _cut(rows, partners[part]) if donors is None else _cut(donors, part)
                    replacements = head_outputs(model, donor)
                best, cost = _score(model, walk.logits(model, batch, replacements), batch["labels"])
                index = versions[:, None], part[None]
                tokens[index[0], index[1], : best.shape[-1]] = best[walk.state_of].to(tokens)
                loss[index] = cost[walk.state_of].to(loss)
                done += len(part) * len(versions)
                if progress is not None:
                    progress(done, total)
    finally:
        model.train(was_training)
    tokens.masked_fill_(labels == IGNORED, IGNORED)
    return Outcomes(gates, tokens.numpy(), labels.numpy(), loss.numpy())


@torch.inference_mode()
def head_outputs(model, batch: Rows) -> dict[str, Tensor]:
    """What every head of the intact model puts out on a batch: layer name -> (B, H, L, D)."""
    recorded: dict[str, Tensor] = {}
    _Walk({}).logits(model, batch, record=recorded)
    return recorded


class _Walk:
    """Goes through the stacks with all versions at once; `state_of` (V,) tells in which state each version is.

    `gates` holds a table (V, H) for every attention layer. Where versions part depends on them alone, so a walk that
    is taken again, over other rows, knows the way.
    """

    def __init__(self, gates: dict[str, Tensor]):
        self.versions = len(next(iter(gates.values()))) if gates else 1
        self.patterns = {  # layer -> distinct rows of its table, and which of them each version has
            name: table.unique(dim=0, return_inverse=True) for name, table in gates.items() if bool((table != 1).any())
        }
        self.partings: dict[str, tuple[Tensor, Tensor, Tensor]] = {}

    def logits(
        self,
        model,
        batch: Rows,
        replacements: dict[str, Tensor] | None = None,
        record: dict[str, Tensor] | None = None,
    ) -> Tensor:
        """Logits of the distinct states (S, B, ...); `state_of` then says in which of them each version ends.

        `replacements` (B or 1, H, L, D) are what a closed gate lets through instead of zero; `record` receives what
        the heads of the first state put out.
        """
        self.state_of = torch.zeros(self.versions, dtype=torch.long)
        stacks, input_ids = model.base_model, batch["input_ids"]
        through = partial(self._through, replacements=replacements, record=record)
        if not model.config.is_encoder_decoder:
            states = through(stacks.first_stack, stacks.first_stack.prepare(input_ids))
        else:
            prepared = stacks.encoder.prepare(input_ids)
            memory = through(stacks.encoder, prepared)
            decoder_input_ids = model.prepare_decoder_input_ids_from_labels(batch["labels"])
            decoder_prepared = stacks.decoder.prepare(
                decoder_input_ids, encoder_hidden_states=memory[0], encoder_position_ids=prepared[1]
            )
            states = through(stacks.decoder, decoder_prepared, memory)
        distinct, size = states.shape[:2]
        return model.read_out(states.flatten(0, 1)).unflatten(0, (distinct, size))

    def _through(self, stack: nn.Module, prepared: tuple, memory: Tensor | None = None, **how) -> Tensor:
        """The last states of a stack, (S, B, L, E). `memory` are the encoder's, one for each of its states."""
        hidden_states, _, self_inputs, cross_inputs = prepared
        states, memory_of = hidden_states[None], self.state_of
        self.state_of = torch.zeros_like(memory_of)
        attend = partial(self._attention, **how)
        for layer in stack.layers:
            states = attend(layer, layer.self_attn, layer.self_attn_norm, states, self_inputs)
            if layer.cross_attn is not None:
                # From here on a state is what the decoder holds together with what it reads from the encoder.
                held, read_from, self.state_of = self._part(f"memory of {layer.cross_attn.name}", memory_of)
                states = states if len(held) == len(states) else states[held]
                keys_and_values = self._read(layer.cross_attn, memory, read_from, cross_inputs)
                inputs = {**cross_inputs, "keys_and_values": keys_and_values}
                states = attend(layer, layer.cross_attn, layer.cross_attn_norm, states, inputs)
            states = layer.feed(states)
        return stack.final_norm(states)

    def _part(self, name: str, kind_of: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Parts the versions in a state by their kind: of every new state the old one and the kind, and `state_of`."""
        if name not in self.partings:
            kinds = int(kind_of.max()) + 1
            keys, state_of = (self.state_of * kinds + kind_of).unique(return_inverse=True)
            self.partings[name] = keys // kinds, keys % kinds, state_of
        return self.partings[name]

    def _read(self, attention, memory: Tensor, memory_of: Tensor, inputs: dict) -> tuple[Tensor, ...]:
        """Keys and values (S * B, H, K, D) for every state: computed once for each of the encoder's states."""
        known, size = memory.shape[:2]
        ids = _repeat(inputs["k_ids"], known, size)
        found = attention.keys_and_values(memory.flatten(0, 1), inputs["position_encoding"], ids)
        return tuple(value.unflatten(0, (known, size))[memory_of].flatten(0, 1) for value in found)

    def _attention(self, layer, attention, norm, states: Tensor, inputs: dict, replacements, record) -> Tensor:
        """One attention sublayer: heads put out the same for all versions in a state, which then part by gates."""
        distinct, size = states.shape[:2]
        entered = layer.enter(states, norm).flatten(0, 1)
        output, _ = attention.attend(entered, **{n: _repeat(v, distinct, size) for n, v in inputs.items()})
        output = output.unflatten(0, (distinct, size))  # (S, B, H, L, D)
        if record is not None:
            record[attention.name] = output[0]

        if attention.name in self.patterns:
            patterns, pattern_of = self.patterns[attention.name]
            source, pattern, self.state_of = self._part(f"gates of {attention.name}", pattern_of)
            gate = patterns[pattern].to(output)[:, None, attention.heads, None, None]  # (S', 1, H, 1, 1)
            if distinct > 1:  # a single state is broadcast
                states, output = states[source], output[source]
            output = output * gate
            if replacements is not None:
                output += (1 - gate) * replacements[attention.name]
        merged = attention.merge(output.flatten(0, 1)).unflatten(0, (len(output), size))
        return layer.leave(states, merged, norm)


def _repeat(value, times: int, size: int):
    """A tensor of one entry per row, repeated for every state; what all rows share stays as it is."""
    per_row = isinstance(value, Tensor) and value.ndim > 0 and value.shape[0] == size and times > 1 and size > 1
    return value.repeat(times, *[1] * (value.ndim - 1)) if per_row else value


def _gate_table(model, gates: list[dict[str, float]]) -> dict[str, Tensor]:
    """Attention layer -> (V, all heads)."""
    heads, known = model.config.num_attention_heads, set(model.list_heads())
    table = {name: torch.ones(len(gates), heads) for name in model.attention_modules()}
    for version, gate in enumerate(gates):
        for head, value in gate.items():
            if head not in known:
                model.head_mask_for([head])  # raises for a name that does not exist
                raise ValueError(f"{head!r} has been pruned; expected heads that are there: see list_heads().")
            layer, number = head.rsplit(".", 1)
            table[layer][version, int(number)] = value
    return table


def _labelled(model, labels: Tensor) -> Tensor:
    """(N, T): the labels, each in the place where the model predicts it."""
    if labels.ndim == 1:
        return labels[:, None]
    return labels if model.config.is_encoder_decoder else labels[:, 1:]


def _score(model, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Argmax (S, B, T) and summed loss (S, B)."""
    labels = _labelled(model, labels)
    if logits.ndim == 3:  # a classifier: (S, B, classes)
        logits = logits[:, :, None]
    elif not model.config.is_encoder_decoder:
        logits = logits[:, :, :-1]
    every = labels.expand(len(logits), *labels.shape)
    loss = nn.functional.cross_entropy(logits.flatten(0, 2), every.flatten(), ignore_index=IGNORED, reduction="none")
    return logits.argmax(-1), loss.view(every.shape).sum(-1)


def row_lengths(rows: Rows) -> Tensor:
    """(N, 2): tokens and labelled places of every row, padding on the right left out."""
    count, width = rows["input_ids"].shape
    mask = rows.get("attention_mask")
    tokens = torch.full((count,), width) if mask is None else mask.sum(-1)
    if mask is not None and bool((mask[:, 1:] > mask[:, :-1]).any()):
        raise ValueError("attention_mask hides tokens before others; expected padding on the right only.")
    labels = rows["labels"]
    places = torch.ones(count, dtype=torch.long)
    if labels.ndim == 2:
        slots = torch.arange(1, labels.shape[1] + 1)
        places = ((labels != IGNORED) * slots).amax(-1)
    return torch.stack([tokens, places], 1)


def _rows_of_one_length(rows: Rows, donors: Rows | None) -> Iterator[Tensor]:
    """Indices of rows that need no padding beside each other."""
    lengths = row_lengths(rows)
    if donors is not None and not torch.equal(lengths, row_lengths(donors)):
        raise ValueError("donors differ from the rows in number or lengths; expected one of the same length for each.")
    _, group_of = lengths.unique(dim=0, return_inverse=True)
    for group in range(int(group_of.max()) + 1):
        yield (group_of == group).nonzero()[:, 0]


def _partners(group: Tensor, seed: int) -> Tensor:
    """(N,) on the rows of the group: another row of it."""
    if len(group) < 2:
        raise ValueError("only one row has its length, so there is none to resample from; expected at least two.")
    shuffled = group[torch.randperm(len(group), generator=torch.Generator().manual_seed(seed))]
    partners = torch.zeros(int(group.max()) + 1, dtype=torch.long)
    partners[shuffled] = shuffled.roll(1)
    return partners


def _cut(rows: Rows, part: Tensor) -> Rows:
    """Some rows of one length, without padding."""
    tokens, places = row_lengths({name: values[part[:1]] for name, values in rows.items()})[0].tolist()
    labels = rows["labels"][part]
    return {
        "input_ids": rows["input_ids"][part, :tokens],
        "labels": labels if labels.ndim == 1 else labels[:, :places],
    }


def _portions(rows: Rows, group: Tensor, table: dict[str, Tensor]) -> Iterator[tuple[Tensor, Tensor, _Walk]]:
    """Rows and versions to walk with together. Versions are sorted so that those that part late stay together."""
    versions = len(next(iter(table.values())))
    keys = torch.cat(list(table.values()), dim=1).numpy()
    order = torch.from_numpy(np.lexsort(keys.T[::-1]))
    length = int(row_lengths({name: values[group[:1]] for name, values in rows.items()}).sum())
    size = max(FEWEST_ROWS, TOKENS_AT_ONCE // (length * versions))
    block = max(1, TOKENS_AT_ONCE // (length * min(size, len(group))))
    walks = [(some, _Walk({name: gates[some] for name, gates in table.items()})) for some in order.split(block)]
    for part in group.split(size):
        for some, walk in walks:
            yield part, some, walk


def _mean_outputs(model, rows: Rows, group: Tensor) -> dict[str, Tensor]:
    """The mean of every head's output over the rows of a group: layer name -> (1, H, L, D)."""
    total: dict[str, Tensor] = {}
    length = int(row_lengths({name: values[group[:1]] for name, values in rows.items()}).sum())
    for part in group.split(max(FEWEST_ROWS, TOKENS_AT_ONCE // length)):
        for name, output in head_outputs(model, _cut(rows, part)).items():
            added = output.sum(0, keepdim=True)
            total[name] = total[name] + added if name in total else added
    return {name: output / len(group) for name, output in total.items()}
