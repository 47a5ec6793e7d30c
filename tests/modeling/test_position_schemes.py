import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_models import make_model


def ids(model, tokens, **options):
    return model.make_position_ids(tokens, **options).tolist()


def test_sequential_counts_real_tokens_wherever_the_padding_is():
    model = make_model("encoder")
    mask = torch.tensor([[0, 0, 1, 1], [1, 1, 1, 0]])
    assert ids(model, torch.ones(2, 4, dtype=torch.long), attention_mask=mask) == [[0, 0, 0, 1], [0, 1, 2, 3]]


def test_sequential_ids_of_a_row_do_not_depend_on_its_neighbours():
    model, tokens = make_model("encoder"), torch.ones(2, 6, dtype=torch.long)
    hole = [1, 1, 0, 0, 1, 1]
    for neighbour in ([1] * 6, [0, 1, 1, 1, 1, 1]):
        assert ids(model, tokens, attention_mask=torch.tensor([hole, neighbour]))[0] == [0, 1, 2, 3, 2, 3]
    assert ids(model, tokens[:1], attention_mask=torch.tensor([hole])) == [[0, 1, 2, 3, 2, 3]]


def test_coupled_gives_digits_of_equal_significance_the_same_id(addition_tokens):
    options = {"position_scheme": "coupled", "position_embedding_type": "rotary"}
    model = make_model("decoder", **options)
    assert ids(model, addition_tokens("^374+814=8811$")) == [[0, 4, 3, 2, 1, 4, 3, 2, 1, 2, 3, 4, 5, 0]]
    assert ids(model, addition_tokens("__^74+814=88")) == [[0, 0, 0, 3, 2, 1, 4, 3, 2, 1, 2, 3]]
    model = make_model("decoder", **options, answer_order="plain")
    assert ids(model, addition_tokens("^374+814=1188$")) == [[0, 3, 4, 5, 1, 3, 4, 5, 1, 2, 3, 4, 5, 0]]
    model = make_model("encoder-decoder", **options)
    assert ids(model, addition_tokens("374+814$")) == [[4, 3, 2, 1, 4, 3, 2, 0]]
    assert ids(model, addition_tokens("^8811"), stack="decoder") == [[1, 2, 3, 4, 5]]


def test_coupled_follows_the_order_of_the_answer(addition_tokens):
    """From the left in both (copying), or by values and what is left of them (sorting); also behind padding."""
    options = {"position_scheme": "coupled", "position_embedding_type": "rotary"}
    model = make_model("decoder", **options, answer_order="aligned")
    assert ids(model, addition_tokens("__^7337=7337$")) == [[0, 0, 0, 2, 3, 4, 5, 1, 2, 3, 4, 5, 0]]
    model = make_model("decoder", **options, answer_order="sorted")
    assert ids(model, addition_tokens("__^2112=1122$")) == [[0, 0, 0, 7, 5, 5, 7, 1, 4, 6, 6, 8, 0]]
    with pytest.raises(
        ValueError, match="answer_order='sorted' is not allowed with position_scheme='coupled' and arch"
    ):
        make_model("encoder-decoder", **options, answer_order="sorted")


@given(digits=st.lists(st.integers(0, 9), min_size=1, max_size=40))
def test_the_next_larger_id_is_that_of_the_next_value_for_every_sequence(digits):
    options = {"position_scheme": "coupled", "position_embedding_type": "rotary", "answer_order": "sorted"}
    model, answer = make_model("decoder", **options), sorted(digits)
    tokens = torch.tensor([[1, *(3 + digit for digit in digits), 14, *(3 + digit for digit in answer)]])
    found = ids(model, tokens)[0]
    there, written = found[1 : len(digits) + 1], found[len(digits) + 1 :]
    for place, digit in enumerate(answer):
        assert digits[there.index(min(one for one in there if one > written[place]))] == digit
    assert max(there) < written[-1]


@given(a=st.integers(0, 10**12), b=st.integers(0, 10**12))
def test_coupled_ids_follow_significance_for_all_numbers(a, b):
    model = make_model("decoder", position_scheme="coupled", position_embedding_type="rotary")
    digit = {str(value): 3 + value for value in range(10)} | {"+": 13, "=": 14}
    answer = str(a + b)[::-1]
    tokens = torch.tensor([[digit[character] for character in f"{a}+{b}={answer}"]])
    down = lambda text: list(range(len(text) + 1, 1, -1))  # noqa: E731
    up = list(range(2, len(answer) + 2))
    assert ids(model, tokens) == [[*down(str(a)), 1, *down(str(b)), 1, *up]]


