"""Any transformers model with its heads and sublayers, run as it is, read, or changed.

Shapes: B rows, V versions side by side in one batch, Q queries, H heads that are left in a layer, D head dimension,
L tokens, E hidden size.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from ...modeling.modeling_headcount import HeadcountPreTrainedModel
from ...modeling.stock.changes import Change
from ...modeling.stock.finding import AttentionLayer, attention_layers
from ...modeling.stock.gates import change_heads
from ...modeling.stock.sublayers import change_sublayers, sublayer_paths
from .batches import ANSWERS, batch_rows
from .intervention import Intervention
from .sites import Site


Outputs = dict[str, tuple[Tensor, ...]]  # at every call: attention layer -> (B, Q, H, D), sublayer -> (B, L, E)
Changes = dict[str, Change]  # attention layer or sublayer -> what becomes of its output
Masks = Mapping[Site, Tensor]  # (B, tokens): the tokens that a site with a role means


@dataclass(frozen=True)
class Subject:
    """A model, how it is called, and where its attention layers and sublayers are."""

    model: PreTrainedModel
    run: Callable | None
    layers: dict[str, AttentionLayer]
    paths: dict[str, str]

    @classmethod
    def of(cls, model: PreTrainedModel, run: Callable | None = None) -> "Subject":
        return cls(model, run, attention_layers(model), sublayer_paths(model))

    def path_of(self, module: str) -> str:
        return self.layers[module].path if module in self.layers else self.paths[module]

    def prepare(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """What the model is called with: on its device, without labels, because a loss is not one example's."""
        given = {name: value for name, value in batch.items() if name != ANSWERS}
        inputs = {n: v.to(self.model.device) if isinstance(v, Tensor) else v for n, v in given.items()}
        if self.run is not None:
            return inputs
        labels = inputs.pop("labels", None)
        makes_inputs = getattr(self.model, "prepare_decoder_input_ids_from_labels", None)
        if labels is not None and makes_inputs and self.model.config.is_encoder_decoder:
            inputs.setdefault("decoder_input_ids", makes_inputs(labels))
        return inputs

    def call(self, inputs: dict[str, Any]) -> Any:
        """One pass; a model that draws random numbers on the way draws the same ones in every pass."""
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return self.run(self.model, inputs) if self.run is not None else self.model(**inputs)

    @contextmanager
    def changed(self, changes: Changes) -> Iterator[None]:
        """Within the context, attention layers and sublayers put out something else."""
        with ExitStack() as stack:
            heads = {name: change for name, change in changes.items() if name in self.layers}
            if heads:
                stack.enter_context(change_heads(self.model, heads, layers=self.layers))
            stack.enter_context(change_sublayers(self.model, self.paths, changes))
            yield

    def read(self, batch: Mapping[str, Any], modules: set[str]) -> tuple[Any, Outputs]:
        """The intact model's outputs, and what these attention layers and sublayers put out on the way."""
        by_module: dict[nn.Module, list[Tensor]] = {}
        record: dict[str, list[Tensor]] = {}
        paths = {name: path for name, path in self.paths.items() if name in modules}
        with ExitStack() as stack:
            if modules & self.layers.keys():
                stack.enter_context(change_heads(self.model, {}, by_module, self.layers))
            stack.enter_context(change_sublayers(self.model, paths, {}, record))
            outputs = self.call(self.prepare(batch))
        for name in modules & self.layers.keys():
            record[name] = by_module.get(self.layers[name].module, [])
        silent = next((name for name in sorted(modules) if not record.get(name)), None)
        if silent is not None:
            raise ValueError(
                f"{silent} of this {type(self.model).__name__} does not run on these inputs, so that it puts out "
                "nothing; expected sites of the parts that do."
            )
        return outputs, {name: tuple(record[name]) for name in modules}

    def changes_for(
        self, versions: list[Intervention], rows: int, replacements: dict[str, Outputs], masks: Masks
    ) -> Changes:
        """For versions side by side: version v is the rows v * B to (v + 1) * B."""
        modules = dict.fromkeys(site.module for each in versions for site in each.touched)
        return {name: self._change(name, versions, rows, replacements, masks) for name in modules}

    def _change(
        self, name: str, versions: list[Intervention], rows: int, replacements: dict[str, Outputs], masks: Masks
    ) -> Change:
        heads = self.layers[name].heads if name in self.layers else None
        gates = [_gate(each, each.at(name), heads, masks) for each in versions]
        if len({gate.shape for gate in gates}) > 1:
            width = max(gate.shape[1] for gate in gates)
            gates = [gate.expand(rows, width, *gate.shape[2:]) for gate in gates]
        gate = gates[0] if len(versions) == 1 else torch.cat([gate.expand(rows, *gate.shape[1:]) for gate in gates])
        kinds = [each.replacement_at(name) for each in versions]
        found = [None if kind == "zero" else replacements[kind][name] for kind in kinds]
        counts = {len(calls) for calls in found if calls is not None}
        if not counts:
            return Change(gate)
        if len(counts) > 1:
            raise ValueError(
                f"{name} runs {' and '.join(map(str, sorted(counts)))} times in forwards that replace each other; "
                "expected as many calls in each."
            )
        by_call = ([None if calls is None else calls[call] for calls in found] for call in range(counts.pop()))
        return Change(gate, tuple(_side_by_side(each, rows) for each in by_call))


