"""Versions of a model, each with some heads changed, run as quickly as the architecture allows.

Three ways give the same outputs, and rows of an ablation say which one was used:

- `prefix reuse`: heads of one layer together. Everything below that layer, and the whole encoder for heads of the
  decoder, runs once; where the layer begins, the batch is repeated, one copy per head.
- `folding`: the batch is repeated from the start, one copy per head.
- `loop`: one pass per head.

Not every architecture survives the first two (some look at the batch again after the last layer, CLIP compares all
examples with each other). So outputs are checked against the loop, on every batch, and the next way is taken if they
differ.

Shapes: V versions, B rows of a batch.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn
from transformers.modeling_outputs import ModelOutput

from ..modeling.stock.finding import AttentionLayer, Head, attention_layers
from ..modeling.stock.gates import Change, change_heads


WAYS = ("prefix reuse", "folding", "loop")
TOKENS_AT_ONCE = 8_192  # more does not fit the caches of a processor
NUMBERS_AT_ONCE = 2**28  # of outputs: 1 GB of float32
TOLERANCE = 1e-4  # of the largest output: kernels differ in the last digits from one batch size to the next

Batch = Mapping[str, Any]
Replacements = dict[str, Tensor]  # attention layer -> (B or 1, Q, H, D)


class VersionRunner:
    """Runs versions of one model. `way` is what it uses now, `reason` why it is not the first choice."""

    def __init__(self, model, run: Callable | None = None, way: str | None = None):
        if way is not None and way not in WAYS:
            raise ValueError(f"way={way!r} is not known; expected one of {', '.join(WAYS)}.")
        if way == "prefix reuse" and run is not None:
            raise ValueError("way='prefix reuse' needs the model's own forward; expected no `run` with it.")
        self.model, self.run, self.layers = model, run, attention_layers(model)
        self.is_fixed, self.reason = way is not None, None
        self.way = way or ("prefix reuse" if run is None else "folding")
        self.batches, self.output_size = 0, 0

    def versions(
        self, batch: Batch, heads: list[Head], replacements: Replacements | None = None
    ) -> Iterator[tuple[Head, Any]]:
        """The outputs of the model without each of the heads, one after the other, in any order.

        Where a way turns out not to suit, all heads come again: the last outputs of a head count.
        """
        inputs = self.prepare(batch)
        while True:
            try:
                groups = list(self._groups(inputs, heads))
                memory = self._memory(inputs)
                checked = self._checked(groups)
                for number, group in enumerate(groups):
                    outputs = self._together(inputs, group, replacements, memory)
                    if number in checked and self.way != "loop":
                        self._check(inputs, group[-1], replacements, outputs[-1])
                    yield from zip(group, outputs, strict=True)
                break
            except _Differs as error:
                if self.is_fixed:
                    raise ValueError(
                        f"way={self.way!r} does not suit {type(self.model).__name__}: {error}."
                    ) from error
                self.reason = f"{self.way} does not suit {type(self.model).__name__}: {error}"
                self.way = WAYS[WAYS.index(self.way) + 1]
        self.batches += 1

    def _checked(self, groups: list[list[Head]]) -> list[int]:
        """Which groups are compared with the loop: in the first batch one of every stack, then one after the other."""
        if self.batches:
            return [self.batches % len(groups)]
        return list({group[0].stack: number for number, group in enumerate(groups)}.values())

    def plain(self, batch: Batch, record: dict[nn.Module, Tensor] | None = None):
        """The intact model's outputs; `record` collects what its heads put out."""
        inputs = self.prepare(batch)
        if record is None:
            outputs = self._call(inputs)
        else:
            with change_heads(self.model, {}, record):
                outputs = self._call(inputs)
        self.output_size = sum(value.numel() for value in numbers(outputs).values())
        return outputs

    def prepare(self, batch: Batch) -> dict[str, Any]:
        """What the model is called with: on its device, without labels, because a loss is not one example's."""
        inputs = {n: v.to(self.model.device) if isinstance(v, Tensor) else v for n, v in batch.items()}
        if self.run is not None:
            return inputs
        labels = inputs.pop("labels", None)
        makes_inputs = getattr(self.model, "prepare_decoder_input_ids_from_labels", None)
        if labels is not None and makes_inputs and self.model.config.is_encoder_decoder:
            inputs.setdefault("decoder_input_ids", makes_inputs(labels))
        return inputs

    def _call(self, inputs: dict):
        return self.run(self.model, inputs) if self.run is not None else self.model(**inputs)

    def _groups(self, inputs: dict, heads: list[Head]) -> Iterator[list[Head]]:
        size = 1 if self.way == "loop" else heads_at_once(inputs, self.output_size)
        layers = [[head for head in heads if head.attention == layer] for layer in self.layers]
        for group in layers if self.way == "prefix reuse" else [heads]:
            for start in range(0, len(group), size):
                yield group[start : start + size]

    def _memory(self, inputs: dict):
        """The encoder's states for the heads of the decoder."""
        if self.way != "prefix reuse" or not _has_two_stacks(self.model):
            return None
        return self._encoder(inputs)

    def _encoder(self, inputs: dict):
        encoder = self.model.get_encoder()
        return encoder(**{name: value for name, value in inputs.items() if not _is_for_decoder(name)})

    def _together(self, inputs: dict, group: list[Head], replacements, memory) -> list:
        rows, count = batch_rows(inputs), len(group)
        changes = changes_for(self.layers, group, rows, replacements)
        if self.way == "loop":
            with change_heads(self.model, changes, layers=self.layers):
                return [self._call(inputs)]
        if self.way == "folding":
            with change_heads(self.model, changes, layers=self.layers):
                outputs = self._call(repeat(inputs, count, rows))
            return split(outputs, count, rows)
        layer = self.layers[group[0].attention]
        if not any(part.isdigit() for part in layer.path.split(".")):
            raise _Differs(f"{layer.path} is not in a list of layers")
        with ExitStack() as stack:
            stack.enter_context(change_heads(self.model, changes, layers=self.layers))
            for block in _blocks_from(self.model, layer):
                hook = block.register_forward_pre_hook(_growing(rows, count), with_kwargs=True)
                stack.callback(hook.remove)
            try:
                return split(self._from_block(inputs, layer, memory, rows, count), count, rows)
            except (RuntimeError, IndexError, TypeError, ValueError) as error:
                # A model that cannot take a batch that grows on the way; the next way takes it whole.
                raise _Differs(f"it cannot go on with a larger batch ({type(error).__name__})") from error

    def _from_block(self, inputs: dict, layer: AttentionLayer, memory, rows: int, count: int):
        options = {"use_cache": False} if getattr(self.model.config, "use_cache", None) is not None else {}
        if memory is None:
            return self.model(**inputs, **options)
        for_decoder = {name: value for name, value in inputs.items() if _is_for_both(name) or _is_for_decoder(name)}
        if layer.name.startswith("decoder."):
            return self.model(**for_decoder, encoder_outputs=memory, **options)
        return self.model(**repeat(for_decoder, count, rows), encoder_outputs=self._encoder(inputs), **options)

    def _check(self, inputs: dict, head: Head, replacements, outputs) -> None:
        """Raises if a version differs from the same version in a pass of its own."""
        changes = changes_for(self.layers, [head], batch_rows(inputs), replacements)
        with change_heads(self.model, changes, layers=self.layers):
            alone = self._call(inputs)
        wanted, found = numbers(alone), numbers(outputs)
        if not wanted and outputs != alone:  # texts, for example, that `run` made
            raise _Differs("its outputs differ in a larger batch")
        for name in wanted:
            if name not in found or found[name].shape != wanted[name].shape:
                raise _Differs(f"its {name} has another shape in a larger batch")
            scale = max(1e-6, float(wanted[name].abs().max())) if wanted[name].numel() else 1.0
            allowed = max(TOLERANCE, 8 * torch.finfo(self.model.dtype).eps) * scale
            if not torch.allclose(found[name], wanted[name], rtol=0, atol=allowed, equal_nan=True):
                raise _Differs(f"its {name} differs in a larger batch")


