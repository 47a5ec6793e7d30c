"""Sets of sites by name: patterns, lists, complements, and the sets that every model has."""

import pytest
from small_models import make_model
from stock_models import make_stock

import headcount
from headcount.analysis.interventions.sets import (
    complement,
    find_frozen,
    find_set,
    find_sets,
    standard_sets,
    with_complements,
)


@pytest.fixture(scope="module")
def model():
    return make_model()


def test_a_set_is_named_by_patterns_lists_and_what_it_leaves(model):
    cross = find_set(model, "decoder.*.cross.*")
    assert cross.name == "decoder.*.cross.*" and len(cross.sites) == 8
    assert find_set(model, ["encoder.0.self.1", "decoder.0.mlp"]).sites == (
        "encoder.0.self.1",
        "decoder.0.mlp",
    )
    both = find_set(model, "encoder.0.mlp + decoder.*.mlp@digit(1)")
    assert both.sites == ("encoder.0.mlp", "decoder.0.mlp@digit(1)", "decoder.1.mlp@digit(1)")
    left = find_set(model, "all but decoder.*.cross.*")
    assert len(left.sites) == 16 and not set(left.sites) & set(cross.sites)
    assert all(site.head is not None for site in left.sites), "heads stand beside heads"
    assert find_set(model, "all but encoder.*.mlp").sites == ("decoder.0.mlp", "decoder.1.mlp")
    with_both = find_set(model, "all but decoder.*").sites
    assert {site.stack for site in with_both} == {"encoder"} and {site.kind for site in with_both} == {"self", "mlp"}


def test_a_set_that_does_not_exist_is_one_sentence(model):
    with pytest.raises(ValueError, match=r"no site of this .* is named 'decoder\.7\.\*'"):
        find_set(model, "decoder.7.*")
    with pytest.raises(ValueError, match="leaves nothing"):
        find_set(model, "all but *.self.* + *.cross.*")
    with pytest.raises(ValueError, match="a set has no sites"):
        find_set(model, [])
    with pytest.raises(ValueError, match="there are no sites"):
        find_sets(model, [])
    with pytest.raises(TypeError, match="sets is the string"):
        find_sets(model, "decoder.*")
    with pytest.raises(TypeError, match="sets is 5; expected a list"):
        find_sets(model, 5)
    for strange in (3, None, b"decoder.0.mlp"):
        with pytest.raises(TypeError, match=r"a set is .*; expected a name such as 'decoder.0.mlp'"):
            find_sets(model, [strange])
    with pytest.raises(ValueError, match=r"the set 'decoder.0.mlp' is named twice; expected every set once"):
        find_sets(model, ["decoder.0.mlp", "*.mlp", "decoder.0.mlp"])
    for alone in ("encoder.0.residual", "decoder.0.cross.0@position(1)"):
        with pytest.raises(
            ValueError, match=r"has no meaning, because .* names residual states alone, or some tokens"
        ):
            find_set(model, f"all but {alone}")


def test_complements_that_do_not_exist_are_refused_and_not_left_out(model):
    for alone in ("encoder.0.residual", "decoder.*.cross.*@position(1)", "*.mlp"):
        with pytest.raises(
            ValueError, match=r"complements have no effect: .* expected heads or feed-forward sublayers"
        ):
            find_sets(model, [alone], complements=True)
    found = find_sets(model, ["encoder.*.mlp", "encoder.0.residual"], complements=True)
    assert [each.name for each in found] == ["encoder.*.mlp", "all but encoder.*.mlp", "encoder.0.residual"]


def test_frozen_sites_are_named_like_sets_and_may_overlap(model):
    assert find_frozen(model, []) == ()
    assert find_frozen(model, ["*.mlp", "decoder.0.mlp"]) == find_set(model, "*.mlp").sites
    with pytest.raises(TypeError, match=r"is the string 'decoder.0.mlp', expected a list"):
        find_frozen(model, "decoder.0.mlp")


def test_every_standard_set_has_a_name_that_finds_it_and_something_beside_it(model):
    sets = standard_sets(model)
    names = [each.name for each in sets]
    assert {"encoder.0.self.*", "decoder.*.cross.*", "*.1.self.* + *.1.cross.*", "*.mlp"} <= set(names)
    for each in sets:
        assert find_set(model, each.name) == each and len(each.sites) > 1
        beside = complement(model, each)
        if beside is not None:
            assert find_set(model, beside.name) == beside and not set(each.sites) & set(beside.sites)
    assert complement(model, find_set(model, "encoder.0.residual")) is None
    assert complement(model, find_set(model, "*.mlp")) is None
    every = with_complements(model, sets)
    assert len({each.name for each in every}) == len(every) and set(sets) <= set(every)


def test_sets_of_stock_models_are_found_too():
    for kind, pattern in (("GPT-2", "decoder.0.self.*"), ("T5", "decoder.*.cross.*")):
        model = make_stock(kind)
        assert find_set(model, pattern).sites == tuple(
            head for head in headcount.list_heads(model) if head in find_set(model, pattern).sites
        )
        assert standard_sets(model)
