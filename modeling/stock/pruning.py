"""Heads of transformers' own models, really removed.

One way for all families: `projections` measures which features belong to which head, a plan says what is left of
them, and a copy of the layer that was cut by the plan must put out what the layer puts out with those heads closed.
If no plan does, nothing is changed. Names and numbers of heads stay those of the unpruned model.
"""

import collections
import copy
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from ..heads import Head, HeadName, pick_heads
from ..modeling_headcount import HeadcountPreTrainedModel
from .finding import AttentionLayer, attention_layers
from .projections import Layout, find_layout
from .pruned_model import (
    GROUP_SIZES,
    HEAD_COUNTS,
    KEY_VALUE_COUNTS,
    SIZES,
    Note,
    check_note,
    cut_layer,
    indices,
    integer,
    ranges_of,
    read_note,
    write_note,
)
from .pruned_parts import is_plain
from .torch_pruning import torch_plan
from .trials import Trial, Unfit


def prune_heads(model: PreTrainedModel, heads: Iterable[HeadName]) -> None:
    """Removes the parameters of these heads for good; the output is that of the model with the heads masked.

    All heads of a layer may go: what is left of it is the bias of its output projection. A key/value head goes with
    the last query head that reads it. Heads that are gone already stay gone. An optimizer made before holds the old
    parameters: make a new one.

    >>> import headcount
    >>> from transformers import BertConfig, BertModel
    >>> model = BertModel(BertConfig(num_hidden_layers=1, num_attention_heads=2, hidden_size=8, vocab_size=9))
    >>> headcount.prune_heads(model, ["encoder.0.self.1"])
    >>> headcount.list_heads(model)
    ['encoder.0.self.0']

    Args:
        model: one of headcount's own, or any transformers model whose heads can be masked. Where a layer cannot do
            with fewer heads, that is an error, and the model stays as it was.
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
    # Gradients show where heads are, and parameters that were made in inference mode could not be trained.
    with torch.inference_mode(False), torch.enable_grad():
        # All is checked before anything is changed.
        plans = {name: find_plan(model, layers[name], numbers) for name, numbers in removed.items()}
        for name, plan in plans.items():
            module = layers[name].module
            before = read_note(module.removed_heads) if hasattr(module, "removed_heads") else None
            cut_layer(model, layers[name].path, plan)
            write_note(module, joined(before, plan))


def removed_heads(model: PreTrainedModel) -> dict[str, list[int]]:
    """Attention layer -> numbers of the heads that were removed."""
    if isinstance(model, HeadcountPreTrainedModel):
        return dict(model.config.pruned_heads or {})
    layers = attention_layers(model).values()
    return {layer.name: gone for layer in layers if (gone := list(getattr(layer.module, "pruned_heads", ())))}


def find_plan(model: PreTrainedModel, layer: AttentionLayer, numbers: set[int]) -> Note:
    """What to remove from a layer as it is now; checked on a copy of the layer."""
    try:
        if isinstance(layer.module, nn.MultiheadAttention):
            _refuse_strange_projections(model, layer, 0, {"out_proj"})
            return torch_plan(layer, numbers)
        layout, trial = find_layout(model, layer)
        _refuse_strange_projections(model, layer, layout.up, {*layout.outputs, *layout.inputs})
        trial.gate = torch.tensor([float(head not in numbers) for head in layer.heads])
        with torch.no_grad():
            wanted = [trial.run(way) for way in range(len(trial.ways))]
        trial.gate = None
        for plan in _plans(layer, layout, trial, numbers):
            if _agrees(trial, layout, plan, wanted):
                return plan
        raise Unfit(
            "without them it does not compute what it does with them masked (sizes may be fixed in its code, or a "
            "norm spans all heads)"
        )
    except Unfit as problem:
        raise ValueError(
            f"{type(model).__name__} has layers of the class {type(layer.module).__name__}, whose heads headcount "
            f"cannot remove: {problem}; expected a layer that can do with fewer heads. mask_heads works without "
            "removing them."
        ) from None


def _plans(layer: AttentionLayer, layout: Layout, trial: Trial, numbers: set[int]) -> Iterator[Note]:
    """What may be left of a layer, the least change of its numbers and tables first."""
    kept = [head for head in layer.heads if head not in numbers]
    places = [layer.heads.index(head) for head in kept] or [0]  # an empty layer runs with one blank head
    left = {*places}

    def features(owners: list[frozenset[int]]) -> list[int]:
        return [feature for feature, heads in enumerate(owners) if not heads or heads & left]

    whole = {path: owners for path, owners in layout.outputs.items() if len(features(owners)) < len(owners)}
    outputs = {path: features(owners) for path, owners in whole.items()}
    inputs = {path: features(owners) for path, owners in layout.inputs.items()}
    blank: dict[str, int] = {}
    if not kept:
        if not all(heads for owners in layout.inputs.values() for heads in owners):
            raise Unfit("its output projection reads more than its heads, so that they cannot all go")
        emptied = [path for path, owners in layout.outputs.items() if all(owners)]
        blank = {path: len(features(layout.outputs[path])) for path in emptied}
        outputs |= {path: [] for path in emptied}
        inputs = {path: [] for path in inputs}
    read = sorted({layout.key_value_of[place] for place in places})  # key/value heads that are left
    reads = [read.index(layout.key_value_of[place]) for place in places]
    group = len(places) // len(read)
    even = reads == [place // group for place in range(len(places))]
    plan = {
        "layer": layer.name,
        "path": layer.path,
        "up": layout.up,
        "removed": sorted({*getattr(layer.module, "pruned_heads", ()), *numbers}),
        "kept": kept,
        "outputs": {path: ranges_of(rows) for path, rows in outputs.items()},
        "inputs": {path: ranges_of(columns) for path, columns in inputs.items()},
        "blank": blank,
        "key_value_of": None if even else reads,
        "given": trial.given,
    }
    if layer.place is not None and not even:
        raise Unfit("its heads read keys and values in groups, which have to stay equally large")
    rows = {len(owners): len(features(owners)) for owners in whole.values()}
    sizes = _Sizes(layout, len(places), len(read), group if even else 1, rows)
    counts, more = sizes.of(trial.module, GROUP_SIZES), sizes.of(trial.module, HEAD_COUNTS + KEY_VALUE_COUNTS)
    lengths = sizes.of(trial.module, SIZES)
    config = getattr(trial.module, "config", None)
    in_config = sizes.of(config, HEAD_COUNTS + KEY_VALUE_COUNTS)
    choices = [
        (counts, {}),
        (counts | more, {}),
        (counts | more | lengths, {}),
        (counts | more, in_config),
        (counts | more | lengths, in_config),
        (counts | more | lengths, in_config | sizes.of(config, SIZES)),
    ]
    known = {name: [dim, ranges_of(features(owners))] for name, (dim, owners) in layout.entries.items()}
    sized = {len(owners): outputs[path] for path, owners in whole.items() if path in outputs}
    for entries in ({}, known, known | _buffers(layout, trial, places, sized)):
        for own, shared in choices:
            for picks in (False, True) if layer.place is None else (False,):
                if picks or (even and (layer.place is not None or not shared)):
                    yield plan | {"numbers": own, "config": shared, "entries": entries, "picks": picks}


class _Sizes:
    """The numbers that follow from the number of heads, before and after."""

    def __init__(self, layout: Layout, heads: int, key_value_heads: int, group: int, rows: dict[int, int]):
        before, kv = len(layout.key_value_of), len({*layout.key_value_of})
        key, value = layout.head_size, layout.value_size
        self.table = {
            HEAD_COUNTS: {before: heads},
            KEY_VALUE_COUNTS: {kv: key_value_heads},
            SIZES: rows | {kv * key: key_value_heads * key, before * value: heads * value, before * key: heads * key},
        }
        self.group = group

    def of(self, owner: Any, names: tuple[str, ...]) -> dict[str, int]:
        """Attributes of a module or config with these names -> what they become."""
        found = {}
        for name in names:
            value = integer(owner, name)
            if value is None:
                continue
            if name in GROUP_SIZES:
                found[name] = self.group
            for kind, change in self.table.items():
                if name in kind and value in change:
                    found[name] = change[value]
        return {name: value for name, value in found.items() if value != integer(owner, name)}


def _buffers(layout: Layout, trial: Trial, places: list[int], sized: dict[int, list[int]]) -> dict[str, list]:
    """Buffers, of which no gradient tells: with a number for every head, or every feature of a projection."""
    kept = {len(layout.key_value_of): places} | sized
    found = {}
    for name, tensor in trial.module.named_buffers():
        dim = next((dim for dim, size in enumerate(tensor.shape) if size in kept), None)
        if dim is not None and tensor.is_floating_point():
            found[".".join(filter(None, (trial.name, name)))] = [dim, ranges_of(kept[tensor.shape[dim]])]
    return found


def _agrees(trial: Trial, layout: Layout, plan: Note, wanted: list[torch.Tensor]) -> bool:
    """Whether the layer, cut by this plan, attends with as many heads as are left and puts out what is wanted."""
    trial.calls.clear()
    holder = nn.Module()
    holder.unit = trial.unit  # so that a layer has a path, whether its unit is itself or around it
    path = ".".join(filter(None, ("unit", trial.name)))
    smaller = copy.deepcopy(holder)
    module: Any = smaller.get_submodule(path)
    module.trial.gate = None
    heads = len(plan["kept"]) or 1
    try:
        check_note(smaller, path, plan)
        cut_layer(smaller, path, plan)
        for way, output in enumerate(wanted):
            with torch.no_grad():
                found = module.trial.run(way)
            call = module.trial.calls[0]
            if (call.heads, call.head_size) != (heads, layout.head_size):
                return False
            if found.shape != output.shape or not torch.allclose(found, output, rtol=1e-4, atol=1e-4):
                return False
    except Exception:  # a layer that cannot do with these sizes fails in any way it likes
        return False
    return True


def _refuse_strange_projections(model: PreTrainedModel, layer: AttentionLayer, up: int, names: set[str]) -> None:
    """Quantized or adapted projections, and weights that belong to another module too, cannot be cut."""
    path = layer.path.split(".")
    unit = model.get_submodule(".".join(path[: len(path) - up]))
    uses = collections.Counter(
        id(parameter)
        for module in model.modules()
        for parameter in module._parameters.values()
        if parameter is not None
    )
    for name in sorted(names):
        part, around = unit.get_submodule(name), unit.get_submodule(name.rpartition(".")[0])
        if hasattr(around, "base_layer"):
            raise Unfit(f"its projection {name.rpartition('.')[0]} has an adapter, which has to be merged first")
        if not is_plain(part):
            raise Unfit(f"its projection {name} is a {type(part).__name__}, not a plain linear one")
        if any(uses[id(parameter)] > 1 for parameter in part.parameters()):
            raise Unfit(f"its projection {name} shares its weights with another module")


def joined(before: Note | None, plan: Note) -> Note:
    """One note for two removals, the second of which was planned on what the first had left."""
    if before is None:
        return plan
    note = {**before, **plan}
    for kind in ("outputs", "inputs"):
        note[kind] = {**before[kind], **plan[kind]}
        for path in {*before[kind]} & {*plan[kind]}:
            old = indices(before[kind][path])
            note[kind][path] = ranges_of(old[i] for i in indices(plan[kind][path]))
    note["entries"] = {**before["entries"], **plan["entries"]}
    for path in {*before["entries"]} & {*plan["entries"]}:
        dim, ranges = before["entries"][path]
        note["entries"][path] = [dim, ranges_of(indices(ranges)[i] for i in indices(plan["entries"][path][1]))]
    for kind in ("numbers", "config", "blank"):
        note[kind] = {**before[kind], **plan[kind]}
    note["picks"] = before["picks"] or plan["picks"]
    return note
