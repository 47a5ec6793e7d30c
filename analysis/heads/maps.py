"""Where every head looks: attention maps with their tokens, for chosen examples and averaged over many.

A query of a decoder that reads an encoder is labelled with the token that is being predicted there, because that is
what the head works for; the tokens are those that the model really generates, so that maps of failures show the
failing model.

Shapes: B rows, H heads that are left in a layer, Q queries, K keys.
"""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import Any, Literal, overload

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from ...data_builders.examples import Examples, is_labelled
from ...data_builders.vocabulary import IGNORED
from ...modeling.heads import Head, HeadName
from ...modeling.modeling_headcount import HeadcountPreTrainedModel
from ...modeling.stock.finding import attention_layers
from ...modeling.stock.gates import record_maps
from ...records.rows import Row, Rows, row
from ..interventions.batches import Batch, as_batch, row_lengths
from ..interventions.subject import Subject
from .layer_maps import AttentionMaps, StepMaps
from .outputs import choose_heads


@overload
def attention_maps(
    model: PreTrainedModel,
    batch: Batch,
    heads: Iterable[HeadName] | None = None,
    *,
    every_call: Literal[False] = False,
) -> AttentionMaps: ...


@overload
def attention_maps(
    model: PreTrainedModel, batch: Batch, heads: Iterable[HeadName] | None = None, *, every_call: Literal[True]
) -> StepMaps: ...


@overload
def attention_maps(
    model: PreTrainedModel,
    batch: Batch,
    heads: Iterable[HeadName] | None = None,
    *,
    generate: Mapping[str, Any],
    every_call: bool = False,
) -> StepMaps: ...


@torch.inference_mode()
def attention_maps(
    model: PreTrainedModel,
    batch: Batch,
    heads: Iterable[HeadName] | None = None,
    *,
    generate: Mapping[str, Any] | None = None,
    every_call: bool = False,
) -> AttentionMaps | StepMaps:
    """Where every head looks, for one call of the model on the batch or for every step of a generation.

    >>> import headcount, torch
    >>> config = headcount.HeadcountConfig(num_hidden_layers=1, num_attention_heads=2)
    >>> model = headcount.HeadcountForConditionalGeneration(config)
    >>> batch = {"input_ids": torch.tensor([[5, 6, 7, 2]]), "labels": torch.tensor([[6, 5, 2]])}
    >>> maps = headcount.attention_maps(model, batch)
    >>> maps["decoder.0.cross"].shape, maps["decoder.0.cross.1"].shape
    (torch.Size([1, 2, 3, 4]), torch.Size([1, 3, 4]))
    >>> steps = headcount.attention_maps(model, batch, ["decoder.*.self.1"], generate={"min_new_tokens": 2})
    >>> [weights.shape for weights in steps["decoder.0.self.1"][:2]]
    [torch.Size([1, 1, 1]), torch.Size([1, 1, 2])]

    Args:
        model: one of headcount's own, or any transformers model whose heads `list_heads` finds.
        batch: the model's inputs by name, or a tensor of input ids; decoder inputs are made from labels, unless the
            model generates.
        heads: names of heads or attention layers, or patterns such as `decoder.*.self.*`; without them, all.
        generate: options of `model.generate`, which is called instead, such as `{"max_new_tokens": 5}`.
        every_call: of layers that run more than once in a forward, keep every call; without it, they are an error.

    Returns:
        Layers in the order of computation, heads as they are left after pruning. Within `mask_heads`, the maps are
        those of the masked model. A layer that did not run is left out. With `generate` or `every_call`, a list for
        every layer, one entry for each of its calls; `sequences` is what was generated.
    """
    subject, chosen = Subject.of(model), choose_heads(model, heads)
    inputs = subject.prepare(as_batch(batch))
    if generate is not None:
        inputs = {name: value.to(model.device) for name, value in as_batch(batch).items() if name != "labels"}
    was_training = model.training
    model.eval()
    try:
        if isinstance(model, HeadcountPreTrainedModel):
            sequences, calls = _own_calls(model, inputs, generate)
        else:
            wanted = {head.attention for head in chosen}
            sequences, calls = _stock_calls(subject, inputs, generate, wanted)
    finally:
        model.train(was_training)
    numbers = {
        name: layer.heads if heads is None else tuple(n for n in layer.heads if Head(f"{name}.{n}") in chosen)
        for name, layer in subject.layers.items()
    }
    numbers = {name: own for name, own in numbers.items() if name in calls and (own or heads is None)}
    places = {name: [subject.layers[name].heads.index(n) for n in own] for name, own in numbers.items()}
    found = {name: [weights[:, places[name]].cpu() for weights in calls[name]] for name in numbers}
    if generate is not None or every_call:
        return StepMaps(found, numbers, sequences)
    again = next((name for name, steps in found.items() if len(steps) > 1), None)
    if again is not None:
        raise ValueError(
            f"{again} runs {len(found[again])} times in a forward, so it has no one map; expected every_call=True, "
            "which gives a list."
        )
    return AttentionMaps({name: steps[0] for name, steps in found.items()}, numbers)


