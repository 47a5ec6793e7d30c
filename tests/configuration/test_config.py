import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoConfig

from headcount import HeadcountConfig
from headcount.configuration import choices
from headcount.configuration.configuration_headcount import EFFECTIVE_WHEN, RULES


def valid_options(**fixed) -> dict:
    """The smallest set of options that makes a combination of names complete."""
    options = dict(fixed)
    if options.get("position_scheme") in ("coupled", "abacus"):
        options |= {"digit_token_ids": [3, 4, 5], "answer_start_token_id": 6}
    if options.get("position_scheme") == "nested":
        options["bracket_token_ids"] = [3, 4, 5, 6]
    if options.get("embedding_type") == "ordinal":
        options["ordinal_token_range"] = [3, 13]
    return options


@pytest.mark.parametrize("architecture", choices.ARCHITECTURES)
def test_round_trip_is_exact_for_every_combination(architecture, tmp_path):
    combinations = itertools.product(choices.POSITION_ENCODINGS, choices.POSITION_SCHEMES, choices.EMBEDDINGS)
    for encoding, scheme, embedding in combinations:
        if encoding == "alibi_directional" and architecture != "encoder":
            continue
        if encoding == "none" and scheme != "sequential":
            continue
        if scheme == "nested" and encoding not in ("relative_bias", "relative_key"):
            continue
        options = valid_options(
            architecture=architecture,
            position_embedding_type=encoding,
            position_scheme=scheme,
            embedding_type=embedding,
            attention_normalizer="log_n",
            score_jitter=0.5,
            attention_window=4,
        )
        if architecture == "encoder":
            options["pooling_type"] = "violation"
        layer = HeadcountConfig(**options).attention_layers()[0]
        config = HeadcountConfig(**options, pruned_heads={layer: [2, 0]})
        config.save_pretrained(tmp_path)
        loaded = AutoConfig.from_pretrained(tmp_path)
        assert type(loaded) is HeadcountConfig
        assert loaded.to_diff_dict() == config.to_diff_dict()
        assert loaded.pruned_heads == {layer: [0, 2]}


@given(
    groups=st.integers(1, 4),
    group_size=st.integers(1, 3),
    head_dim=st.integers(1, 16),
    layers=st.integers(1, 6),
    dropout=st.floats(0, 0.99),
    window=st.none() | st.integers(1, 64),
    jitter=st.none() | st.floats(0.01, 1.0),
    labels=st.integers(2, 7),
)
@settings(max_examples=40, deadline=None)
def test_round_trip_through_json_keeps_every_value(
    groups, group_size, head_dim, layers, dropout, window, jitter, labels
):
    heads = groups * group_size
    config = HeadcountConfig(
        architecture="encoder",
        hidden_size=heads * head_dim,
        num_attention_heads=heads,
        num_key_value_heads=groups,
        norm_type="rms",
        feed_forward_type="gated",
        num_hidden_layers=layers,
        position_embedding_type="alibi",
        dropout=dropout,
        attention_window=window,
        score_jitter=jitter,
        num_labels=labels,
        pruned_heads={f"encoder.{layers - 1}.self": [heads - 1]},
    )
    loaded = HeadcountConfig.from_dict(json.loads(config.to_json_string()))
    assert loaded.to_diff_dict() == config.to_diff_dict()
    assert loaded.num_labels == labels
    assert (loaded.num_key_value_heads, loaded.group_size) == (groups, group_size)


@pytest.mark.parametrize("field", RULES)
def test_every_field_rejects_nonsense_by_name(field):
    with pytest.raises(ValueError, match=rf"^{field}=.*expected"):
        HeadcountConfig(**{field: object()})


