"""`headcount patch MODEL --pairs FILE.jsonl` on models of transformers: table, rows, a sentence for bad lines."""

import json

import pytest
import torch
from command_line import run
from stock_models import make_stock, save_with_words

import headcount
from headcount.records.rows import only, read_rows, select, values_of


GOOD = [
    {"base": f"w{i} w3 w5", "source": f"w{i + 9} w3 w5", "base_answer": f"w{i + 1}", "source_answer": f"w{i + 2}"}
    for i in range(6)
]
GOOD += [{"base": "w1 w2 w3 w4", "source": "w1 w9 w3 w4", "base_answer": "w7", "source_answer": "w8 w9"}]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {name: save_with_words(make_stock(name), folder / name) for name in ("GPT-2", "T5", "BERT")}


def written(path, lines):
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


@pytest.mark.parametrize("name", ["GPT-2", "T5"])
def test_rows_are_those_of_interchange_and_the_table_has_every_site(name, folders, tmp_path):
    pairs = written(tmp_path / "pairs.jsonl", GOOD)
    answer = run("patch", folders[name], "--pairs", pairs, "--output", tmp_path / "out")
    rows = read_rows(tmp_path / "out" / "results" / "interchange.json")
    model = make_stock(name)
    every = values_of(rows, "site")
    assert every[0] == "none" and set(headcount.sites(model)) < set(every) and "decoder.*.mlp" in every
    assert {row["n"] for row in rows} == {7} and "1 of 7 pairs an answer has several tokens" in answer.stderr
    assert all(f"  {site} " in answer.stdout for site in every) and "n = 7" in answer.stdout
    last = [site for site in headcount.sites(model) if site.stack == "decoder"][-1]
    assert only(rows, site=last, metric="recovered")["value"] == pytest.approx(1, abs=1e-3)
    word = {f"w{i}": 4 + i for i in range(36)}
    margins = []
    with torch.no_grad():
        for pair in GOOD:
            inputs = {"input_ids": torch.tensor([[word[each] for each in pair["base"].split()]])}
            if name == "T5":
                inputs["decoder_input_ids"] = torch.zeros(1, 1, dtype=torch.long)
            logits = model(**inputs).logits[0, -1]
            margins.append(float(logits[word[pair["base_answer"]]] - logits[word[pair["source_answer"].split()[0]]]))
    assert only(rows, site="none", metric="logit_difference")["value"] == pytest.approx(sum(margins) / 7, abs=1e-4)


def test_positions_complements_frozen_sites_and_json(folders, tmp_path):
    pairs = written(tmp_path / "pairs.jsonl", GOOD)
    words = ("--sites", "decoder.*.residual@position(0)", "--sites", "decoder.0.self.*", "--complements")
    rows = json.loads(run("patch", folders["GPT-2"], "--pairs", pairs, *words, "--json", "--rows", 10).stdout)
    assert values_of(rows, "site") == [
        *("none", "decoder.*.residual@position(0)", "decoder.0.self.*", "all but decoder.0.self.*"),
    ]
    frozen = ("--sites", "decoder.0.self.1", "--freeze", "decoder.1.mlp", "--json")
    (found,) = select(json.loads(run("patch", folders["GPT-2"], "--pairs", pairs, *frozen).stdout), size=1)[:1]
    assert found["site"] == "decoder.0.self.1, frozen: decoder.1.mlp"


BAD = {
    "not JSON": (["{"], "line 2 is not JSON; expected an object with base, source, base_answer, source_answer"),
    "deep": (["[" * 100_000], "line 2 is not JSON"),
    "no object": (["[1]"], "line 2 is no object"),
    "a field is missing": ([{**GOOD[0], "source": None}], "line 2 has no text 'source'"),
    "a number": ([{**GOOD[0], "base": 3}], "line 2 has no text 'base'"),
    "lengths": ([{**GOOD[0], "base": "w1 w2"}], "line 2 has a base of 2 tokens and a source of 3; expected as many"),
    "same answers": ([{**GOOD[0], "source_answer": "w1"}], "line 2 has answers that begin with the same token"),
    "no tokens": ([{**GOOD[0], "base_answer": " "}], "line 2 has the text ' ', which has no tokens"),
    "too long": ([{**GOOD[0], "base": "w1 " * 41, "source": "w2 " * 41}], "line 2 has 41 tokens; expected at most 40"),
    "NUL": (["\0"], "holds a NUL character"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_line_is_one_sentence_that_names_it(case, folders, tmp_path):
    lines, said = BAD[case]
    pairs = written(tmp_path / "pairs.jsonl", [GOOD[0], *lines])
    assert said in run("patch", folders["GPT-2"], "--pairs", pairs, code=2).stderr


def test_what_cannot_be_patched_is_one_sentence(folders, tmp_path):
    pairs = written(tmp_path / "pairs.jsonl", GOOD)
    gpt2 = folders["GPT-2"]
    for words, said in (
        ((gpt2, "--pairs", tmp_path / "none.jsonl"), "none.jsonl is not there; expected a file with lines such as"),
        ((gpt2, "--pairs", written(tmp_path / "empty.jsonl", [""])), "has no lines; expected at least one pair"),
        ((folders["BERT"], "--pairs", pairs), "is a BertForMaskedLM, which continues no text"),
        ((tmp_path, "--pairs", pairs), "cannot be loaded"),
        ((gpt2, "--pairs", pairs, "--pairs", "minimal"), "--pairs is given 2 times; expected one file"),
        ((gpt2, "--pairs", pairs, "--variable", "carry"), "--variable has no effect on pairs from a file"),
        ((gpt2, "--pairs", pairs, "--sites", "decoder.9.mlp"), "no site of this GPT2LMHeadModel is named"),
        ((gpt2, "--pairs", pairs, "--sites", "decoder.0.mlp@column"), "a site names a role, but roles were not given"),
        (
            (gpt2, "--pairs", pairs, "--sites", "decoder.0.mlp@position(3)"),
            "a row has 3 tokens and none at position 3",
        ),
    ):
        assert said in run("patch", *words, code=2).stderr, words
