"""Position schemes: which integer id every token gets. What an encoding makes of the ids is its own affair.

Every scheme is a function `scheme(slots, input_ids, attention_mask, config, stack, training) -> ids`:

    slots           (L,) = 0..L-1, the places in the sequence
    input_ids       (B, L), or None where the tokens of the whole sequence are not at hand
    attention_mask  (B, L), nonzero for real tokens, or None
    stack           "encoder" or "decoder"
    ids             (B, L), or (1, L) if all rows share them

Ids of padding mean nothing. While a decoder writes, a scheme is asked again for the whole sequence at every step, and
the ids of earlier tokens must not change: their keys are in the cache.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from ..configuration.configuration_headcount import HeadcountConfig


OTHER_ID, OPERATOR_ID, FIRST_DIGIT_ID = 0, 1, 2
LEVEL_STRIDE = 1 << 16  # between the ids of one depth of brackets and the next: longer than any string


def sequential(
    slots: Tensor,
    input_ids: Tensor | None,
    attention_mask: Tensor | None,
    config: HeadcountConfig,
    stack: str,
    training: bool,
) -> Tensor:
    """0, 1, 2, ... for the real tokens, wherever the padding is.

    Padding behind a real token has its place in the sequence, whatever comes after it: a prompt that is padded at the
    end gives the same in one pass as token by token.
    """
    if attention_mask is None:
        return slots[None]
    real = attention_mask != 0
    if not torch.compiler.is_compiling() and bool(real[:, 0].all() and (real[:, 1:] <= real[:, :-1]).all()):
        return slots[None]  # padded at the end at most; ids shared by all rows cost less memory
    count = real.long().cumsum(-1)
    return torch.where(real, count - 1, slots * (count > 0))


def randomized(
    slots: Tensor,
    input_ids: Tensor | None,
    attention_mask: Tensor | None,
    config: HeadcountConfig,
    stack: str,
    training: bool,
) -> Tensor:
    """Ruoss et al. 2023, https://arxiv.org/abs/2305.16843: an ordered random subset of a larger range.

    In training every row draws its own subset of 0..max_position_embeddings-1 (with `inputs_embeds` alone the rows
    share one, as their number is not known here). Otherwise ids must not be random: an
    encoder, which knows the length, spreads its tokens evenly over the range; a decoder counts up by one.
    """
    order = sequential(slots, input_ids, attention_mask, config, stack, training)
    span, length = config.max_position_embeddings, slots.shape[0]
    if length > span:
        raise ValueError(
            f"a sequence of {length} tokens does not fit into position_scheme='randomized' over "
            f"max_position_embeddings={span} ids; expected at most {span} tokens."
        )
    if training:
        known = [order, *(tensor for tensor in (input_ids, attention_mask) if tensor is not None)]
        rows = max(tensor.shape[0] for tensor in known)
        drawn = torch.rand(rows, span, device=slots.device).topk(length, dim=-1).indices.sort(dim=-1).values
        return drawn.gather(-1, order.expand(rows, -1))
    if stack == "decoder":
        return order
    count = length if attention_mask is None else attention_mask.bool().sum(-1, keepdim=True).clamp(min=1)
    return ((2 * order + 1) * span // (2 * count)).clamp(max=span - 1)  # what is padded may count beyond the end


def coupled(
    slots: Tensor,
    input_ids: Tensor | None,
    attention_mask: Tensor | None,
    config: HeadcountConfig,
    stack: str,
    training: bool,
) -> Tensor:
    """Cho et al. 2024, https://arxiv.org/abs/2405.20671: digits of equal significance share an id.

    Operands are written most significant digit first. `answer_order` says what belongs together:
    - "reversed": the units of operands and answer have id 2, the tens 3, and so on.
    - "plain": ids count from the left; the answer must have one digit more than the operands, which are padded with
      zeros to one length.
    - "aligned": ids count from the left in question and answer.
    - "sorted": ids are twice the value of a token, and the next larger id in the question is that of the value to be
      written next: one above the id of the last one while some of its kind are left, and more after that.

    Operators and the start of the answer have id 1, bos, eos and padding 0. What counts as a digit is for the task to
    say. The alignment is built in by hand; say so next to its results.

        reversed   bos 3 7 4 + 8 1 4 = 8 8 1 1      aligned   bos b a n = b a n      sorted   bos 2 1 1 = 1 1 2
                     0 4 3 2 1 4 3 2 1 2 3 4 5                  0 2 3 4 1 2 3 4                 0 7 5 5 1 4 6 8
    """
    tokens = _tokens(input_ids, config)
    is_digit = _digits(tokens, config)
    if config.is_encoder_decoder:
        in_answer = torch.full_like(is_digit, stack == "decoder")
    else:
        assert config.answer_start_token_id is not None  # the config insists on it
        in_answer = (tokens == config.answer_start_token_id).cumsum(-1) > 0
    place = COUPLED_PLACES[config.answer_order](tokens, is_digit, in_answer, config)
    ids = torch.where(is_digit, FIRST_DIGIT_ID + place, OPERATOR_ID)
    idle = [token for token in (config.pad_token_id, config.bos_token_id, config.eos_token_id) if token is not None]
    is_idle = torch.isin(tokens, torch.tensor(idle, device=tokens.device))
    if config.is_encoder_decoder and stack == "decoder":
        is_idle = is_idle & (tokens != config.decoder_start_token_id)  # it stands where a single stack has its "="
    return _with_random_offset(_shared(ids.masked_fill(is_idle, OTHER_ID)), config, training)


def abacus(
    slots: Tensor,
    input_ids: Tensor | None,
    attention_mask: Tensor | None,
    config: HeadcountConfig,
    stack: str,
    training: bool,
) -> Tensor:
    """McLeish et al. 2024, https://arxiv.org/abs/2405.17399: a digit's id is its place within its number, from 1.

        bos 3 7 4 + 8 1 4 = 8 8 1 1
          0 1 2 3 0 1 2 3 0 1 2 3 4

    In the paper all numbers are written least significant digit first, so that equal ids mean equal significance.
    """
    is_digit = _digits(_tokens(input_ids, config), config)
    ids = torch.where(is_digit, _place_in_run(is_digit) + 1, OTHER_ID)
    return _with_random_offset(_shared(ids), config, training)


def nested(
    slots: Tensor,
    input_ids: Tensor | None,
    attention_mask: Tensor | None,
    config: HeadcountConfig,
    stack: str,
    training: bool,
) -> Tensor:
    """Brackets of one depth, whatever their kind, have ids that follow one another; other depths are far away.

    An opening bracket and the one that closes it have the same depth and none of that depth between them: their ids
    differ by one. The stack is built in by hand; say so next to its results. Other tokens have id 0.

        (       [       ]       (       )       )       (       )
        D + 1   2D + 1  2D + 2  2D + 3  2D + 4  D + 2   D + 3   D + 4       D = LEVEL_STRIDE
    """
    tokens = _tokens(input_ids, config)
    assert config.bracket_token_ids is not None  # the config insists on it
    opening, closing = torch.tensor(config.bracket_token_ids, device=tokens.device).chunk(2)
    opens, closes = torch.isin(tokens, opening), torch.isin(tokens, closing)
    level = (opens.long() - closes.long()).cumsum(-1) + closes.long()
    # Other tokens are each alone on a level of its own, so that they never count.
    level = torch.where(opens | closes, level, LEVEL_STRIDE + slots)
    ordered, order = level.sort(dim=-1, stable=True)
    is_first = torch.ones_like(ordered, dtype=torch.bool)
    is_first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    number = slots - torch.where(is_first, slots, 0).cummax(-1).values
    place = torch.empty_like(number).scatter(-1, order, number)
    return _shared(torch.where(opens | closes, LEVEL_STRIDE * level + place + 1, OTHER_ID))


def _tokens(input_ids: Tensor | None, config: HeadcountConfig) -> Tensor:
    """The tokens, or an error where they are not at hand."""
    if input_ids is None:
        raise ValueError(
            f"position_scheme={config.position_scheme!r} makes ids from the tokens of the whole sequence, which are "
            "not at hand here (cached decoding, inputs_embeds or encoder_outputs); expected explicit position_ids, as "
            "model.make_position_ids(input_ids) gives them."
        )
    return input_ids


def _digits(tokens: Tensor, config: HeadcountConfig) -> Tensor:
    return torch.isin(tokens, torch.tensor(config.digit_token_ids, device=tokens.device))


def _place_in_run(is_digit: Tensor) -> Tensor:
    """0, 1, 2, ... within every run of digits: [x 3 7 + 8] -> [. 0 1 . 0]"""
    count = is_digit.long().cumsum(-1)
    before_run = torch.where(is_digit, 0, count).cummax(-1).values
    return (count - before_run - 1).clamp(min=0)


def _place_from_left(tokens: Tensor, is_digit: Tensor, in_answer: Tensor, config: HeadcountConfig) -> Tensor:
    return _place_in_run(is_digit)


def _place_after_carry(tokens: Tensor, is_digit: Tensor, in_answer: Tensor, config: HeadcountConfig) -> Tensor:
    """From the left, and an answer has one digit more."""
    return _place_in_run(is_digit) + ~in_answer


def _place_from_right(tokens: Tensor, is_digit: Tensor, in_answer: Tensor, config: HeadcountConfig) -> Tensor:
    return torch.where(in_answer, _place_in_run(is_digit), _place_in_run(is_digit.flip(-1)).flip(-1))


def _place_in_order(tokens: Tensor, is_digit: Tensor, in_answer: Tensor, config: HeadcountConfig) -> Tensor:
    """2 v + 1 for a value v of the question; in the answer 2 v while some of its kind are left, and then 2 v + 2."""
    assert config.digit_token_ids is not None  # the config insists on it
    same = tokens[:, :, None] == tokens[:, None, :]
    there = (same & ~in_answer[:, None, :]).sum(-1)
    written = (same & in_answer[:, None, :]).tril().sum(-1)
    step = torch.where(in_answer, 2 * (written >= there), 1)
    return 2 * (tokens - config.digit_token_ids[0]) + step


# `answer_order` -> places of digits, by which those of the question and of the answer that belong together are found.
COUPLED_PLACES: dict[str, Callable[[Tensor, Tensor, Tensor, HeadcountConfig], Tensor]] = {
    "plain": _place_after_carry,
    "reversed": _place_from_right,
    "aligned": _place_from_left,
    "sorted": _place_in_order,
}


def _shared(ids: Tensor) -> Tensor:
    """(1, L) if all rows have the same ids, as problems of one width do: biases are then made once, not per row."""
    if not torch.compiler.is_compiling() and bool((ids == ids[:1]).all()):
        return ids[:1]
    return ids


def _with_random_offset(ids: Tensor, config: HeadcountConfig, training: bool) -> Tensor:
    """While training, one offset per batch moves all ids but 0, so that large ids are seen on short numbers."""
    if not training or config.max_random_offset == 0:
        return ids
    offset = torch.randint(config.max_random_offset + 1, (), device=ids.device)
    return torch.where(ids == OTHER_ID, ids, ids + offset)


POSITION_SCHEMES: dict[str, Callable[..., Tensor]] = {
    "sequential": sequential,
    "randomized": randomized,
    "coupled": coupled,
    "abacus": abacus,
    "nested": nested,
}

# Schemes that read the tokens themselves, with the id of the first digit of a number; `generate()` asks them again at
# every step, and refuses ids from outside.
TOKEN_SCHEMES = {"coupled": FIRST_DIGIT_ID, "abacus": OTHER_ID + 1, "nested": OTHER_ID + 1}


def positions_needed(config: HeadcountConfig, tokens: int, longest_number: int) -> int:
    """How many ids, from 0 on, a sequence of so many tokens asks for.

    >>> positions_needed(HeadcountConfig(), tokens=12, longest_number=4)
    12
    """
    first_digit = TOKEN_SCHEMES.get(config.position_scheme)
    return tokens if first_digit is None else first_digit + longest_number


def no_room(config: HeadcountConfig, tokens: int, longest_number: int) -> str | None:
    """Why a model cannot read a sequence at all: a table of positions, or a range of random ones, has an end.

    Args:
        config: of the model.
        tokens: of the longest sequence that one of its stacks reads.
        longest_number: digits of the longest number in it, the answer included; schemes that read the tokens count
            these. 0 where there are none.

    Returns:
        A reason, "the model has 64 positions", or None if there is room.
    """
    is_table = config.position_embedding_type == "learned" and config.position_overflow == "error"
    ends = is_table or config.position_scheme == "randomized"
    if ends and positions_needed(config, tokens, longest_number) > config.max_position_embeddings:
        return f"the model has {config.max_position_embeddings:,} positions"
    return None