class _Differs(Exception):
    """A way to run versions does not give what one pass per version gives."""


def changes_for(
    layers: dict[str, AttentionLayer], group: list[Head], rows: int, replacements: Replacements | None
) -> dict[str, Change]:
    """One version per head: version v, the rows v * B to (v + 1) * B, is without head v."""
    changes = {}
    for name in dict.fromkeys(head.attention for head in group):
        own = layers[name].heads
        gate = torch.ones(len(group), len(own))
        for version, head in enumerate(group):
            if head.attention == name:
                gate[version, own.index(head.number)] = 0.0
        replacement = None if replacements is None else replacements[name]
        if len(group) == 1:
            changes[name] = Change(gate, replacement)
            continue
        if replacement is not None and replacement.shape[0] > 1:
            replacement = replacement.repeat(len(group), 1, 1, 1)
        changes[name] = Change(gate.repeat_interleave(rows, dim=0), replacement)
    return changes


def batch_rows(inputs: Batch) -> int:
    sizes = [value.shape[0] for value in inputs.values() if isinstance(value, Tensor) and value.ndim]
    if not sizes:
        raise ValueError("a batch has no tensors; expected the model's inputs by name, such as input_ids.")
    return sizes[0]


def heads_at_once(inputs: Batch, output_size: int) -> int:
    """As many as fit: the tokens of all copies, and their outputs, which a large vocabulary makes the larger part."""
    tokens = max(v.shape[0] * (v.shape[1] if v.ndim == 2 and not v.is_floating_point() else 64)
                 for v in inputs.values() if isinstance(v, Tensor) and v.ndim)  # fmt: skip
    return max(2, min(TOKENS_AT_ONCE // tokens, NUMBERS_AT_ONCE // max(1, output_size)))


def repeat(value, times: int, rows: int, least: int = 1):
    """Tensors with one entry per row and `least` axes, repeated; containers are gone through, anything else stays."""
    if isinstance(value, Tensor):
        per_row = value.ndim >= least and value.shape[0] == rows
        return value.repeat(times, *[1] * (value.ndim - 1)) if per_row and times > 1 else value
    return _through(value, lambda part: repeat(part, times, rows, least))


def split(outputs, count: int, rows: int) -> list:
    """The outputs of every version; a loss over all versions is left out."""
    if isinstance(outputs, Mapping):
        outputs = type(outputs)(**{n: v for n, v in outputs.items() if not isinstance(v, Tensor) or v.ndim})

    def part(value, version: int):
        if isinstance(value, Tensor):
            whole = value.ndim > 0 and value.shape[0] == count * rows
            return value[version * rows : (version + 1) * rows] if whole else value
        if isinstance(value, list) and len(value) == count * rows:
            return value[version * rows : (version + 1) * rows]
        return _through(value, lambda inner: part(inner, version))

    return [part(outputs, version) for version in range(count)]


def numbers(outputs) -> dict[str, Tensor]:
    """The tensors of outputs; what `run` gives may have none."""
    if isinstance(outputs, Tensor):
        return {"output": outputs.float()}
    if not isinstance(outputs, Mapping):
        return {}
    return {name: value.float() for name, value in outputs.items() if isinstance(value, Tensor) and value.ndim}


def _through(value, each: Callable):
    if isinstance(value, ModelOutput):
        return type(value)(**{name: each(part) for name, part in value.items()})
    if type(value) in (tuple, list):
        return type(value)(each(part) for part in value)
    if type(value) is dict:
        return {name: each(part) for name, part in value.items()}
    return value


def _growing(rows: int, count: int) -> Callable:
    def hook(block, arguments, options):
        # What a block gets in one axis is about positions, not rows.
        return repeat(arguments, count, rows, least=2), repeat(options, count, rows, least=2)

    return hook


def _blocks_from(model, layer: AttentionLayer) -> list[nn.Module]:
    """The block that holds an attention layer, and those after it."""
    parts = layer.path.split(".")
    place = next(i for i, part in enumerate(parts) if part.isdigit())
    return list(model.get_submodule(".".join(parts[:place])))[int(parts[place]) :]


def _has_two_stacks(model) -> bool:
    return bool(getattr(model.config, "is_encoder_decoder", False)) and hasattr(model, "get_encoder")


def _is_for_decoder(name: str) -> bool:
    return name.startswith(("decoder_", "cross_attn"))


def _is_for_both(name: str) -> bool:
    return name == "attention_mask"