def _side_by_side(found: list[Tensor | None], rows: int) -> Tensor:
    """What replaces one call in each version, None being zero: (V * B, Q, ...), or one row for all."""
    there = [one for one in found if one is not None]
    if len(set(map(id, found))) == 1:
        return there[0] if len(there[0]) == 1 else there[0].repeat(len(found), *[1] * (there[0].ndim - 1))
    size, places = max(rows, *map(len, there)), min(one.shape[1] for one in there)  # a mean may be of longer batches
    each = [torch.zeros_like(there[0]) if one is None else one for one in found]
    return torch.cat([one[:, :places].expand(size, -1, *one.shape[2:]) for one in each])


def only_call(record: Outputs, wanted: str) -> dict[str, Tensor]:
    """The outputs of modules that run once in a forward; others are an error that says what is expected."""
    for name, calls in record.items():
        if len(calls) != 1:
            raise ValueError(
                f"{name} runs {len(calls)} times in a forward, so it has no one output; expected {wanted}."
            )
    return {name: calls[0] for name, calls in record.items()}


def _gate(each: Intervention, sites: tuple[Site, ...], heads: tuple[int, ...] | None, masks: Masks) -> Tensor:
    """(B or 1, tokens or 1, H) for the heads of an attention layer, (B or 1, tokens or 1) for a sublayer."""
    shapes = [masks[site].shape for site in sites if site.role is not None]
    gate = torch.ones(*next(iter(shapes), (1, 1)), 1 if heads is None else len(heads))
    for site in sites:
        column = 0 if heads is None or site.head is None else heads.index(site.head.number)
        value = each.gate_of(site)
        chosen = gate[..., column]
        chosen *= value if site.role is None else 1 + (value - 1) * masks[site]
    return gate[..., 0] if heads is None else gate


def numbers(outputs: Any, name: str = "output") -> dict[str, Tensor]:
    """The tensors of outputs by name, those within tuples and within other outputs too; `run` may give none."""
    if isinstance(outputs, Tensor):
        return {name: outputs.float()} if outputs.ndim or name == "output" else {}
    found: dict[str, Tensor] = {}
    if isinstance(outputs, Mapping):
        for part, value in outputs.items():
            found |= numbers(value, part if name == "output" else f"{name}.{part}")
    elif type(outputs) in (tuple, list):
        for number, value in enumerate(outputs):
            found |= numbers(value, f"{name}.{number}")
    return found


def self_check(subject: Subject, batch: Mapping[str, Any], interventions: list[Intervention]) -> None:
    """Raises unless open gates change nothing and, in models of others, closed ones something: of heads, of sublayers
    that are named.

    What the module graph takes for residual streams must be the streams: all of them replaced by themselves change
    nothing, each of them replaced by zeros changes something.
    """
    model, name = subject.model, type(subject.model).__name__
    inputs = subject.prepare(batch)
    plain = numbers(subject.call(inputs))
    with change_heads(model, {}, layers=subject.layers):
        opened = numbers(subject.call(inputs))
    for key, value in plain.items():
        if not torch.allclose(opened[key], value, rtol=1e-4, atol=1e-4, equal_nan=True):
            raise RuntimeError(
                f"{name} gives another {key} through the attention interface; its heads are "
                "not gated; expected the same: see docs/stock-models.md."
            )
    modules = {site.module for each in interventions for site in each.touched}
    first = [f"{layer.name}.{layer.heads[0]}" for layer in subject.layers.values() if layer.heads]
    sublayers = sorted(modules & subject.paths.keys())
    if isinstance(
        model, HeadcountPreTrainedModel
    ):  # its gates are its own; a head that puts out nothing is no mistake
        return
    streams = [n for n in sublayers if n.endswith(".residual")]
    groups = [("heads", first if modules & subject.layers.keys() else []), ("sublayers", sublayers)]
    for what, closed in [*groups, *((name, [name]) for name in streams)]:
        if not closed or subject.run is not None:
            continue
        changes = subject.changes_for([Intervention(tuple(map(Site, closed)))], batch_rows(batch), {}, {})
        with subject.changed(changes):
            found = numbers(subject.call(inputs))
        if all(torch.equal(found[key], value) for key, value in plain.items()):
            raise RuntimeError(
                f"{name} gives the same outputs with {what} masked; expected a change: see docs/stock-models.md for "
                "the models that can be masked."
            )
    if streams and subject.run is None:
        _check_streams(subject, batch, streams, plain)


def _check_streams(subject: Subject, batch: Mapping[str, Any], streams: list[str], plain: dict[str, Tensor]) -> None:
    _, record = subject.read(batch, set(streams))
    same = {name: Change(torch.zeros(1, 1), calls) for name, calls in record.items()}
    with subject.changed(same):
        found = numbers(subject.call(subject.prepare(batch)))
    for key, value in plain.items():
        if not torch.allclose(found[key], value, rtol=1e-4, atol=1e-4, equal_nan=True):
            raise RuntimeError(
                f"{type(subject.model).__name__} gives another {key} with {', '.join(streams)} replaced by "
                "themselves; expected layers that put out the residual stream."
            )
