"""A transformers model made smaller as notes among its weights say.

Every attention layer that lost heads has a buffer `removed_heads` among its weights: a text in JSON that says which
features of its projections are left. It is data and is checked as such: names must be there, numbers in range.

This file and `pruned_parts.py` import only torch, transformers and safetensors. They travel with a model that is saved
with its code, so that transformers loads it where headcount is not installed.
"""

import inspect
import json
from collections.abc import Callable, Iterable
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from .pruned_parts import BiasAlone, FewerHeads, LayerConfig, NoHeads, is_plain, take_own_part, whole_config


NOTE = "removed_heads"
# What modules and configs call the numbers that follow from the number of heads.
HEAD_COUNTS: tuple[str, ...] = (
    "num_heads",
    "num_attention_heads",
    "n_heads",
    "n_head",
    "heads",
    "attention_heads",
    "num_v_heads",
)
KEY_VALUE_COUNTS: tuple[str, ...] = ("num_key_value_heads", "num_kv_heads", "kv_heads", "num_k_heads")
GROUP_SIZES: tuple[str, ...] = ("num_key_value_groups",)
SIZES: tuple[str, ...] = ("all_head_size", "inner_dim", "embed_dim", "hidden_size", "split_size", "dim", "d_model")
SIZES += ("q_size", "kv_size", "q_dim", "kv_dim", "v_dim", "qkv_dim", "query_dim", "key_dim", "value_dim", "head_size")
NUMBERS = {*HEAD_COUNTS, *KEY_VALUE_COUNTS, *GROUP_SIZES, *SIZES}

Note = dict[str, Any]
Ranges = list[list[int]]  # [[0, 8], [16, 24]]: the features 0 to 7 and 16 to 23


# --------------------------------------------------------------------------------------------------- reading notes


def notes_in(state_dict: dict[str, Tensor] | None, files: Iterable[str] | None) -> dict[str, Note]:
    """Path of an attention layer -> its note; of a model that was never pruned, none."""
    found = {key: tensor for key, tensor in (state_dict or {}).items() if is_note(key)}
    for path in [] if state_dict else files or ():
        if not str(path).endswith(".safetensors"):
            continue
        try:
            with safe_open(path, "pt") as weights:
                found |= {key: weights.get_tensor(key) for key in weights.keys() if is_note(key)}  # noqa: SIM118
        except SafetensorError as error:
            raise ValueError(
                f"{path} cannot be read ({error}); expected weights as transformers saves them."
            ) from None
    return {key.removesuffix(NOTE).rstrip("."): read_note(tensor, key) for key, tensor in found.items()}


def is_note(key: str) -> bool:
    return key.rpartition(".")[2] == NOTE


def read_note(tensor: Tensor, key: str = NOTE) -> Note:
    """The note of a layer, from the text that is saved among the weights."""
    try:
        note = json.loads(bytes(tensor.tolist()).decode())
    except (ValueError, TypeError):
        note = None
    if not isinstance(note, dict) or not isinstance(note.get("layer"), str) or not _are_counts(note.get("removed")):
        raise ValueError(f"{key} is not a note on removed heads; expected one that headcount wrote.")
    return note


def write_note(module: nn.Module, note: Note) -> None:
    text = json.dumps(note, separators=(",", ":"), sort_keys=True).encode()
    device = next((p.device for p in module.parameters()), torch.device("cpu"))
    module.register_buffer(NOTE, torch.tensor(list(text), dtype=torch.uint8, device=device))


def layer_path(model: nn.Module, key: str, note: Note) -> str:
    """Where the layer is in this model, which may be the part without a head, or the whole around it."""
    prefix = getattr(model, "base_model_prefix", "")
    for path in (key, str(note.get("path", key))):
        for candidate in (path, path.removeprefix(f"{prefix}."), f"{prefix}.{path}"):
            if candidate and _submodule(model, candidate) is not None:
                return candidate
    raise ValueError(f"{type(model).__name__} has no layer {key}, of which the weights say that heads were removed.")


# ------------------------------------------------------------------------------------------------ removing features


def make_smaller(model: PreTrainedModel, notes: dict[str, Note]) -> None:
    """Removes from a model that is still whole what the notes say; all of them are checked first."""
    places = {layer_path(model, key, note): note for key, note in notes.items()}
    places = {path: note for path, note in places.items() if not hasattr(_submodule(model, path), "kept_heads")}
    for path, note in places.items():
        check_note(model, path, note)
    for path, note in places.items():
        cut_layer(model, path, note)
        write_note(model.get_submodule(path), note)


