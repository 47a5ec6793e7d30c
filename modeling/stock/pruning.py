"""Heads of transformers' own models, really removed, saved and loaded again.

What was removed is noted on every attention layer and among its weights, so that every way to save the model saves
the note too. Names and numbers of heads stay those of the unpruned model.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from transformers import AutoConfig, PreTrainedModel
from transformers.pytorch_utils import Conv1D

from ...records.files import new_folder, read_json
from ...records.litter import is_empty
from .. import modeling_headcount
from ..attention import part_of
from ..heads import Head, HeadName, pick_heads
from ..modeling_headcount import HeadcountPreTrainedModel
from .finding import AttentionLayer, attention_layers
from .gates import PREFIX, register
from .pruning_notes import saved_without, write_note


def prune_heads(model: PreTrainedModel, heads: Iterable[HeadName]) -> None:
    """Removes the parameters of these heads for good; the output is that of the model with the heads masked.

    All heads of a layer may go: what is left of it is the bias of its output projection. Heads that are gone already
    stay gone. An optimizer made before holds the old parameters: make a new one.

    >>> import headcount
    >>> from transformers import BertConfig, BertModel
    >>> model = BertModel(BertConfig(num_hidden_layers=1, num_attention_heads=2, hidden_size=8, vocab_size=9))
    >>> headcount.prune_heads(model, ["encoder.0.self.1"])
    >>> headcount.list_heads(model)
    ['encoder.0.self.0']

    Args:
        model: one of headcount's own, or of the kinds in docs/stock-models.md whose heads can be removed.
        heads: names, or `(layer, head)` where the model has one stack and kind of attention.

    Returns:
        Nothing: the model itself becomes smaller. Other heads keep their names.
    """
    if isinstance(model, HeadcountPreTrainedModel):
        model.prune_heads(heads)
        return
    layers = attention_layers(model)
    ever = [
        Head(f"{layer.name}.{number}")
        for layer in layers.values()
        for number in sorted({*layer.heads, *getattr(layer.module, "pruned_heads", ())})
    ]
    removed: dict[str, set[int]] = {}
    for head in pick_heads(heads, ever, type(model).__name__):
        if head.number in layers[head.attention].heads:
            removed.setdefault(head.attention, set()).add(head.number)
    # All is checked before anything is changed.
    for name in removed:
        kind = type(layers[name].module).__name__
        if kind not in PRUNERS:
            raise ValueError(
                f"{type(model).__name__} has layers of the class {kind}, whose heads headcount cannot remove; "
                f"expected one of {', '.join(PRUNERS)}. mask_heads works without removing them."
            )
    with torch.no_grad():
        for name, numbers in removed.items():
            _prune(model, layers[name], numbers)


def removed_heads(model: PreTrainedModel) -> dict[str, list[int]]:
    """Attention layer -> numbers of the heads that were removed."""
    if isinstance(model, HeadcountPreTrainedModel):
        return dict(model.config.pruned_heads or {})
    layers = attention_layers(model).values()
    return {layer.name: gone for layer in layers if (gone := list(getattr(layer.module, "pruned_heads", ())))}


def save_pruned(model: PreTrainedModel, folder: str | os.PathLike, overwrite: bool = False) -> Path:
    """`save_pretrained`, with a folder that is there whole or not at all.

    >>> import headcount
    >>> model = headcount.HeadcountModel(headcount.HeadcountConfig())
    >>> headcount.prune_heads(model, ["decoder.1.cross.0"])
    >>> headcount.save_pruned(model, "smaller").name
    'smaller'

    Args:
        model: a model that `prune_heads` may have made smaller.
        folder: a new or empty one.
        overwrite: replace what is there.

    Returns:
        The folder.
    """
    folder = Path(folder)
    if folder.exists() and not overwrite and (not folder.is_dir() or not is_empty(folder)):
        raise ValueError(f"{folder} is there already; expected another folder, or overwrite=True.")
    with new_folder(folder) as partial:
        model.save_pretrained(partial)
    return folder


def load_pruned(
    folder: str | os.PathLike, model_class: type[PreTrainedModel] | None = None, **options: Any
) -> PreTrainedModel:
    """A saved model without the heads that were removed, whoever saved it: `save_pretrained`, Trainer, `save_pruned`.

    >>> import headcount
    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=8, vocab_size=9))
    >>> headcount.prune_heads(model, [(0, 1)])
    >>> model.save_pretrained("smaller")
    >>> headcount.list_heads(headcount.load_pruned("smaller"))
    ['decoder.0.self.0']

    Args:
        folder: a model folder, such as a checkpoint of transformers' Trainer.
        model_class: by default the one that config.json names.
        options: those of `from_pretrained`.

    Returns:
        A model of that class.
    """
    folder = Path(folder)
    kind = model_class or _model_class(folder)
    if issubclass(kind, HeadcountPreTrainedModel):
        return kind.from_pretrained(folder, **options)
    names = saved_without(folder)

    def build(self: PreTrainedModel, config: Any, *arguments: Any, **settings: Any) -> None:
        kind.__init__(self, config, *arguments, **settings)
        prune_heads(self, names)

    # from_pretrained makes the model without memory for its weights and then fills in those of the file, so that the
    # heads have to be gone when the model is made.
    smaller: Any = type(kind.__name__, (kind,), {"__init__": build, "__module__": kind.__module__})
    model = smaller.from_pretrained(folder, config=AutoConfig.from_pretrained(folder), **options)
    model.__class__ = kind
    for layer in attention_layers(model).values():  # a file of version 0.1 has none among its weights
        if getattr(layer.module, "pruned_heads", ()):
            write_note(layer.module, layer.name, layer.module.pruned_heads)
    return model


def _model_class(folder: Path) -> type[PreTrainedModel]:
    path = folder / "config.json"
    if not path.is_file():
        raise ValueError(f"{folder} holds no config.json; expected a folder that save_pretrained wrote.")
    names = read_json(path).get("architectures")
    name = names[0] if isinstance(names, list) and names else None
    found = getattr(modeling_headcount, str(name), None) or getattr(transformers, str(name), None)
    if not (isinstance(found, type) and issubclass(found, PreTrainedModel)):
        raise ValueError(
            f"{path} names the model class {name!r}; expected one of transformers or headcount, or model_class=..."
        )
    return found


def _prune(model: PreTrainedModel, layer: AttentionLayer, numbers: set[int]) -> None:
    module = layer.module
    kept = [head for head in layer.heads if head not in numbers]
    places = [layer.heads.index(head) for head in kept]
    PRUNERS[type(module).__name__](model, layer, places)
    module.pruned_heads = sorted({*getattr(module, "pruned_heads", ()), *numbers})
    module.kept_heads = kept
    write_note(module, layer.name, module.pruned_heads)


class NoHeads(nn.Module):
    """A query, key or value projection without heads: in their place it puts out blanks of one head's width.

    A layer's own code then runs as ever, and its cache keeps count of the tokens.
    """

    def __init__(self, emptied: nn.Linear | Conv1D, width: int):
        super().__init__()
        self.weight, self.bias, self.width = emptied.weight, emptied.bias, width

    def forward(self, hidden_states: Tensor) -> Tensor:
        return hidden_states.new_zeros(*hidden_states.shape[:-1], self.width)


class BiasAlone(nn.Module):
    """An output projection that no head writes to: what it puts out is its bias."""

    def __init__(self, emptied: nn.Linear | Conv1D, width: int):
        super().__init__()
        self.weight, self.bias, self.width = emptied.weight, emptied.bias, width

    def forward(self, merged: Tensor) -> Tensor:
        blank = merged.new_zeros(*merged.shape[:-1], self.width)
        return blank if self.bias is None else blank + self.bias


def _columns(places: list[int], size: int) -> list[int]:
    return [place * size + i for place in places for i in range(size)]


def _keep_outputs(owner: nn.Module, name: str, rows: list[int], blank: int) -> None:
    """Output features of a projection, or blanks of this width; Conv1D is nn.Linear with its weight transposed."""
    projection = getattr(owner, name)
    if isinstance(projection, Conv1D):
        projection.weight = part_of(projection.weight, (slice(None), rows))
        projection.nf = len(rows)
    else:
        projection.weight = part_of(projection.weight, (rows,))
        projection.out_features = len(rows)
    if projection.bias is not None:
        projection.bias = part_of(projection.bias, (rows,))
    if not rows:
        setattr(owner, name, NoHeads(projection, blank))


def _keep_inputs(owner: nn.Module, name: str, rows: list[int]) -> None:
    projection = getattr(owner, name)
    width = _output_size(projection)
    if isinstance(projection, Conv1D):
        projection.weight = part_of(projection.weight, (rows,))
        projection.nx = len(rows)
    else:
        projection.weight = part_of(projection.weight, (slice(None), rows))
        projection.in_features = len(rows)
    if not rows:
        setattr(owner, name, BiasAlone(projection, width))


def _four_projections(query: str, key: str, value: str, out: str | None) -> Callable:
    """Query, key, value and output projection of their own; BERT keeps the last one beside the attention module."""

    def prune(model: PreTrainedModel, layer: AttentionLayer, places: list[int]) -> None:
        module = layer.module
        size = _output_size(getattr(module, query)) // len(layer.heads)
        rows = _columns(places, size)
        for name in (query, key, value):
            _keep_outputs(module, name, rows, blank=size)
        if out is None:
            _keep_inputs(model.get_submodule(layer.path.rpartition(".")[0]).output, "dense", rows)
        else:
            _keep_inputs(module, out, rows)

    return prune


def _t5(model: PreTrainedModel, layer: AttentionLayer, places: list[int]) -> None:
    """The position bias of a T5 stack is shared by all its layers and stays whole; a pruned layer picks its heads."""
    _four_projections("q", "k", "v", "o")(model, layer, places)
    _keep_switched(model)


def _gpt2(model: PreTrainedModel, layer: AttentionLayer, places: list[int]) -> None:
    """Query, key and value are one projection, side by side; of cross-attention, key and value."""
    module, size = layer.module, layer.module.head_dim
    before = module.split_size
    rows = _columns(places, size)
    parts = 2 if module.is_cross_attention else 3
    _keep_outputs(module, "c_attn", [part * before + row for part in range(parts) for row in rows], blank=parts * size)
    if module.is_cross_attention:
        _keep_outputs(module, "q_attn", rows, blank=size)
    _keep_inputs(module, "c_proj", rows)
    module.split_size = len(rows) or size


def _keep_switched(model: PreTrainedModel) -> None:
    """From now on the model uses the gated twin of its attention, which gives each layer its part of the bias."""
    for module in model.modules():
        plain = getattr(getattr(module, "config", None), "_attn_implementation", None)
        if plain is not None and not plain.startswith(PREFIX):
            module.config._attn_implementation_internal = kept_name(plain)


class KeptName(str):
    """The name of a gated attention function for good; unpickled in another process, it is registered there too."""

    def __reduce__(self) -> tuple[Callable, tuple]:
        return kept_name, (self.removeprefix(PREFIX),)


def kept_name(plain: str) -> KeptName:
    return KeptName(register(plain))


def _output_size(projection: nn.Linear | Conv1D) -> int:
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
