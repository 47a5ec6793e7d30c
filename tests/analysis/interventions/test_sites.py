"""Names of sites, and interventions on them."""

import pytest
from small_models import make_model
from stock_models import MASKED, make_stock

import headcount
from headcount.analysis.interventions.intervention import Intervention
from headcount.analysis.interventions.sites import Site, as_sites, match_sites, sites
from headcount.modeling.heads import Head


def test_a_site_knows_its_parts():
    site = Site("encoder.1.residual@first(1)")
    assert (site.stack, site.layer, site.kind, site.role, site.index) == ("encoder", 1, "residual", "first", 1)
    assert site.place == site.module == "encoder.1.residual" and site.head is None
    head = Site("decoder.0.cross.3@digit")
    assert head.head == "decoder.0.cross.3" and isinstance(head.head, Head) and head.module == "decoder.0.cross"
    assert head.role == "digit" and head.index is None and head.kind == "cross"
    assert Site("decoder.0.mlp").at("carry", 2) == "decoder.0.mlp@carry(2)"
    assert Site("decoder.0.mlp@position(-1)").index == -1
    with pytest.raises(ValueError, match=r"'decoder.0.mlp@position' does not say which position; expected"):
        Site("decoder.0.mlp@position")
    for wrong in (
        "encoder",
        "encoder.0.self",
        "encoder.0.mpl",
        "encoder.x.mlp",
        "encoder.0.mlp@",
        "encoder.0.mlp@a(b)",
    ):
        with pytest.raises(ValueError, match=f"{wrong.split('(')[0]}.* is not a site; expected a head such as"):
            Site(wrong)


def test_own_models_have_heads_mlps_and_residuals_in_the_order_of_computation():
    model = make_model(num_attention_heads=2, num_hidden_layers=1, decoder_layers=1)
    assert sites(model) == [
        *("encoder.0.self.0", "encoder.0.self.1", "encoder.0.mlp", "encoder.0.residual"),
        *("decoder.0.self.0", "decoder.0.self.1", "decoder.0.cross.0", "decoder.0.cross.1"),
        *("decoder.0.mlp", "decoder.0.residual"),
    ]
    model.prune_heads(["encoder.0.self.0", "encoder.0.self.1"])
    assert sites(model)[:2] == ["encoder.0.mlp", "encoder.0.residual"]


@pytest.mark.parametrize("name", MASKED)
def test_stock_models_have_heads_one_mlp_and_a_residual_in_every_layer(name):
    model = make_stock(name)
    found = sites(model)
    assert [site for site in found if site.head is not None] == headcount.list_heads(model)
    layers = dict.fromkeys(f"{head.stack}.{head.layer}" for head in headcount.list_heads(model))
    expected = [] if name == "ALBERT" else [f"{layer}.mlp" for layer in layers]
    assert [site for site in found if site.kind == "mlp"] == expected
    streams = [] if name == "ALBERT" else [f"{layer}.residual" for layer in layers]
    assert [site for site in found if site.kind == "residual"] == streams


def test_an_mlp_that_cannot_be_told_is_left_out():
    """Where the inner size is the hidden size, the two projections look alike."""
    assert not [site for site in sites(make_stock("BERT", intermediate_size=32)) if site.kind == "mlp"]


def test_sites_are_matched_by_patterns():
    model = make_model()
    assert match_sites(model, "decoder.*.cross.0") == ["decoder.0.cross.0", "decoder.1.cross.0"]
    assert match_sites(model, ["encoder.*.mlp@first(1)", "encoder.0.mlp"]) == [
        *("encoder.0.mlp@first(1)", "encoder.1.mlp@first(1)", "encoder.0.mlp"),
    ]
    assert match_sites(model, "*") == sites(model)
    with pytest.raises(ValueError, match=r"no site of this .* is named 'encoder.\*.slef.\*'; expected names from"):
        match_sites(model, ["encoder.*.slef.*"])


def test_heads_may_be_given_as_layer_and_number_where_that_says_enough():
    assert as_sites(make_stock("GPT-2"), [(1, 2), "decoder.0.mlp"]) == ["decoder.1.self.2", "decoder.0.mlp"]
    with pytest.raises(ValueError, match=r"\(0, 1\) does not say which head .* encoder.N.self and decoder.N.self"):
        as_sites(make_model(), [(0, 1)])
    with pytest.raises(TypeError, match="sites is the string"):
        as_sites(make_model(), "encoder.0.mlp")


def test_interventions_are_checked():
    each = Intervention(["encoder.0.mlp", "encoder.0.self.1"], {"encoder.0.mlp": 0.5, "encoder.0.self.1": 2})
    assert each.gate_of(each.sites[0]) == 0.5 and each.gate_of(each.sites[1]) == 2.0
    assert each.name == "encoder.0.mlp + encoder.0.self.1" and Intervention().name == "none"
    for options, message in (
        ({"gate": float("nan")}, "a gate is nan; expected a finite number"),
        ({"gate": {"encoder.1.mlp": 0.0}}, "gates are given for encoder.1.mlp; expected one for each site"),
        ({"replacement": "half"}, "replacement='half' is not known; expected one of zero, mean, resample, source"),
    ):
        with pytest.raises(ValueError, match=message):
            Intervention(["encoder.0.mlp"], **options)
    with pytest.raises(ValueError, match="expected each of them once"):
        Intervention(["encoder.0.mlp", "encoder.0.mlp"])
    with pytest.raises(TypeError, match="sites is the string"):
        Intervention("encoder.0.mlp")