@pytest.mark.parametrize(
    "options, message",
    [
        ({"position_embedding_type": "rotery"}, "Did you mean 'rotary'"),
        ({"hidden_size": 130}, "multiple of num_attention_heads=4"),
        ({"num_key_value_heads": 3}, "num_key_value_heads=3 is not allowed; expected a number that divides num_att"),
        ({"num_key_value_heads": 8}, "num_key_value_heads=8 is not allowed; expected a number that divides num_att"),
        ({"num_key_value_heads": 0}, "num_key_value_heads=0 is not allowed; expected None or a whole number from 1"),
        ({"feed_forward_type": "swiglu"}, "feed_forward_type='swiglu' is not allowed; expected one of plain, gated"),
        ({"hidden_siez": 128}, "'hidden_siez' is not a field of HeadcountConfig. Did you mean 'hidden_size'"),
        ({"max_length": 10}, "'max_length' is not a field"),
        ({"dropout": 1.0}, "dropout=1.0 is not allowed"),
        ({"num_hidden_layers": True}, "num_hidden_layers=True is not allowed"),
        ({"hidden_size": 12, "position_embedding_type": "rotary"}, "even hidden_size / num_attention_heads"),
        ({"position_embedding_type": "alibi_directional"}, "cannot serve causal attention"),
        ({"position_scheme": "coupled"}, "digit_token_ids=None"),
        ({"position_scheme": "nested", "position_embedding_type": "relative_bias"}, "bracket_token_ids=None"),
        (
            {"position_scheme": "nested", "position_embedding_type": "relative_bias", "bracket_token_ids": [3, 4, 5]},
            r"bracket_token_ids=\[3, 4, 5\] is not allowed .*expected the token ids of the opening brackets, then",
        ),
        (
            {"position_scheme": "nested", "position_embedding_type": "rotary", "bracket_token_ids": [3, 4]},
            "'nested' cannot serve position_embedding_type='rotary'.*expected an encoding that clips differences",
        ),
        (
            {"architecture": "decoder", "position_scheme": "coupled", "digit_token_ids": [3]},
            "answer_start_token_id=None",
        ),
        ({"pad_token_id": 16}, "below vocab_size=16"),
        ({"digit_token_ids": [3, 99]}, "digit_token_ids\\[1\\]=99"),
        ({"pad_token_id": None}, "pad_token_id=None"),
        ({"cross_attention_positions": True}, "has no effect"),
        ({"embedding_type": "ordinal"}, "ordinal_token_range=None"),
        ({"embedding_type": "ordinal", "ordinal_token_range": [3, 99]}, "vocab_size=16"),
        ({"pruned_heads": {"encoder.7.self": [0]}}, "not an attention layer"),
        ({"pruned_heads": {"encoder.0.self": [4]}}, "expected heads from 0 to 3"),
        ({"is_encoder_decoder": False}, "contradicts architecture"),
        ({"architecture": "encoder", "decoder_layers": 2}, "decoder_layers=2 has no effect"),
        ({"pruned_heads": {"encoder.0.self": 3}}, "expected a list of head numbers"),
        ({"pruned_heads": 3}, "expected a dict such as"),
        (
            {"digit_token_ids": [2, 3, 4]},
            "eos_token_id=2 is not allowed; expected an id that is not in digit_token_ids",
        ),
        ({"problem_type": "regression", "num_labels": 1}, "expected classification with one of at least two labels"),
        ({"problem_type": "multi_label_classification"}, "expected classification with one of"),
        (
            {"position_embedding_type": "none", "position_scheme": "randomized"},
            "position_scheme='randomized' has no effect",
        ),
    ],
)
def test_errors_name_field_value_and_what_is_allowed(options, message):
    with pytest.raises(ValueError, match=message):
        HeadcountConfig(**options)


def test_models_too_large_are_refused_by_the_number_of_their_parameters():
    sizes = {"architecture": "encoder", "num_hidden_layers": 1, "hidden_size": 16_384, "intermediate_size": 262_144}
    HeadcountConfig(**sizes)  # 2 matrices of 4.3 billion, 4 of 0.27: below 10 billion
    with pytest.raises(ValueError, match=r"makes 13,9\d\d,\d\d\d,\d\d\d parameters; expected at most 10,000,000,000"):
        HeadcountConfig(**sizes, feed_forward_type="gated")
    with pytest.raises(ValueError, match="parameters; expected at most"):
        HeadcountConfig(**sizes | {"intermediate_size": 280_000})
    HeadcountConfig(**sizes | {"intermediate_size": 280_000}, num_key_value_heads=1)  # keys and values are a quarter


def test_an_option_without_effect_is_an_error():
    odd_values = {
        "decoder_layers": 3,
        "decoder_start_token_id": 5,
        "cross_attention_positions": True,
        "attention_direction": "causal",
        "pooling_type": "max",
        "norm_position": "post",
        "layer_norm_eps": 1e-3,
        "ordinal_token_range": [3, 5],
        "max_position_embeddings": 99,
        "position_overflow": "clamp",
        "position_init_std": 0.3,
        "rope_theta": 500.0,
        "relative_position_range": 9,
        "relative_bias_first_token": True,
        "relative_attention_num_buckets": 8,
        "relative_attention_max_distance": 64,
        "position_bias_scale": 20.0,
        "fire_threshold": 8.0,
        "max_random_offset": 3,
        "tie_word_embeddings": True,
    }
    assert set(odd_values) == set(EFFECTIVE_WHEN)
    for name, value in odd_values.items():
        architecture = "encoder" if name.startswith(("decoder", "cross", "tie")) else "decoder"
        with pytest.raises(ValueError, match=f"^{name}=.*has no effect"):
            HeadcountConfig(
                architecture=architecture, position_embedding_type="none", norm_type="none", **{name: value}
            )


def test_overrides_on_loading_are_validated_too(tmp_path):
    HeadcountConfig().save_pretrained(tmp_path)
    assert AutoConfig.from_pretrained(tmp_path, position_embedding_type="rotary").position_embedding_type == "rotary"
    with pytest.raises(ValueError, match="position_embedding_type='bogus'"):
        AutoConfig.from_pretrained(tmp_path, position_embedding_type="bogus")


def test_unknown_fields_are_errors_wherever_they_come_from(tmp_path):
    HeadcountConfig().save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="'position_embeding_type' is not a field"):
        AutoConfig.from_pretrained(tmp_path, position_embeding_type="rotary")
    config = HeadcountConfig(architecture="encoder")
    config.pooling_typ = "max"
    with pytest.raises(
        ValueError, match=r"'pooling_typ' is not a field of HeadcountConfig\. Did you mean 'pooling_type'"
    ):
        config.save_pretrained(tmp_path)


def test_a_config_spoiled_later_is_caught_before_it_is_used(tmp_path):
    from headcount import HeadcountModel

    config = HeadcountConfig()
    config.norm_position = "sideways"
    with pytest.raises(ValueError, match="norm_position='sideways'"):
        config.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="norm_position='sideways'"):
        HeadcountModel(config)


def test_attention_layers_are_named_in_the_order_of_computation():
    config = HeadcountConfig(num_hidden_layers=1, decoder_layers=2)
    names = ["encoder.0.self", "decoder.0.self", "decoder.0.cross", "decoder.1.self", "decoder.1.cross"]
    assert config.attention_layers() == names