Calls = dict[str, list[Tensor]]  # attention layer -> (B, H, Q, K) at every call


def _stock_calls(
    subject: Subject, inputs: dict[str, Any], generate: Mapping[str, Any] | None, wanted: set[str]
) -> tuple[Tensor | None, Calls]:
    by_module: dict[nn.Module, list[Tensor]] = {}
    ran: set[nn.Module] = set()
    with record_maps(subject.model, by_module), ExitStack() as stack:
        for layer in subject.layers.values():
            stack.callback(layer.module.register_forward_hook(lambda module, *_: ran.add(module)).remove)
        sequences = None
        if generate is None:
            subject.call(inputs)
        else:
            sequences = _written(subject.model.generate(**inputs, **generate))
    layers = subject.layers
    unread = [name for name in layers if name in wanted and layers[name].module in ran - by_module.keys()]
    if unread:
        kind = type(layers[unread[0]].module).__name__
        raise ValueError(
            f"{len(unread)} attention layers of {type(subject.model).__name__} compute their maps by themselves "
            f"({kind}, such as {unread[0]}), where they cannot be read; expected heads=[...] of other layers, or "
            "output_attentions=True in a call of the model, if it offers that."
        )
    return sequences, {name: by_module[layer.module] for name, layer in layers.items() if layer.module in by_module}


def _own_calls(
    model: HeadcountPreTrainedModel, inputs: dict[str, Any], generate: Mapping[str, Any] | None
) -> tuple[Tensor | None, Calls]:
    if generate is None:
        outputs = model(**inputs, output_attentions=True)
        return None, {name: [own] for name, own in _own_maps(model, outputs).items()}
    asked = {"output_attentions": True, "return_dict_in_generate": True}
    outputs = model.generate(**inputs, **{**generate, **asked})
    found: Calls = {}
    if model.config.is_encoder_decoder:
        found = {f"encoder.{i}.self": [own] for i, own in enumerate(outputs["encoder_attentions"])}
        steps = {"self": outputs["decoder_attentions"], "cross": outputs["cross_attentions"]}
    else:
        steps = {"self": outputs["attentions"]}
    for kind, maps in steps.items():
        for step in maps:
            for i, own in enumerate(step):
                found.setdefault(f"decoder.{i}.{kind}", []).append(own)
    return outputs["sequences"].cpu(), found


def _written(found: Any) -> Tensor:
    """The sequences, whichever way `generate` was told to give them."""
    return (found if isinstance(found, Tensor) else found["sequences"]).cpu()


def _own_maps(model: HeadcountPreTrainedModel, outputs: dict) -> dict[str, Tensor]:
    if not model.config.is_encoder_decoder:
        parts = {(model.config.architecture, "self"): outputs["attentions"]}
    else:
        parts = {("encoder", "self"): outputs["encoder_attentions"]}
        parts |= {
            ("decoder", "self"): outputs["decoder_attentions"],
            ("decoder", "cross"): outputs["cross_attentions"],
        }
    return {f"{stack}.{i}.{kind}": one for (stack, kind), maps in parts.items() for i, one in enumerate(maps)}


