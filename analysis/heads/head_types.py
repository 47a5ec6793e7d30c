"""Kinds of heads by where they look, on random tokens that are repeated: previous token, first token, duplicate token
and induction heads (Elhage et al. 2021, Olsson et al. 2022).

A sequence is W random tokens, then the same W again, after a start token if there is one. With the query in the second
half, W places after the same token:

    previous_token    the weight on the place before the query
    first_token       the weight on the first place
    duplicate_token   the weight on the same token in the first half
    induction         the weight on the token after that one, which is what comes next

All are means over the queries for which the place is there. The baseline is what a head would have that looks at all
places alike, of a layer in which no head looks ahead those up to the query. Tokens are drawn at random, so that
nothing but places and repetition can tell them apart.

Shapes: B sequences, H heads, Q queries = keys.
"""

from collections.abc import Iterable

import torch
from torch import Tensor
from transformers import PreTrainedModel

from ...modeling.heads import HeadName
from ...records.intervals import mean_with_interval
from ...records.rows import Rows, row
from .maps import attention_maps


MOST_AT_ONCE = 16  # sequences


def head_types(
    model: PreTrainedModel,
    heads: Iterable[HeadName] | None = None,
    *,
    sequences: int = 32,
    length: int = 20,
    start: int | None = None,
    tokens: Iterable[int] | None = None,
    seed: int = 0,
) -> Rows:
    """How much every self-attention head looks at the previous, the first, the same and the next token.

    >>> import headcount
    >>> from transformers import GPT2Config, GPT2Model
    >>> model = GPT2Model(GPT2Config(n_layer=1, n_head=2, n_embd=8, vocab_size=50))
    >>> rows = headcount.head_types(model, sequences=4, length=5)
    >>> [(row["metric"], row["head"], row["n"]) for row in rows][:2]
    [('previous_token', 'decoder.0.self.0', 4), ('first_token', 'decoder.0.self.0', 4)]

    Args:
        model: one of headcount's own, or any transformers model that reads tokens and whose attention asks
            transformers' interface.
        heads: names of heads or attention layers, or patterns such as `decoder.*.self.*`; without them, all.
        sequences: how many random sequences; the interval is over them.
        length: how many random tokens are repeated, each once in it where there are enough tokens to draw from.
        start: a token before them, such as that of the beginning of a text; without it, there is none.
        tokens: ids to draw from; without them, the whole vocabulary but the special ones that the config names.
        seed: draws the tokens.

    Returns:
        Four rows for every self-attention head: the mean weight with its interval, and `baseline`, that of a head that
        looks at all places alike (of a layer in which no head looks ahead, those up to the query).
    """
    if sequences < 1 or length < 2:
        raise ValueError(f"sequences={sequences} and length={length}; expected at least 1 and 2.")
    ids = repeated_tokens(model, sequences, length, start, tokens, seed)
    found: dict[str, dict[str, list[Tensor]]] = {}
    baselines: dict[str, dict[str, Tensor]] = {}
    for part in ids.split(MOST_AT_ONCE):
        batch = {"input_ids": part}
        if getattr(model.config, "is_encoder_decoder", False):
            batch["decoder_input_ids"] = part
        maps = attention_maps(model, batch, heads)
        for layer, weights in maps.items():
            if layer.endswith(".cross"):
                continue
            baselines[layer] = scores_of(_alike(weights)[None], length)
            for place, number in enumerate(maps.heads[layer]):
                for name, values in scores_of(weights[:, place], length).items():
                    found.setdefault(f"{layer}.{number}", {}).setdefault(name, []).append(values)
    if not found:
        raise ValueError("there are no heads of self-attention among these; expected some.")
    return [
        row(
            "head_types",
            name,
            mean_with_interval(torch.cat(values).numpy()),
            head=head,
            baseline=float(baselines[head.rpartition(".")[0]][name]),
        )
        for head, scores in found.items()
        for name, values in scores.items()
    ]


def scores_of(weights: Tensor, length: int) -> dict[str, Tensor]:
    """Of weights (B, Q, Q) on sequences that end with a repetition of `length` tokens: each score, (B,)."""
    size = weights.shape[-1]
    first = size - 2 * length  # places before the random tokens
    queries = torch.arange(size)
    later, second = queries[1:], queries[first + length :]
    weights = weights.double()
    return {
        "previous_token": weights[:, later, later - 1].mean(-1),
        "first_token": weights[:, later, 0].mean(-1),
        "duplicate_token": weights[:, second, second - length].mean(-1),
        "induction": weights[:, second, second - length + 1].mean(-1),
    }


def repeated_tokens(
    model: PreTrainedModel, sequences: int, length: int, start: int | None, tokens: Iterable[int] | None, seed: int
) -> Tensor:
    """(B, Q): random tokens, twice, after the start token if there is one."""
    config = model.config.get_text_config()
    if tokens is None:
        special = {getattr(config, f"{name}_token_id", None) for name in ("pad", "bos", "eos", "decoder_start")}
        known = [token for token in range(int(config.vocab_size)) if token not in special]
    else:
        known = list(tokens)
    if len(known) < 2:
        raise ValueError(f"there are {len(known)} tokens to draw from; expected at least two.")
    draw = torch.Generator().manual_seed(seed)
    pool = torch.tensor(known)
    if len(known) >= length:
        picked = torch.stack([torch.randperm(len(known), generator=draw)[:length] for _ in range(sequences)])
    else:
        picked = torch.randint(len(known), (sequences, length), generator=draw)
    half = pool[picked]
    parts = [half, half] if start is None else [torch.full((sequences, 1), start), half, half]
    return torch.cat(parts, dim=1)


def _alike(weights: Tensor) -> Tensor:
    """(Q, Q): equal weights on all places, or, if no head of the layer looks ahead, on those up to the query."""
    size = weights.shape[-1]
    ahead = torch.ones(size, size, dtype=torch.bool).triu(1)
    seen = (~ahead if not weights[..., ahead].any() else torch.ones_like(ahead)).double()
    return seen / seen.sum(-1, keepdim=True)
