"""The runners for any transformers model: versions of it side by side, as quickly as the architecture allows.

- `prefix_reuse`: interventions that begin in the same layer together. Everything below that layer, and the whole
  encoder for sites of the decoder, runs once; where the layer begins, the batch is repeated, one copy per version.
- `folding`: the batch is repeated from the start, one copy per version.
- `loop`: one pass per version.

Not every architecture survives the first two (some look at the batch again after the last layer, CLIP compares all
examples with each other). So outputs are checked against the loop, on every batch, and the next way is taken if they
differ.

Shapes: V versions, B rows of a batch.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import ModelOutput

from .batches import batch_rows
from .intervention import Intervention
from .subject import Masks, Outputs, Subject, numbers


TOKENS_AT_ONCE = 8_192  # more does not fit the caches of a processor
NUMBERS_AT_ONCE = 2**28  # of outputs: 1 GB of float32
TOLERANCE = 1e-4  # of the largest output: kernels differ in the last digits from one batch size to the next


FAILURES = (RuntimeError, LookupError, TypeError, ValueError, AttributeError, AssertionError)


class DiffersError(Exception):
    """A way to run versions does not give what one pass per version gives."""


@dataclass(frozen=True)
class Job:
    """All versions of a model on one batch. `number` is the batch's, `output_size` how much one version gives."""

    subject: Subject
    inputs: dict[str, Any]
    versions: list[Intervention]
    replacements: dict[str, Outputs]
    masks: Masks
    number: int
    output_size: int

    @property
    def rows(self) -> int:
        return batch_rows(self.inputs)

    def alone(self, version: Intervention) -> Any:
        """One pass for one version."""
        with self.subject.changed(self.subject.changes_for([version], self.rows, self.replacements, self.masks)):
            return self.subject.call(self.inputs)

    def at_once(self) -> int:
        """How many versions fit: the tokens of all copies, and their outputs, which a vocabulary makes large."""
        sizes = [
            value.shape[0] * (value.shape[1] if value.ndim == 2 and not value.is_floating_point() else 64)
            for value in self.inputs.values()
            if isinstance(value, Tensor) and value.ndim
        ]
        return max(2, min(TOKENS_AT_ONCE // max(sizes), NUMBERS_AT_ONCE // max(1, self.output_size)))


Versions = Iterator[tuple[Intervention, Any]]


def loop(job: Job) -> Versions:
    for version in job.versions:
        yield version, job.alone(version)


def folding(job: Job) -> Versions:
    size = job.at_once()
    groups = [job.versions[start : start + size] for start in range(0, len(job.versions), size)]

    def together(group: list[Intervention]) -> list:
        changes = job.subject.changes_for(group, job.rows, job.replacements, job.masks)
        with job.subject.changed(changes):
            try:
                outputs = job.subject.call(repeat(job.inputs, len(group), job.rows))
            except FAILURES as error:  # inputs that are packed together, such as the patches of several images
                raise DiffersError(f"it cannot take copies of its inputs ({type(error).__name__})") from error
        return split(outputs, len(group), job.rows)

    yield from _checked(job, groups, together)


def prefix_reuse(job: Job) -> Versions:
    model, size = job.subject.model, job.at_once()
    if job.subject.run is not None:
        raise DiffersError("it needs the model's own forward, without `run`")
    by_entry: dict[tuple[str, int], list[Intervention]] = {}
    for version in job.versions:
        by_entry.setdefault(_entry(job.subject, version), []).append(version)
    groups = [own[start : start + size] for own in by_entry.values() for start in range(0, len(own), size)]
    memory = None
    if _has_two_stacks(model):
        try:
            memory = _encoder(model, job.inputs)
        except FAILURES as error:
            raise DiffersError(f"its encoder does not run by itself ({type(error).__name__})") from error

    def together(group: list[Intervention]) -> list:
        container, index = _entry(job.subject, group[0])
        changes = job.subject.changes_for(group, job.rows, job.replacements, job.masks)
        with ExitStack() as stack:
            stack.enter_context(job.subject.changed(changes))
            for block in list(model.get_submodule(container))[index:]:
                hook = block.register_forward_pre_hook(_growing(job.rows, len(group)), with_kwargs=True)
                stack.callback(hook.remove)
            try:
                is_encoder = any(site.stack == "encoder" for each in group for site in each.touched)
                outputs = _from_block(model, job.inputs, memory, is_encoder, job.rows, len(group))
                return split(outputs, len(group), job.rows)
            except FAILURES as error:
                # A model that cannot take a batch that grows on the way; the next way takes it whole.
                raise DiffersError(f"it cannot go on with a larger batch ({type(error).__name__})") from error

    yield from _checked(job, groups, together)


WAYS: dict[str, Callable[[Job], Versions]] = {"prefix_reuse": prefix_reuse, "folding": folding, "loop": loop}


def _checked(job: Job, groups: list[list[Intervention]], together: Callable) -> Versions:
    """The outputs of all groups. In the first batch the first and the last version of each are compared with the loop,
    later one version of one group after the other: copies may go wrong at one end alone.
    """
    for number, group in enumerate(groups):
        outputs = together(group)
        if job.number == 0:
            checked = {0, len(group) - 1}
        else:
            checked = {job.number // len(groups) % len(group)} if job.number % len(groups) == number else set()
        for version in checked:
            _compare(job, group[version], outputs[version])
        yield from zip(group, outputs, strict=True)


def _compare(job: Job, version: Intervention, outputs: Any) -> None:
    """Raises if a version differs from the same version in a pass of its own."""
    alone = job.alone(version)
    wanted, found = numbers(alone), numbers(outputs)
    if not wanted and outputs != alone:  # texts, for example, that `run` made
        raise DiffersError("its outputs differ in a larger batch")
    for name in wanted:
        if name not in found or found[name].shape != wanted[name].shape:
            raise DiffersError(f"its {name} has another shape in a larger batch")
        scale = max(1e-6, float(wanted[name].abs().max())) if wanted[name].numel() else 1.0
        allowed = max(TOLERANCE, 8 * torch.finfo(job.subject.model.dtype).eps) * scale
        if not torch.allclose(found[name], wanted[name], rtol=0, atol=allowed, equal_nan=True):
            raise DiffersError(f"its {name} differs in a larger batch")


def _entry(subject: Subject, version: Intervention) -> tuple[str, int]:
    """The list of layers in which a version begins to differ, and the number of the layer."""
    places: dict[str, int] = {}
    for site in version.touched:
        parts = subject.path_of(site.module).split(".")
        digit = next((i for i, part in enumerate(parts) if part.isdigit()), None)
        if digit is None:
            raise DiffersError(f"{'.'.join(parts)} is not in a list of layers")
        container, index = ".".join(parts[:digit]), int(parts[digit])
        places[container] = min(index, places.get(container, index))
    stacks = {site.stack for site in version.touched}
    if len(places) == 1:
        return next(iter(places.items()))
    if len(places) != 2 or stacks != {"encoder", "decoder"} or not _has_two_stacks(subject.model):
        raise DiffersError(f"{version.name} is in several stacks")
    first = next(site for site in version.touched if site.stack == "encoder")
    container = next(name for name in places if f"{subject.path_of(first.module)}.".startswith(f"{name}."))
    return container, places[container]


def _has_two_stacks(model: PreTrainedModel) -> bool:
    return bool(getattr(model.config, "is_encoder_decoder", False)) and hasattr(model, "get_encoder")


def _encoder(model: PreTrainedModel, inputs: dict[str, Any]) -> Any:
    return model.get_encoder()(**{name: value for name, value in inputs.items() if not _is_for_decoder(name)})


def _from_block(
    model: PreTrainedModel, inputs: dict[str, Any], memory: Any, is_encoder: bool, rows: int, count: int
) -> Any:
    options = {"use_cache": False} if "use_cache" in inspect.signature(model.forward).parameters else {}
    if memory is None:
        return model(**inputs, **options)
    for_decoder = {name: value for name, value in inputs.items() if name == "attention_mask" or _is_for_decoder(name)}
    if not is_encoder:
        return model(**for_decoder, encoder_outputs=memory, **options)
    return model(**repeat(for_decoder, count, rows), encoder_outputs=_encoder(model, inputs), **options)


def _is_for_decoder(name: str) -> bool:
    return name.startswith(("decoder_", "cross_attn"))


def _growing(rows: int, count: int) -> Callable:
    def hook(block: nn.Module, arguments: tuple, options: dict) -> tuple[tuple, dict]:
        # What a block gets in one axis is about positions, not rows.
        return repeat(arguments, count, rows, least=2), repeat(options, count, rows, least=2)

    return hook


def repeat(value: Any, times: int, rows: int, least: int = 1) -> Any:
    """Tensors with one entry per row and `least` axes, repeated; containers are gone through, anything else stays."""
    if isinstance(value, Tensor):
        per_row = value.ndim >= least and value.shape[0] == rows
        return value.repeat(times, *[1] * (value.ndim - 1)) if per_row and times > 1 else value
    return _through(value, lambda part: repeat(part, times, rows, least))


def split(outputs: Any, count: int, rows: int) -> list:
    """The outputs of every version; a loss over all versions is left out."""
    if isinstance(outputs, Mapping):
        outputs = type(outputs)(**{n: v for n, v in outputs.items() if not isinstance(v, Tensor) or v.ndim})

    def part(value: Any, version: int) -> Any:
        if isinstance(value, Tensor):
            whole = value.ndim > 0 and value.shape[0] == count * rows
            return value[version * rows : (version + 1) * rows] if whole else value
        if isinstance(value, list) and len(value) == count * rows:
            return value[version * rows : (version + 1) * rows]
        return _through(value, lambda inner: part(inner, version))

    return [part(outputs, version) for version in range(count)]


def _through(value: Any, each: Callable) -> Any:
    if isinstance(value, ModelOutput):
        return type(value)(**{name: each(part) for name, part in value.items()})
    if type(value) in (tuple, list):
        return type(value)(each(part) for part in value)
    if type(value) is dict:
        return {name: each(part) for name, part in value.items()}
    return value
