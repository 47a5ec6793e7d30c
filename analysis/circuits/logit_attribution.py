"""What every head and sublayer adds to a logit directly, past all later layers (Elhage et al. 2021, as TransformerLens
does it with the scale of the final norm held fixed).

The stream that leads to the logits is a sum: embeddings, what each head brings through the output projection, what
each feed-forward sublayer puts out, and biases. With the scale of the final norm held at its actual value, norm and
output layer are linear, so that the logit is a sum of the same parts. Everything this rests on is looked at in a run:
which module projects the heads, which norm is the last, that the layers do add up, that the parts sum to the logit. An
architecture in which one of these is not so (post-norm BERT, norms after sublayers) is refused.

Shapes: B rows, L tokens, E hidden size, H heads, D head dimension; everything is in float64.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from ...modeling.heads import Head
from ...modeling.stock.finding import AttentionLayer
from ...records.intervals import mean_with_interval
from ...records.rows import Rows, row
from ..interventions.batches import Batch, as_batch, batch_rows, token_at
from ..interventions.subject import Subject, only_call
from .logit_lens import answering_streams


CLOSE = 1e-4  # of the largest number: how well sums must hold


@torch.inference_mode()
def logit_attribution(
    model: PreTrainedModel,
    batch: Batch,
    tokens: int | Sequence[int] | Tensor,
    against: int | Sequence[int] | Tensor | None = None,
    *,
    at: int = -1,
) -> Rows:
    """What every head, feed-forward sublayer, the embeddings and biases add to a logit, or to the difference of two.

    >>> import headcount, torch
    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> config = GPT2Config(n_layer=1, n_head=2, n_embd=8, vocab_size=9, bos_token_id=0, eos_token_id=0)
    >>> model = GPT2LMHeadModel(config)
    >>> rows = headcount.logit_attribution(model, torch.tensor([[5, 6, 7]]), tokens=3, against=4)
    >>> [row["site"] for row in rows][:4]
    ['embeddings', 'decoder.0.self.0', 'decoder.0.self.1', 'decoder.0.self bias']
    >>> abs(sum(row["value"] for row in rows[:-1]) - rows[-1]["value"]) < 1e-4
    True

    Args:
        model: a transformers model with one stack of layers that add to a residual stream, a final norm and a linear
            output layer, such as GPT-2 and Llama.
        batch: the model's inputs by name, or a tensor of input ids.
        tokens: the token whose logit is taken apart, one for all rows or one for each.
        against: a token whose logit is subtracted, in the same way.
        at: the position whose logits are read; -1 is the last, padding left out.

    Returns:
        One row for every part, `logit` or `logit_difference`: its mean over the rows. The last, `total`, is the
        model's own logit, to which the parts sum.
    """
    given, was_training = as_batch(batch), model.training
    model.eval()
    try:
        run = _watch(Subject.of(model), given, at)
    finally:
        model.train(was_training)
    rows = batch_rows(given)
    weight, size = run.head.weight.double(), run.head.weight.shape[0]
    wanted = _token_ids(tokens, rows, size, "tokens").to(weight.device)
    direction, output_bias = weight[wanted], _bias(run.head)[wanted]
    total = run.logits.gather(-1, wanted[:, None])[:, 0]
    if against is not None:
        other = _token_ids(against, rows, size, "against").to(weight.device)
        direction, output_bias = direction - weight[other], output_bias - _bias(run.head)[other]
        total = total - run.logits.gather(-1, other[:, None])[:, 0]
    parts = {name: (run.through_norm(direction) * states).sum(-1) for name, states in run.parts.items()}
    parts["final norm bias"] = (direction * run.norm_bias).sum(-1)
    parts["output bias"] = output_bias
    _insist(_close(torch.stack([*parts.values()]).sum(0), total), run, "parts that sum to the logit")
    metric = "logit" if against is None else "logit_difference"
    return [
        row("logit_attribution", metric, mean_with_interval(values.cpu().numpy()), site=name)
        for name, values in {**parts, "total": total}.items()
    ]


@dataclass(frozen=True)
class Watched:
    """What a run showed, at the position that is read."""

    model: str
    parts: dict[str, Tensor]  # (B, E): they sum to the stream before the final norm
    gain: Tensor  # (E,)
    scale: Tensor  # (B, 1)
    centred: bool
    norm_bias: Tensor  # (E,)
    head: nn.Linear
    logits: Tensor  # (B, classes)

    def through_norm(self, direction: Tensor) -> Tensor:
        """A direction after the norm (B, E) as one before it, the scale held fixed."""
        before = direction * self.gain / self.scale
        return before - before.mean(-1, keepdim=True) if self.centred else before


def _watch(subject: Subject, batch: dict[str, Any], at: int) -> Watched:
    model = subject.model
    refused = _Refusal(type(model).__name__)
    if getattr(model.config, "is_encoder_decoder", False):
        raise refused("one stack; it has an encoder and a decoder")
    streams = answering_streams(subject)
    layers = [name.rpartition(".")[0] for name in streams]
    missing = next((own for own in layers if f"{own}.mlp" not in subject.paths), None)
    if missing is not None:
        raise refused(f"one feed-forward sublayer in {missing}")
    if model.dtype not in (torch.float32, torch.float64):
        raise refused(f"weights of at least 32 bits, not {model.dtype}, in which sums do not hold")
    head: Any = model.get_output_embeddings()
    if not isinstance(head, nn.Linear):
        raise refused("a linear output layer")
    blocks = [subject.paths[name] for name in streams]
    seen: dict[nn.Module, tuple[Tensor, Any]] = {}
    inner = [model.get_submodule(path) for path in blocks[:1]]
    linear = [part for part in model.modules() if isinstance(part, (nn.Linear, Conv1D))]
    norms = [
        part
        for path, part in model.named_modules()
        if "norm" in type(part).__name__.lower() and not any(f"{path}.".startswith(f"{own}.") for own in blocks)
    ]
    with _seen(seen, [*inner, *linear, *norms]):
        outputs, read = subject.read(batch, {*streams, *subject.layers, *(f"{own}.mlp" for own in layers)})
    record = only_call(read, "a model whose layers run once")
    if head not in seen:
        raise refused("a linear output layer that is called")
    places = token_at(batch, at).to(head.weight.device)
    first = torch.arange(len(places), device=places.device)

    def here(states: Tensor) -> Tensor:
        return states[first, places].double()

    stream = seen[inner[0]][0]
    parts = {"embeddings": here(stream)}
    for own, name in zip(layers, streams, strict=True):
        after, total = record[name], stream.double()
        for layer in (one for key, one in subject.layers.items() if key.rpartition(".")[0] == own):
            projection = _projection(layer, model.get_submodule(subject.paths[name]), record, seen, refused)
            total = total + seen[projection][1].double()
            parts |= _head_parts(layer, projection, here(record[layer.name]))
        total = total + record[f"{own}.mlp"].double()
        parts[f"{own}.mlp"] = here(record[f"{own}.mlp"])
        if not _close(total, after.double()):
            raise refused(f"{own} to add its attention and feed-forward outputs to the stream as they are")
        stream = after
    norm = next((part for part in norms if part in seen and torch.equal(seen[part][0], stream)), None)
    if norm is None or not torch.equal(seen[norm][1], seen[head][0]):
        raise refused("one norm between the last layer and the output layer, and nothing else")
    gain, scale, centred, bias = _linearised(norm, here(stream), here(seen[norm][1]), refused)
    return Watched(type(model).__name__, parts, gain, scale, centred, bias, head, here(outputs["logits"]))


def _head_parts(layer: AttentionLayer, projection: nn.Module, outputs: Tensor) -> dict[str, Tensor]:
    """What each head (B, H, D) brings to the stream, and what the projection's bias does, (B, E)."""
    weight: Any = projection.weight
    weight = (weight.T if isinstance(projection, Conv1D) else weight).double()  # (E, H * D)
    by_head = weight.unflatten(-1, (len(layer.heads), -1))
    found = {
        str(Head(f"{layer.name}.{number}")): outputs[:, place] @ by_head[:, place].T
        for place, number in enumerate(layer.heads)
    }
    return {**found, f"{layer.name} bias": _bias(projection).expand(len(outputs), -1)}


