"""Heads of transformers' own models, really removed, saved and loaded again.

What was removed is noted on every attention layer and, beside the saved weights, in a plain JSON file. Names and
numbers of heads stay those of the unpruned model.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import torch
import transformers
from torch import Tensor, nn
from transformers import AutoConfig, PreTrainedModel
from transformers.pytorch_utils import Conv1D

from .. import modeling_headcount
from ..attention import part_of
from ..modeling_headcount import HeadcountPreTrainedModel
from .finding import AttentionLayer, Head, attention_layers, check_head, list_heads
from .gates import PREFIX, register


REMOVED = "pruned_heads.json"


def prune_heads(model: PreTrainedModel, heads: Iterable[str]) -> None:
    """Removes the parameters of these heads for good; the output is that of the model with the heads masked.

    An optimizer made before holds the old parameters: make a new one. Every layer keeps at least one head.

    >>> headcount.prune_heads(model, ["encoder.0.self.3"])
    """
    if isinstance(heads, str):
        raise TypeError(f"heads is the string {heads!r}, expected a list of head names such as [{heads!r}].")
    if isinstance(model, HeadcountPreTrainedModel):
        model.prune_heads(list(heads))
        return
    layers, known = attention_layers(model), list_heads(model)
    removed: dict[str, set[int]] = {}
    for head in heads:
        check_head(model, head, known)
        removed.setdefault(Head(head).attention, set()).add(Head(head).number)
    # All is checked before anything is changed.
    for name, numbers in removed.items():
        layer = layers[name]
        if type(layer.module).__name__ not in PRUNERS:
            raise ValueError(
                f"{type(model).__name__} has layers of the class {type(layer.module).__name__}, whose heads headcount "
                f"cannot remove; expected one of {', '.join(PRUNERS)}. mask_heads works without removing them."
            )
        if len(numbers) == len(layer.heads):
            raise ValueError(f"all heads of {name} would go; expected at least one to stay: mask the others instead.")
    with torch.no_grad():
        for name, numbers in removed.items():
            _prune(model, layers[name], numbers)


def removed_heads(model: PreTrainedModel) -> dict[str, list[int]]:
    """Attention layer -> numbers of the heads that were removed."""
    if isinstance(model, HeadcountPreTrainedModel):
        return dict(model.config.pruned_heads)
    layers = attention_layers(model).values()
    return {layer.name: gone for layer in layers if (gone := list(getattr(layer.module, "pruned_heads", ())))}


def save_pruned(model: PreTrainedModel, folder: str | os.PathLike, overwrite: bool = False) -> Path:
    """`save_pretrained` with `pruned_heads.json` beside it; written under a temporary name and renamed."""
    folder = Path(folder)
    if folder.exists() and not overwrite and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} is there already; expected another folder, or overwrite=True.")
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    model.save_pretrained(partial)
    note = {"model_class": type(model).__name__, "removed": removed_heads(model)}
    (partial / REMOVED).write_text(json.dumps(note, indent=1) + "\n")
    if folder.is_dir():
        shutil.rmtree(folder)
    return partial.replace(folder)


def load_pruned(folder: str | os.PathLike, **options) -> PreTrainedModel:
    """The model that `save_pruned` wrote; `options` are those of `from_pretrained`."""
    folder = Path(folder)
    path = folder / REMOVED
    if not path.exists():
        raise ValueError(f"{folder} holds no {REMOVED}; expected a folder that save_pruned wrote.")
    note = json.loads(path.read_text())
    model_class = _model_class(note["model_class"], path)
    if issubclass(model_class, HeadcountPreTrainedModel):
        return model_class.from_pretrained(folder, **options)
    names = [f"{layer}.{number}" for layer, numbers in note["removed"].items() for number in numbers]

    def build(self, config, *arguments, **settings):
        model_class.__init__(self, config, *arguments, **settings)
        prune_heads(self, names)

    # from_pretrained makes the model without memory for its weights and then fills in those of the file, so that the
    # heads have to be gone when the model is made.
    smaller = type(model_class.__name__, (model_class,), {"__init__": build, "__module__": model_class.__module__})
    model = smaller.from_pretrained(folder, config=AutoConfig.from_pretrained(folder), **options)
    model.__class__ = model_class
    return model


def _model_class(name: str, path: Path) -> type[PreTrainedModel]:
    found = getattr(modeling_headcount, name, None) or getattr(transformers, name, None)
    if not (isinstance(found, type) and issubclass(found, PreTrainedModel)):
        raise ValueError(f"{path} names the model class {name!r}; expected one of transformers or headcount.")
    return found


def _prune(model: PreTrainedModel, layer: AttentionLayer, numbers: set[int]) -> None:
    module = layer.module
    kept = [head for head in layer.heads if head not in numbers]
    places = [layer.heads.index(head) for head in kept]
    PRUNERS[type(module).__name__](model, layer, places)
    module.pruned_heads = sorted({*getattr(module, "pruned_heads", ()), *numbers})
    module.kept_heads = kept


def _columns(places: list[int], size: int, offset: int = 0) -> list[int]:
    return [offset + place * size + i for place in places for i in range(size)]


def _keep_rows(projection: nn.Module, rows: list[int]) -> None:
    """Output features of a projection; transformers' Conv1D is a linear layer with its weight transposed."""
    if isinstance(projection, Conv1D):
        projection.weight = part_of(projection.weight, (slice(None), rows))
        projection.nf = len(rows)
    else:
        projection.weight = part_of(projection.weight, (rows,))
        projection.out_features = len(rows)
    if projection.bias is not None:
        projection.bias = part_of(projection.bias, (rows,))