@pytest.mark.parametrize("scheme", ["coupled", "abacus"])
def test_rows_of_one_shape_share_their_ids_and_give_the_same_logits(scheme, addition_tokens):
    model = make_model("decoder", position_scheme=scheme, position_embedding_type="relative_bias")
    same = torch.cat([addition_tokens("^374+814=8811$"), addition_tokens("^999+001=0001$")])
    assert model.make_position_ids(same).shape == (1, 14)
    other = torch.cat([same, addition_tokens("^37+4814=1584$")])
    assert model.make_position_ids(other).shape[0] == 3
    assert torch.allclose(model(same).logits, model(other).logits[:2], atol=1e-5)


def test_abacus_counts_within_every_number(addition_tokens):
    model = make_model("decoder", position_scheme="abacus", position_embedding_type="rotary")
    assert ids(model, addition_tokens("^374+814=8811$")) == [[0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 4, 0]]


@pytest.mark.parametrize("scheme", ["coupled", "abacus"])
def test_random_offset_moves_all_ids_but_zero_together_in_training(scheme, addition_tokens):
    options = {"position_scheme": scheme, "position_embedding_type": "rotary", "max_random_offset": 50}
    model, tokens = make_model("decoder", **options), addition_tokens("^374+814=8811$")
    base = model.make_position_ids(tokens)
    model.train()
    moved = [model.make_position_ids(tokens) - base for _ in range(50)]
    assert all((shift[base == 0] == 0).all() for shift in moved)
    offsets = {int(shift[base > 0].unique().item()) for shift in moved}
    assert len(offsets) > 10 and min(offsets) >= 0 and max(offsets) <= 50


def test_randomized_draws_ordered_subsets_in_training_and_spreads_evenly_after():
    model = make_model("encoder", position_scheme="randomized", max_position_embeddings=40)
    tokens = torch.ones(2, 10, dtype=torch.long)
    assert ids(model, tokens) == [[2, 6, 10, 14, 18, 22, 26, 30, 34, 38]]
    mask = torch.tensor([[1] * 10, [0] * 6 + [1] * 4])
    assert ids(model, tokens, attention_mask=mask)[1][6:] == [5, 15, 25, 35]
    mask = torch.tensor([[1] * 10, [1] * 4 + [0] * 6])
    assert ids(model, tokens, attention_mask=mask)[1][:4] == [5, 15, 25, 35]
    assert torch.isfinite(model(tokens, attention_mask=mask).logits).all()
    model.train()
    drawn = model.make_position_ids(tokens)
    assert (drawn.diff(dim=-1) > 0).all() and drawn.min() >= 0 and drawn.max() < 40
    assert not torch.equal(drawn[0], drawn[1])
    with pytest.raises(ValueError, match="41 tokens does not fit"):
        model(torch.ones(1, 41, dtype=torch.long))


@pytest.mark.parametrize("scheme", ["coupled", "abacus"])
def test_a_scheme_that_needs_tokens_says_so_when_there_are_none(scheme):
    model = make_model("decoder", position_scheme=scheme, position_embedding_type="rotary")
    with pytest.raises(ValueError, match=f"position_scheme='{scheme}' makes ids from the tokens"):
        model(inputs_embeds=torch.randn(1, 4, 32))
    first = model(torch.tensor([[1, 5, 13]]), use_cache=True)
    with pytest.raises(ValueError, match="makes ids from the tokens"):
        model(torch.tensor([[5]]), past_key_values=first.past_key_values)


@given(st.lists(st.sampled_from([15, 16, 17, 18, 3]), min_size=1, max_size=40))
def test_nested_ids_of_a_bracket_and_the_one_that_closes_it_differ_by_one(tokens):
    brackets_of = {"position_scheme": "nested", "bracket_token_ids": [15, 16, 17, 18]}
    model = make_model("encoder", position_embedding_type="relative_bias", **brackets_of)
    found, stack, partner = ids(model, torch.tensor([tokens]))[0], [], {}
    for place, token in enumerate(tokens):
        if token in (15, 16):
            stack.append(place)
        elif token != 3 and stack:
            partner[stack.pop()] = place
    brackets = [place for place, token in enumerate(tokens) if token != 3]
    assert all(found[place] == 0 for place, token in enumerate(tokens) if token == 3)
    assert len({found[place] for place in brackets}) == len(brackets)
    for place in brackets:
        following = [other for other in brackets if found[other] == found[place] + 1]
        if tokens[place] in (15, 16):
            assert following == ([partner[place]] if place in partner else [])