def _bias(projection: Any) -> Tensor:
    bias = getattr(projection, "bias", None)
    if bias is not None:
        return bias.double()
    weight = projection.weight
    return weight.new_zeros(weight.shape[1] if isinstance(projection, Conv1D) else weight.shape[0]).double()


def _projection(
    layer: AttentionLayer,
    block: nn.Module,
    record: dict[str, Tensor],
    seen: dict[nn.Module, tuple[Tensor, Any]],
    refused: "_Refusal",
) -> nn.Module:
    """The part of a block that was called with what the heads of an attention layer put out."""
    merged = record[layer.name].flatten(-2)
    for part in block.modules():
        if part in seen and seen[part][0].shape == merged.shape and torch.equal(seen[part][0], merged):
            return part
    raise refused(f"an output projection in {layer.name} that reads its heads as they are")


def _linearised(norm: Any, states: Tensor, found: Tensor, refused: "_Refusal") -> tuple[Tensor, Tensor, bool, Tensor]:
    """Gain (E,), scale (B, 1), whether it takes the mean away, and bias: those that give what the norm gave."""
    weight = norm.weight.double() if getattr(norm, "weight", None) is not None else torch.ones_like(states[0])
    bias = norm.bias.double() if getattr(norm, "bias", None) is not None else torch.zeros_like(weight)
    epsilon = next((getattr(norm, n) for n in ("eps", "variance_epsilon") if hasattr(norm, n)), 0.0) or 0.0
    for centred in (True, False):
        own = states - states.mean(-1, keepdim=True) if centred else states
        scale = (own.square().mean(-1, keepdim=True) + epsilon).sqrt()
        for gain in (weight, 1 + weight):  # Gemma counts its gains from 1
            if _close(own / scale * gain + bias, found):
                return gain, scale, centred, bias
    raise refused("a final norm that divides by a standard deviation or a root mean square")