@torch.inference_mode()
def generated_rows(
    model: HeadcountPreTrainedModel, examples: Examples, masks: dict[str, Tensor] | None = None
) -> dict[str, Tensor]:
    """The rows, with the model's own greedy answers in place of the right ones; `masks` are head masks."""
    masks = masks or {}
    rows = dict(examples.rows)
    if examples.task.kind == "label":
        return rows
    model.eval()
    longest = int(is_labelled(rows["labels"]).sum(-1).max())
    pad = model.config.pad_token_id
    if pad is None:
        raise ValueError("pad_token_id=None fills up no row; expected the token id that does.")
    if model.config.is_encoder_decoder:
        inputs = {name: rows[name].to(model.device) for name in ("input_ids", "attention_mask") if name in rows}
        written = model.generate(**inputs, **masks, max_new_tokens=longest, do_sample=False)[:, 1:].cpu()
        labels = torch.full((len(written), longest), pad)
        labels[:, : written.shape[1]] = written
        eos = model.config.eos_token_id
        assert eos is not None  # the config of an encoder-decoder insists on it
        ends = (labels == eos).int()
        rows["labels"] = labels.masked_fill((labels == pad) | (ends.cumsum(-1) - ends > 0), IGNORED)
        return rows
    parts = []
    for index in range(len(examples)):  # prompts of different lengths; there are only a few examples to look at
        prompt = rows["input_ids"][index : index + 1, : int(is_labelled(rows["labels"][index]).int().argmax())]
        parts.append(
            model.generate(prompt.to(model.device), **masks, max_new_tokens=longest, do_sample=False)[0].cpu()
        )
    width = max(map(len, parts))
    ids = torch.full((len(parts), width), pad)
    for index, written in enumerate(parts):
        ids[index, : len(written)] = written
    return {"input_ids": ids, "attention_mask": (ids != pad).long(), "labels": torch.where(ids == pad, IGNORED, ids)}


def map_row(
    example: int,
    text: str,
    layer: str,
    heads: list[int],
    axes: tuple[list[str], list[str]],
    written: str,
    maps: Tensor,
    calls: int = 1,
) -> Row:
    """The row of one example and attention layer: tokens on both axes, and weights (H, Q, K) to four decimals.

    Of a layer that runs more than once in a forward, the weights are those of the last of its `calls`.
    """
    return row(
        "maps",
        "attention_weights",
        {"n": 1},
        example=example,
        input=text,
        answer=written,
        layer=layer,
        heads=heads,
        queries=axes[0],
        keys=axes[1],
        calls=calls,
        weights=_rounded(maps[:, : len(axes[0]), : len(axes[1])]),
    )


def map_rows(model: HeadcountPreTrainedModel, examples: Examples) -> Rows:
    """One row per example and attention layer, on what the model really writes."""
    rows = generated_rows(model, examples)
    maps, layers = attention_maps(model, rows), attention_layers(model)
    joiner = examples.task.vocabulary.joiner
    found = []
    for index in range(len(examples)):
        inputs, written = axis_tokens(model, examples, rows, index)
        for name, weights in maps.items():
            axes = axes_of(model, name, inputs, written)
            heads, text = list(layers[name].heads), joiner.join(inputs)
            found.append(map_row(index, text, name, heads, axes, joiner.join(written), weights[index]))
    return found


def text_map_rows(model: PreTrainedModel, batch: Batch, tokens: dict[str, list[list[str]]], titles: list[str]) -> Rows:
    """One row per example and attention layer of any model; `tokens` names those of inputs and answers."""
    rows, layers = [], attention_layers(model)
    maps = attention_maps(model, batch, every_call=True)
    for example, title in enumerate(titles):
        inputs = tokens["input_ids"][example]
        written = tokens.get("labels", [[]] * len(titles))[example]
        for name, calls in maps.items():
            axes, heads = axes_of(model, name, inputs, written), list(layers[name].heads)
            weights = calls[-1][example]
            rows.append(map_row(example, title, name, heads, axes, " ".join(written), weights, len(calls)))
    return rows


