"""Mean, resample and swaps checked without headcount's recorder and without its gates: recorded and replaced here.

A tap is a place where the heads of a layer can be seen and changed: the input of an output projection, by a forward
pre-hook, or what torch's `scaled_dot_product_attention`, or the model's own `eager_attention_forward`, gives back
while the layer runs. These are needed where a layer does something else between its heads and the projection (a gate,
the difference of two), another one for torch's own layer. A tap counts only if a head that is zero there is a head
that is masked.

Shapes: B examples, H heads, D head dimension; `own` is (rows, ..., H, D).
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from oracles import hook_places
from torch import Tensor, nn
from transformers import PreTrainedModel


Put = Callable[[Tensor], Tensor]
Tap = Callable[[Put], AbstractContextManager[None]]
Run = Callable[[], Any]


def taps(model: PreTrainedModel, path: str, heads: int) -> Iterator[Tap]:
    """Every place at which the heads of a layer may be found."""
    for place in hook_places(model, path):
        yield lambda put, place=place: at_projection(place, heads, put)
        yield lambda put, place=place: at_projection(place, heads, put, tokens_first=True)
    module = model.get_submodule(path)
    if isinstance(module, nn.MultiheadAttention):
        yield lambda put: at_torch_projection(module, put)
        return
    yield lambda put: at_attention(model, module, put)
    yield lambda put: at_eager_attention(model, module, put)


@contextmanager
def at_projection(place: nn.Module, heads: int, put: Put, tokens_first: bool = False) -> Iterator[None]:
    """`tokens_first`: the states are (tokens, rows, ...), as FSMT has them."""

    def before(module: nn.Module, inputs: tuple) -> tuple:
        own = inputs[0].unflatten(-1, (heads, -1))
        changed = put(own.transpose(0, 1)).transpose(0, 1) if tokens_first else put(own)
        return (changed.flatten(-2), *inputs[1:])

    hook = place.register_forward_pre_hook(before)
    try:
        yield
    finally:
        hook.remove()


@contextmanager
def at_attention(model: PreTrainedModel, module: nn.Module, put: Put) -> Iterator[None]:
    """What torch's attention gives is (rows, H, ..., D); a model without it raises a ValueError."""
    before = model.config._attn_implementation
    model.set_attn_implementation("sdpa")
    plain, running = nn.functional.scaled_dot_product_attention, []

    def tapped(*arguments: Any, **options: Any) -> Tensor:
        output = plain(*arguments, **options)
        return put(output.movedim(1, -2)).movedim(-2, 1) if running else output

    hooks = [
        module.register_forward_pre_hook(lambda *_: running.append(True)),
        module.register_forward_hook(lambda *_: running.clear()),
    ]
    nn.functional.scaled_dot_product_attention = tapped
    try:
        yield
    finally:
        nn.functional.scaled_dot_product_attention = plain
        for hook in hooks:
            hook.remove()
        model.set_attn_implementation(before)


@contextmanager
def at_eager_attention(model: PreTrainedModel, module: nn.Module, put: Put) -> Iterator[None]:
    """What the function of that name in the module's own file gives is (rows, ..., H, D); no such file: ValueError."""
    home = sys.modules[type(module).__module__]
    if not hasattr(home, "eager_attention_forward"):
        raise ValueError(f"{home.__name__} has no eager_attention_forward")
    before, plain = model.config._attn_implementation, home.eager_attention_forward
    model.set_attn_implementation("eager")

    def tapped(asked: nn.Module, *arguments: Any, **options: Any) -> tuple:
        output, *rest = plain(asked, *arguments, **options)
        return (put(output) if asked is module else output, *rest)

    home.eager_attention_forward = tapped  # type: ignore[attr-defined]
    try:
        yield
    finally:
        home.eager_attention_forward = plain  # type: ignore[attr-defined]
        model.set_attn_implementation(before)


@contextmanager
def at_torch_projection(module: nn.MultiheadAttention, put: Put) -> Iterator[None]:
    """Torch's attention layer never calls its projection, but multiplies by its weight: (tokens * rows, H * D)."""
    plain, rows = nn.functional.linear, []

    def tapped(states: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        if weight is module.out_proj.weight:
            heads = states.unflatten(0, (-1, rows[-1])).unflatten(-1, (module.num_heads, -1)).transpose(0, 1)
            states = put(heads).transpose(0, 1).flatten(-2).flatten(0, 1)
        return plain(states, weight, bias)

    def see(module: nn.MultiheadAttention, inputs: tuple, options: dict) -> None:
        query = inputs[0] if inputs else options["query"]
        rows.append(query.shape[0 if module.batch_first else 1])

    hook, fast = module.register_forward_pre_hook(see, with_kwargs=True), torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    nn.functional.linear = tapped
    try:
        yield
    finally:
        nn.functional.linear = plain
        torch.backends.mha.set_fastpath_enabled(fast)
        hook.remove()


def recorded(run: Run, tap: Tap) -> list[Tensor]:
    """What the heads put out at every call, in order."""
    calls: list[Tensor] = []

    def keep(own: Tensor) -> Tensor:
        calls.append(own.clone())
        return own

    with tap(keep):
        run()
    return calls


def replaced(run: Run, tap: Tap, head: int, calls: list[Tensor]) -> Any:
    """The outputs with one head replaced, call by call."""
    left = list(calls)

    def put(own: Tensor) -> Tensor:
        changed = own.clone()
        changed[..., head, :] = left.pop(0)[..., head, :]
        return changed

    with tap(put):
        outputs = run()
    if left:
        raise RuntimeError(f"{len(left)} calls were left over")
    return outputs


def zeros(calls: list[Tensor]) -> list[Tensor]:
    return [torch.zeros_like(own) for own in calls]


def means(calls: list[Tensor], rows: int) -> list[Tensor]:
    """The mean over the examples, whose rows lie together."""
    found = []
    for own in calls:
        mean = sum(own.split(len(own) // rows)) / rows  # type: ignore[operator]
        found.append(torch.cat([mean] * rows))
    return found


def of_others(calls: list[Tensor], partner: list[int]) -> list[Tensor]:
    """What was put out on another example."""
    found = []
    for own in calls:
        parts = own.split(len(own) // len(partner))
        found.append(torch.cat([parts[other] for other in partner]))
    return found