@contextmanager
def _seen(into: dict[nn.Module, tuple[Tensor, Any]], modules: list[nn.Module]) -> Iterator[None]:
    """Within the context, modules leave their first input and their output."""

    def hook(module: nn.Module, arguments: tuple, options: dict, output: Any) -> None:
        first = arguments[0] if arguments else options.get("hidden_states")
        if isinstance(first, Tensor):
            into[module] = (first, output)

    with ExitStack() as stack:
        for module in modules:
            stack.callback(module.register_forward_hook(hook, with_kwargs=True).remove)
        yield


class _Refusal:
    """Makes the sentence for a model whose logits cannot be taken apart."""

    def __init__(self, model: str):
        self.model = model

    def __call__(self, expected: str) -> ValueError:
        return ValueError(f"the logits of {self.model} cannot be taken apart; expected {expected}.")


def _insist(holds: bool, run: Watched, expected: str) -> None:
    if not holds:
        raise _Refusal(run.model)(expected)


def _close(found: Tensor, wanted: Tensor) -> bool:
    return bool(((found - wanted).abs() <= CLOSE * wanted.abs().max().clamp(min=1)).all())


def _token_ids(tokens: Any, rows: int, size: int, name: str) -> Tensor:
    found = torch.as_tensor(tokens)
    found = found.expand(rows) if found.ndim == 0 else found
    if found.shape != (rows,) or found.is_floating_point() or bool(((found < 0) | (found >= size)).any()):
        raise ValueError(
            f"{name} are {found.dtype} of shape {tuple(found.shape)}; expected token ids from 0 to {size - 1}, one "
            f"for all rows or {rows}."
        )
    return found