def average_rows(model: HeadcountPreTrainedModel, examples: Examples, batch_size: int = 128) -> Rows:
    """One row per attention layer: maps averaged over all examples, which must be of one length."""
    if len(row_lengths(examples.rows).unique(dim=0)) > 1:
        raise ValueError("the examples differ in length; expected examples of one length to average their maps.")
    total: dict[str, Tensor] = {}
    for batch in examples.batches(batch_size):
        for name, maps in attention_maps(model, batch).items():
            added = maps.double().sum(0)
            total[name] = total[name] + added if name in total else added
    places = place_names(model, examples)
    layers, rows = attention_layers(model), []
    for name, weights in total.items():
        queries, keys = axes_of(model, name, *places)
        mean = weights[:, : len(queries), : len(keys)] / len(examples)
        rows.append(
            row(
                "maps",
                "mean_attention_weights",
                {"n": len(examples)},
                layer=name,
                heads=list(layers[name].heads),
                queries=queries,
                keys=keys,
                weights=_rounded(mean),
            )
        )
    return rows


def axis_tokens(
    model: HeadcountPreTrainedModel, examples: Examples, rows: dict[str, Tensor], index: int
) -> tuple[list[str], list[str]]:
    """The input tokens of a row, and the tokens that its decoder predicts."""
    ids, mask, names = rows["input_ids"][index], rows.get("attention_mask"), examples.task.vocabulary.names
    inputs = names((ids if mask is None else ids[mask[index].bool()]).tolist())
    if not model.config.is_encoder_decoder:
        return inputs, []
    labels = rows["labels"][index]
    return inputs, names(labels[is_labelled(labels)].tolist())


def axes_of(model: PreTrainedModel, name: str, inputs: list[str], written: list[str]) -> tuple[list[str], list[str]]:
    """Labels of the queries and keys of an attention layer."""
    stack, _, kind = name.split(".")
    if stack != "decoder" or not getattr(model.config, "is_encoder_decoder", False):
        return inputs, inputs
    return [f"→{token}" for token in written], inputs if kind == "cross" else ["start", *written[:-1]]


def place_names(model: HeadcountPreTrainedModel, examples: Examples) -> tuple[list[str], list[str]]:
    """Names of the places of inputs and answers that hold for all examples, which are of one length.

    A role that has a letter gives its places that letter and their index (`a2 a1 a0 + b2 b1 b0`); a token that is the
    same in all examples stands for itself; anything else, and the answer, is numbered.
    """
    task, rows = examples.task, examples.rows
    roles, width = examples.roles("input"), int(row_lengths(rows)[0, 0])
    tokens = task.vocabulary.names(rows["input_ids"][0].tolist())
    same_token = (rows["input_ids"] == rows["input_ids"][:1]).all(0).tolist()
    same_role = ((roles.role == roles.role[:1]) & (roles.index == roles.index[:1])).all(0).tolist()
    answer = rows["labels"][0] if model.config.architecture == "decoder" else torch.full((width,), IGNORED)
    inputs: list[str] = []
    written = 0
    for slot in range(width):
        letter = task.role_letters.get(roles.names[int(roles.role[0, slot])]) if same_role[slot] else None
        if int(answer[slot]) >= task.vocabulary.first:
            inputs.append(f"y{written}")
            written += 1
        elif letter is not None:
            inputs.append(f"{letter}{int(roles.index[0, slot])}")
        else:
            inputs.append(tokens[slot] if task.role_letters and same_token[slot] else f"x{slot}")
    count = int(is_labelled(rows["labels"][0]).sum()) if model.config.is_encoder_decoder else 0
    return inputs, [f"y{i}" for i in range(count)]


def _rounded(weights: Tensor) -> list:
    return np.round(weights.double().numpy(), 4).tolist()