def _keep_inputs(projection: nn.Module, rows: list[int]) -> None:
    if isinstance(projection, Conv1D):
        projection.weight = part_of(projection.weight, (rows,))
        projection.nx = len(rows)
    else:
        projection.weight = part_of(projection.weight, (slice(None), rows))
        projection.in_features = len(rows)


def _four_projections(query: str, key: str, value: str, out: str | None) -> Callable:
    """Query, key, value and output projection of their own; BERT keeps the last one beside the attention module."""

    def prune(model: PreTrainedModel, layer: AttentionLayer, places: list[int]) -> None:
        module = layer.module
        first = getattr(module, query)
        rows = _columns(places, _output_size(first) // len(layer.heads))
        for name in (query, key, value):
            _keep_rows(getattr(module, name), rows)
        parent = model.get_submodule(layer.path.rpartition(".")[0])
        _keep_inputs(parent.output.dense if out is None else getattr(module, out), rows)

    return prune


def _t5(model: PreTrainedModel, layer: AttentionLayer, places: list[int]) -> None:
    """The position bias of a T5 stack is shared by all its layers and stays whole; a pruned layer picks its heads."""
    _four_projections("q", "k", "v", "o")(model, layer, places)
    _keep_switched(model)


def _gpt2(model: PreTrainedModel, layer: AttentionLayer, places: list[int]) -> None:
    """Query, key and value are one projection, side by side; of cross-attention, key and value."""
    module = layer.module
    before = module.split_size
    rows = _columns(places, module.head_dim)
    parts = 2 if module.is_cross_attention else 3
    _keep_rows(module.c_attn, [part * before + row for part in range(parts) for row in rows])
    if module.is_cross_attention:
        _keep_rows(module.q_attn, rows)
    _keep_inputs(module.c_proj, rows)
    module.split_size = len(rows)


def _keep_switched(model: PreTrainedModel) -> None:
    """From now on the model uses the gated twin of its attention, which gives each layer its part of the bias."""
    for module in model.modules():
        plain = getattr(getattr(module, "config", None), "_attn_implementation", None)
        if plain is not None and not plain.startswith(PREFIX):
            module.config._attn_implementation_internal = register(plain)


def _output_size(projection: nn.Module) -> int:
    weight: Tensor = projection.weight
    return weight.shape[1] if isinstance(projection, Conv1D) else weight.shape[0]


_bert = _four_projections("query", "key", "value", None)
_bart = _four_projections("q_proj", "k_proj", "v_proj", "out_proj")
PRUNERS: dict[str, Callable[[PreTrainedModel, AttentionLayer, list[int]], None]] = {
    "BertSelfAttention": _bert,
    "BertCrossAttention": _bert,
    "RobertaSelfAttention": _bert,
    "RobertaCrossAttention": _bert,
    "DistilBertSelfAttention": _four_projections("q_lin", "k_lin", "v_lin", "out_lin"),
    "ViTAttention": _four_projections("q_proj", "k_proj", "v_proj", "o_proj"),
    "BartAttention": _bart,
    "MarianAttention": _bart,
    "T5Attention": _t5,
    "GPT2Attention": _gpt2,
}
