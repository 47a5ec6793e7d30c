"""`headcount patch`: any sites on any pairs, as a table, as rows, and one sentence for what cannot be."""

import json

import pytest
from command_line import run

from headcount.analysis.circuits.constructions.catalogue import save
from headcount.records.rows import only, read_rows, select, values_of


TINY = ("training.steps=2", "data.test=60", "data.pairs=30", "model.num_attention_heads=2", "model.hidden_size=16")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    run("train", "addition-tiny", "--output", folder, *(word for value in TINY for word in ("--set", value)))
    return folder


def test_sets_complements_and_frozen_sites_on_some_pairs(trained, tmp_path):
    sites = ("--sites", "decoder.*.cross.*", "--sites", "encoder.0.mlp + decoder.0.mlp", "--complements")
    found = json.loads(run("patch", trained, *sites, "--pairs", "minimal", "--pairs", "control", "--json").stdout)
    assert values_of(found, "pairs") == ["minimal", "control"] and values_of(found, "variable") == ["carry"]
    assert values_of(found, "site")[:3] == ["none", "decoder.*.cross.*", "all but decoder.*.cross.*"]
    assert only(found, site="decoder.*.cross.*", metric="carry_recovered")["value"] == pytest.approx(1, abs=1e-3)
    frozen = ("--sites", "encoder.0.residual", "--freeze", "decoder.*.cross.*", "--pairs", "minimal", "--json")
    rows = json.loads(run("patch", trained, *frozen).stdout)
    assert only(rows, size=1, metric="carry_recovered")["value"] == pytest.approx(0, abs=1e-6), "nothing gets through"


def test_without_words_every_site_and_kind_is_swapped_and_rows_can_be_kept(trained, tmp_path):
    answer = run("patch", trained, "--rows", "10", "--output", tmp_path / "swaps")
    rows = read_rows(tmp_path / "swaps" / "results" / "interchange.json")
    assert values_of(rows, "pairs") == ["minimal", "control", "random", "ripple"]
    assert {each["n"] for each in select(rows, scope={})} == {10}
    for words in ("minimal pairs: one column differs", "encoder.0.residual@left", "false flip", "  none "):
        assert words in answer.stdout
    assert "rows in" in answer.stderr


def test_variables_with_values_have_random_and_equal_pairs(trained):
    words = ("patch", trained, "--variable", "digit_sum", "--sites", "decoder.*.cross.*@column", "--rows", "20")
    rows = json.loads(run(*words, "--json").stdout)
    assert values_of(rows, "pairs") == ["random", "equal"]
    assert values_of(select(rows, pairs="equal"), "metric") == ["answer_kept"]
    assert "whole_answer_flip" in values_of(select(rows, pairs="random"), "metric")
    assert "kept: the answer stays" in run(*words).stdout


def test_a_task_of_labels_has_its_pairs_and_each_site_once(tmp_path):
    rows = json.loads(run("patch", save("sorter", tmp_path / "sorter"), "--rows", "100", "--json").stdout)
    whole = select(rows, pairs="random", metric="whole_answer_flip", scope={})
    assert len(whole) == len(values_of(whole, "site"))
    assert only(whole, site="encoder.0.residual@value")["value"] == 1  # where this model is known to hold it
    assert only(whole, site="none")["value"] < 0.6


@pytest.mark.parametrize(
    "words, said",
    [
        (("--sites", "decoder.9.*"), "no site of this HeadcountForConditionalGeneration is named 'decoder.9.*'"),
        (("--sites", "encoder.0.mlp@colour"), "there is no role 'colour'"),
        (("--pairs", "nice"), "--pairs 'nice' is not known; expected one of minimal, control, random, ripple"),
        (("--variable", "mood"), "--variable 'mood' is not known; expected one of carry"),
        (("--complements",), "--complements has no effect without --sites"),
        (("--sites", "decoder.*.cross.*@left", "--complements"), "complements have no effect"),
        (("--sites", "*.mlp", "--sites", "*.mlp"), "the set '*.mlp' is named twice"),
        (("--sites", "encoder.0.mlp + encoder.0.mlp@left"), "encoder.0.mlp@left is a part of encoder.0.mlp"),
        (("--sites", ""), "is named ''"),
        (("--sites", "decoder.*.mlp", "--freeze", "decoder.0.mlp"), "is changed and frozen"),
        (("--rows", "3"), "expected a whole number from 10"),
    ],
)
def test_what_cannot_be_swapped_is_one_sentence(words, said, trained):
    assert said in run("patch", trained, *words, code=2).stderr


def test_a_task_without_variables_says_so(tmp_path):
    settings = ("training.steps=2", "model.num_attention_heads=2", "model.hidden_size=16", "data.train=200")
    run("train", "reverse", "--output", tmp_path / "run", *(word for value in settings for word in ("--set", value)))
    assert "the task reverse names no variable" in run("patch", tmp_path / "run", code=2).stderr
