"""Names of cells, and the models that they stand for."""

import pytest

from headcount.analysis.lengths.cells import (
    AS_IT_STANDS,
    DEFAULT_ENCODINGS,
    encoding_settings,
    make_cells,
    parse_encoding,
)
from headcount.data_builders.registry import TASKS
from headcount.trainers.model_building import make_config
from headcount.trainers.recipe import load_recipe, load_variants


ADDITION, SORTEDNESS, REVERSE = (TASKS[name] for name in ("addition", "sortedness", "reverse"))


def test_every_default_encoding_is_a_model_of_its_own():
    configs = {}
    recipe = load_recipe(SORTEDNESS.length_study.recipe)
    wanted = [*DEFAULT_ENCODINGS, *SORTEDNESS.length_study.quick_variants]
    for cell in make_cells(SORTEDNESS, encodings=wanted, poolings=["max"], seeds=[0]):
        config = make_config(cell.load_recipe())
        configs[cell.variant] = config
        assert config.pooling_type == "max"
        for name, value in encoding_settings(cell.variant, recipe).items():
            assert getattr(config, name) == value
            assert f"{name}={value}" in cell.says
    assert set(configs) == set(DEFAULT_ENCODINGS)
    assert configs["learned"].max_position_embeddings == 16 and configs["learned"].position_overflow == "clamp"
    assert configs["rotary+window"].attention_window == 4
    assert configs["none+causal+log_n"].attention_normalizer == "log_n"


def test_default_grid_has_every_variant_pooling_and_seed_once():
    names = [cell.name for cell in make_cells(SORTEDNESS)]
    assert len(names) == len(set(names)) == 12 * 3 * 3
    assert names[0] == "sinusoidal-max-0" and names[-1].endswith("-2")
    quick = make_cells(SORTEDNESS, quick=True)
    assert [cell.variant for cell in quick] == list(SORTEDNESS.length_study.quick_variants)
    assert all(cell.load_recipe().training.steps == 800 and cell.pooling == "max" for cell in quick)


def test_names_are_put_in_order():
    assert parse_encoding("none+log_n+causal") == "none+causal+log_n"
    with pytest.raises(ValueError, match=r"'rotery' is not known; .*Did you mean 'rotary'"):
        parse_encoding("rotery+causal")
    with pytest.raises(ValueError, match=r"unknown part 'casual'; .*Did you mean 'causal'"):
        parse_encoding("none+casual")


def test_schemes_and_normalizers_multiply():
    asked = {"encodings": ["sinusoidal"], "poolings": ["max"], "seeds": [0]}
    grid = make_cells(SORTEDNESS, **asked, schemes=["sequential", "randomized"], normalizers=["softmax", "log_n"])
    assert [cell.variant for cell in grid] == [
        "sinusoidal",
        "sinusoidal+log_n",
        "sinusoidal+randomized",
        "sinusoidal+randomized+log_n",
    ]
    with pytest.raises(ValueError, match="scheme 'coupled' does not apply to the grid of sortedness"):
        make_cells(SORTEDNESS, **asked, schemes=["coupled"])
    with pytest.raises(ValueError, match=r"pooling 'maks' is not known; .*Did you mean 'max'"):
        make_cells(SORTEDNESS, **{**asked, "poolings": ["maks"]})


def test_recipes_are_cells_too():
    cells = make_cells(SORTEDNESS, recipes=["sortedness"], seeds=[3, 4])
    assert [cell.name for cell in cells] == ["sortedness-3", "sortedness-4"]
    assert {cell.says for cell in cells} == {AS_IT_STANDS}


def test_a_recipe_of_ones_own_goes_by_its_name():
    (cell,) = make_cells(SORTEDNESS, recipes=["some/where/mine.yaml"], seeds=[0])
    assert cell.name == "mine-0" and cell.recipe == "some/where/mine.yaml"
    with pytest.raises(ValueError, match="--recipes names 'mine' twice"):
        make_cells(SORTEDNESS, recipes=["here/mine.yaml", "there/mine.yaml"])


def test_every_named_variant_can_be_trained_and_differs_from_the_recipe():
    variants = load_variants(ADDITION.length_study.recipe)
    cells = make_cells(ADDITION, seeds=[0])
    assert [cell.variant for cell in cells] == list(variants)
    assert [cell.says for cell in cells] == [variant.says for variant in variants.values()]
    seen = {}
    for cell in cells:
        recipe = cell.load_recipe()
        what = (make_config(recipe).to_json_string(), str(recipe.data), recipe.training, recipe.stream)
        assert what not in seen.values(), cell.variant
        seen[cell.variant] = what
    assert len({cell.name for cell in make_cells(ADDITION)}) == 3 * len(variants)
    with pytest.raises(ValueError, match=r"variant 'hole' is not known; .*Did you mean 'whole'"):
        make_cells(ADDITION, variants=["hole"])


@pytest.mark.parametrize("variant", ["table", "fire"])
def test_offsets_show_the_ids_of_the_longest_test(variant):
    (cell,) = make_cells(ADDITION, variants=[variant], seeds=[0])
    assert make_config(cell.load_recipe()).max_random_offset >= max(ADDITION.length_study.lengths)


@pytest.mark.parametrize("task", [ADDITION, REVERSE])
def test_any_recipe_has_a_grid_of_encodings_without_what_belongs_to_its_own(task):
    """`reverse` has a table of positions, `addition-long` a bias: neither has an effect under rotary."""
    own, rotary, learned = (
        make_config(cell.load_recipe())
        for cell in (
            *make_cells(task, recipes=[task.length_study.recipe], seeds=[0]),
            *make_cells(task, encodings=["rotary", "learned"], seeds=[0]),
        )
    )
    assert rotary.position_embedding_type == "rotary" and rotary.position_scheme == own.position_scheme
    longest = task.trained_lengths(load_recipe(task.length_study.recipe).options)[1]
    assert learned.max_position_embeddings == task.tokens_at(longest, own.architecture)
    assert learned.position_overflow == "clamp"


@pytest.mark.parametrize(
    "task, asked, sentence",
    [
        (SORTEDNESS, {"variants": ["whole"]}, "--variants has no effect with --task sortedness, whose recipe"),
        (ADDITION, {"poolings": ["max"]}, "--poolings has no effect with --task addition, whose models do not pool"),
        (ADDITION, {"variants": ["whole"], "encodings": ["rotary"]}, "--encodings has no effect with --variants"),
        (ADDITION, {"variants": ["whole"], "schemes": ["randomized"]}, "--schemes has no effect with --variants"),
        (SORTEDNESS, {"recipes": ["sortedness"], "poolings": ["max"]}, "--poolings has no effect with --recipes"),
        (SORTEDNESS, {"recipes": ["sortedness"], "quick": True}, "--quick has no effect with --recipes"),
    ],
)
def test_an_option_without_effect_is_an_error(task, asked, sentence):
    with pytest.raises(ValueError, match=sentence):
        make_cells(task, **asked)