def check_note(model: nn.Module, path: str, note: Note) -> None:
    """Raises unless a note fits the layer at this path."""
    module, unit = _submodule(model, path), _unit(model, path, note)
    config = getattr(module, "config", None)

    def fits(owner: nn.Module, name: str, size: Callable[[Any], int], ranges: Any) -> bool:
        part = _submodule(owner, name)
        return is_plain(part) and _are_ranges(ranges, size(part))

    def is_entry(name: str, value: Any) -> bool:
        tensor = _tensor(unit, name)
        return (
            isinstance(value, list)
            and len(value) == 2
            and isinstance(tensor, Tensor)
            and _are_counts(value[:1])
            and value[0] < tensor.ndim
            and _are_ranges(value[1], tensor.shape[value[0]])
        )

    def are_numbers(owner: Any, found: Any) -> bool:
        return all(
            name in NUMBERS
            and _are_counts([value])
            and 0 < value <= (max(1, len(note["kept"])) if name in GROUP_SIZES else integer(owner, name) or 0)
            for name, value in found.items()
        )

    names = ("outputs", "inputs", "entries", "blank", "numbers", "config", "given")
    parts = {name: note.get(name, {}) for name in names}
    good = (
        all(isinstance(part, dict) for part in parts.values())
        and unit is not None
        and note.get("up") in (0, 1)
        and _are_counts(note.get("kept"))
        and sorted(note["kept"] + note["removed"]) == [*range(len(note["kept"]) + len(note["removed"]))]
        and all(fits(unit, name, output_size, ranges) for name, ranges in parts["outputs"].items())
        and all(fits(unit, name, input_size, ranges) for name, ranges in parts["inputs"].items())
        and all(is_entry(name, value) for name, value in parts["entries"].items())
        and all(_are_counts([width]) and width < 2**24 for width in parts["blank"].values())
        and are_numbers(module, parts["numbers"])
        and are_numbers(config, parts["config"])
        and all(is_argument(module, name) and dims in (3, 4) for name, dims in parts["given"].items())
        and _are_counts(reads := note.get("key_value_of") or [])
        and all(read < len(note["kept"]) for read in reads)
        and len(reads) in (0, len(note["kept"]))
    )
    if not good:
        raise ValueError(
            f"the note on removed heads of {path} does not fit this {type(model).__name__}; expected the config and "
            "the weights of one model, as they were saved."
        )


def cut_layer(model: nn.Module, path: str, note: Note) -> None:
    """Removes what a note says, which has been checked, relative to the layer as it is now."""
    module: Any = model.get_submodule(path)
    unit = _unit(model, path, note)
    blank = note.get("blank", {})
    with torch.no_grad():
        for name, ranges in note.get("outputs", {}).items():
            _keep_outputs(unit, name, indices(ranges), blank.get(name))
        for name, ranges in note.get("inputs", {}).items():
            _keep_inputs(unit, name, indices(ranges))
        for name, (dim, ranges) in note.get("entries", {}).items():
            _keep_entries(unit, name, dim, indices(ranges))
    for name, value in note.get("numbers", {}).items():
        setattr(module, name, value)
    if note.get("picks") or note.get("config"):
        before = getattr(module.config, "overrides", {})
        overrides = {**before, **note.get("config", {})}
        module.config = LayerConfig(whole_config(module.config), overrides, bool(note.get("picks")))
    if isinstance(module, nn.MultiheadAttention):
        module.__class__ = FewerHeads
    module.key_value_of = note.get("key_value_of")
    module.kept_heads, module.pruned_heads = list(note["kept"]), list(note["removed"])
    take_own_part(module, module.kept_heads, len(module.kept_heads + module.pruned_heads), note.get("given", {}))


def indices(ranges: Ranges) -> list[int]:
    return [i for start, stop in ranges for i in range(start, stop)]


def ranges_of(kept: Iterable[int]) -> Ranges:
    """
    >>> ranges_of([0, 1, 2, 6, 7])
    [[0, 3], [6, 8]]
    """
    found: Ranges = []
    for i in kept:
        if found and found[-1][1] == i:
            found[-1][1] += 1
        else:
            found.append([i, i + 1])
    return found


