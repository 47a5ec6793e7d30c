"""Names of cells, and what the summary makes of rows."""

import pytest

from headcount.analysis.length_grid import (
    DEFAULT_VARIANTS,
    QUICK_VARIANTS,
    make_grid,
    parse_variant,
    recipe_cells,
    variant_settings,
)
from headcount.analysis.length_summary import summarize
from headcount.analysis.statistics import rate
from headcount.trainers.model_building import make_config
from headcount.trainers.recipe import load_recipe


def test_every_default_variant_is_a_model_of_its_own():
    configs = {}
    for cell in make_grid([*DEFAULT_VARIANTS, *QUICK_VARIANTS], ["max"], [0]):
        config = make_config(load_recipe(cell.recipe, list(cell.settings)))
        configs[cell.variant] = config
        assert config.pooling_type == "max"
        for name, value in variant_settings(cell.variant).items():
            assert getattr(config, name) == value
    assert set(configs) == set(DEFAULT_VARIANTS)
    assert configs["learned"].max_position_embeddings == 16 and configs["learned"].position_overflow == "clamp"
    assert configs["rotary+window"].attention_window == 4
    assert configs["none+causal+log_n"].attention_normalizer == "log_n"


def test_default_grid_has_every_variant_pooling_and_seed_once():
    names = [cell.name for cell in make_grid()]
    assert len(names) == len(set(names)) == 12 * 3 * 3
    assert names[0] == "sinusoidal-max-0" and names[-1].endswith("-2")


def test_names_are_put_in_order():
    assert parse_variant("none+log_n+causal") == "none+causal+log_n"
    with pytest.raises(ValueError, match=r"'rotery' is not known; .*Did you mean 'rotary'"):
        parse_variant("rotery+causal")
    with pytest.raises(ValueError, match=r"unknown part 'casual'; .*Did you mean 'causal'"):
        parse_variant("none+casual")


def test_schemes_and_normalizers_multiply():
    grid = make_grid(
        ["sinusoidal"], ["max"], [0], schemes=["sequential", "randomized"], normalizers=["softmax", "log_n"]
    )
    assert [cell.variant for cell in grid] == [
        "sinusoidal",
        "sinusoidal+log_n",
        "sinusoidal+randomized",
        "sinusoidal+randomized+log_n",
    ]
    with pytest.raises(ValueError, match="scheme 'coupled' does not apply to sortedness"):
        make_grid(["sinusoidal"], ["max"], [0], schemes=["coupled"])
    with pytest.raises(ValueError, match=r"pooling 'maks' is not known; .*Did you mean 'max'"):
        make_grid(["sinusoidal"], ["maks"], [0])


def test_recipes_are_cells_too():
    assert [cell.name for cell in recipe_cells(["sortedness"], [3, 4])] == ["sortedness-3", "sortedness-4"]


def length_row(seed, length, right, n=200, one_class=False):
    base = {"variant": "x", "pooling": "max", "kind": "swap", "seed": seed, "length": length}
    base |= {"trained": [8, 16], "built_in": []}
    if right is None:
        return {**base, "value": None, "n": 0, "interval": None, "not_measured": "at chance at length 256"}
    return {**base, **rate(right, n), "one_class_only": one_class}


def test_summary_says_how_far_each_seed_holds():
    rows = [length_row(0, length, 200) for length in (8, 16, 32, 64)]
    rows += [length_row(1, 8, 200), length_row(1, 16, 199), length_row(1, 32, 190), length_row(1, 64, 200)]
    (summary,) = summarize(rows)
    assert summary["holds_to"] == {"0": 64, "1": 16}  # a gap at 32 counts
    assert summary["learned"] == 2 and summary["flags"] == []
    assert summary["accuracy"]["32"]["value"] == 390 / 400 and summary["accuracy"]["32"]["n"] == 400
    assert summary["accuracy"]["32"]["by_seed"] == {"0": 1.0, "1": 0.95}
    assert summary["in_distribution"]["n"] == 800


def test_summary_flags_the_two_classic_failures():
    rows = [length_row(0, 8, 110), length_row(0, 16, 100), length_row(0, 32, 100, one_class=True)]
    rows.append(length_row(0, 512, None))
    (summary,) = summarize(rows)
    assert summary["flags"] == ["never learned in distribution", "predicts one class only"]
    assert summary["holds_to"] == {"0": 0} and summary["one_class_from"] == {"0": 32}
    assert "512" not in summary["accuracy"]
