"""How long a sequence a model can read: what `no_room` says is what the model does."""

import pytest
import torch
from small_models import make_model, tiny_config

from headcount.data_builders.addition.columns import AdditionProblems
from headcount.data_builders.addition.options import AdditionOptions
from headcount.data_builders.examples import tensors
from headcount.data_builders.registry import TASKS
from headcount.modeling.position_schemes import no_room, positions_needed


ADDITION = TASKS["addition"]
DIGITS = 3


def read(model, order: str) -> None:
    """One pass over 999 + 999 = 1998, as studies of lengths do it."""
    options = AdditionOptions(digits=DIGITS, zero_pad=True, answer_order=order)
    rows = ADDITION.encode(AdditionProblems.from_integers([999], [999]), model.config.architecture, options)
    model(**tensors(rows))


@pytest.mark.parametrize("architecture", ["decoder", "encoder-decoder"])
@pytest.mark.parametrize("scheme", ["sequential", "randomized", "coupled", "abacus"])
@pytest.mark.parametrize("order", ["plain", "reversed"])
def test_a_table_of_just_so_many_positions_is_enough_and_one_fewer_is_not(architecture, scheme, order):
    about = ADDITION.tokens_at(DIGITS, architecture), ADDITION.longest_number(DIGITS)
    options = {"position_scheme": scheme, "answer_order": order}
    needed = positions_needed(tiny_config(architecture, **options), *about)
    model = make_model(architecture, **options, max_position_embeddings=needed)
    assert no_room(model.config, *about) is None
    read(model, order)
    model = make_model(architecture, **options, max_position_embeddings=needed - 1)
    assert no_room(model.config, *about) == f"the model has {needed - 1} positions"
    with pytest.raises(ValueError, match=r"position_ids run from|does not fit into position_scheme"):
        read(model, order)


def test_ids_that_count_digits_need_as_many_as_the_sum_has_and_a_few():
    counts = {scheme: {"position_scheme": scheme} for scheme in ("sequential", "coupled", "abacus")}
    needed = {name: positions_needed(tiny_config("decoder", **own), 305, 101) for name, own in counts.items()}
    assert needed == {"sequential": 305, "coupled": 103, "abacus": 102}


@pytest.mark.parametrize("scheme", ["sequential", "randomized"])
def test_the_same_of_a_classifier(scheme):
    for positions, fits in ((12, True), (11, False)):
        model = make_model("encoder", position_scheme=scheme, max_position_embeddings=positions)
        tokens = torch.full((1, 12), 5)
        assert (no_room(model.config, 12, 0) is None) is fits
        if fits:
            model(tokens)
        else:
            with pytest.raises(ValueError, match=r"position_ids run from|does not fit into position_scheme"):
                model(tokens)


def test_what_has_no_last_position_has_room():
    for options in (
        {"position_embedding_type": "rotary"},
        {"position_embedding_type": "learned", "max_position_embeddings": 4, "position_overflow": "clamp"},
    ):
        model = make_model("encoder", **options)
        assert no_room(model.config, 1000, 0) is None
        model(torch.full((1, 50), 5))