def output_size(projection: Any) -> int:
    return projection.weight.shape[1] if isinstance(projection, Conv1D) else projection.weight.shape[0]


def input_size(projection: Any) -> int:
    return projection.weight.shape[0] if isinstance(projection, Conv1D) else projection.weight.shape[1]


def _part_of(parameter: Tensor, index: tuple) -> nn.Parameter:
    return nn.Parameter(parameter.detach()[index].clone(), requires_grad=parameter.requires_grad)


def _keep_outputs(unit: nn.Module, name: str, rows: list[int], blank: int | None) -> None:
    """Output features of a projection, or blanks of this width; Conv1D is nn.Linear with its weight transposed."""
    projection: Any = unit.get_submodule(name)
    if isinstance(projection, Conv1D):
        projection.weight = _part_of(projection.weight, (slice(None), rows))
        projection.nf = len(rows)
    else:
        projection.weight = _part_of(projection.weight, (rows,))
        projection.out_features = len(rows)
    if projection.bias is not None:
        projection.bias = _part_of(projection.bias, (rows,))
    if not rows:
        _replace(unit, name, NoHeads(projection, blank or 1))


def _keep_inputs(unit: nn.Module, name: str, columns: list[int]) -> None:
    projection: Any = unit.get_submodule(name)
    width = output_size(projection)
    if isinstance(projection, Conv1D):
        projection.weight = _part_of(projection.weight, (columns,))
        projection.nx = len(columns)
    else:
        projection.weight = _part_of(projection.weight, (slice(None), columns))
        projection.in_features = len(columns)
    if not columns:
        _replace(unit, name, BiasAlone(projection, width))


def _keep_entries(unit: nn.Module, name: str, dim: int, kept: list[int]) -> None:
    """Of a parameter or buffer that has something for every head: a sink, a norm, a table of biases."""
    path, _, last = name.rpartition(".")
    owner = unit.get_submodule(path)
    tensor = getattr(owner, last)
    index = (*[slice(None)] * dim, kept)
    if isinstance(tensor, nn.Parameter):
        setattr(owner, last, _part_of(tensor, index))
    else:
        owner._buffers[last] = tensor[index].clone()
    if dim == 0 and isinstance(owner, (nn.Conv1d, nn.Conv2d)) and owner.groups == owner.out_channels:  # by channel
        owner.groups = owner.in_channels = owner.out_channels = len(kept)


def _replace(unit: nn.Module, name: str, new: nn.Module) -> None:
    path, _, last = name.rpartition(".")
    setattr(unit.get_submodule(path), last, new)


# --------------------------------------------------------------------------------------------------------- checks


def _are_counts(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)


def _are_ranges(ranges: Any, size: int) -> bool:
    """Whether ranges are in order and within this size."""
    last = 0
    if not isinstance(ranges, list):
        return False
    for pair in ranges:
        if not (_are_counts(pair) and len(pair) == 2 and last <= pair[0] < pair[1] <= size):
            return False
        last = pair[1]
    return True


def is_argument(module: nn.Module | None, name: str) -> bool:
    return module is not None and name in inspect.signature(module.forward).parameters


def integer(owner: Any, name: str) -> int | None:
    try:
        value = getattr(owner, name, None)
    except Exception:  # a config may refuse to tell what differs from layer to layer
        return None
    return value if type(value) is int else None


def _submodule(model: nn.Module | None, path: str) -> nn.Module | None:
    for part in path.split(".") if path else ():
        model = model._modules.get(part) if model is not None else None
    return model


def _tensor(unit: nn.Module | None, name: str) -> Tensor | None:
    path, _, last = name.rpartition(".")
    owner = _submodule(unit, path)
    return None if owner is None else owner._parameters.get(last, owner._buffers.get(last))


def _unit(model: nn.Module, path: str, note: Note) -> Any:
    """The attention layer, or the module around it, where its output projection is."""
    return _submodule(model, path.rpartition(".")[0] if note.get("up") == 1 else path)


class Smaller:
    """Before a model class: `from_pretrained` makes the model smaller before it fills in the weights."""

    @staticmethod
    def _load_pretrained_model(
        model: Any, state_dict: dict | None, checkpoint_files: list[str] | None, *rest: Any, **options: Any
    ) -> Any:
        make_smaller(model, notes_in(state_dict, checkpoint_files))
        return PreTrainedModel._load_pretrained_model(model, state_dict, checkpoint_files, *rest, **options)
