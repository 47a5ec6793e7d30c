"""A small part of the storm, with fixed seeds; and that the storm would notice."""

import random
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.numpy import save_file

from headcount.records.rows import read_rows, row, write_rows
from storm.judge import KINDS, Tried, judge, litter, torn_files
from storm.launch import TRACEBACK, Answer
from storm.mutations import mutate
from storm.page import PAGE


ROOT = Path(__file__).resolve().parents[2]
SENTENCE = "headcount: nowhere is not a folder; expected a run.\n"


@pytest.mark.slow
def test_a_small_storm_breaks_nothing(tmp_path):
    """In a process of its own, which forks: this one has threads."""
    command = [sys.executable, "tests/storm/run.py", "--few", "--workers", "1", "--output", str(tmp_path)]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    rows = read_rows(tmp_path / "results" / "storm.json")
    assert {row["section"] for row in rows} >= {"broken-files", "command-lines", "hostile-hub", "full-disk", "kills"}
    assert sum(row["value"] for row in rows) == 0


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (Answer(0, "fine", "", 1.0), None),
        (Answer(2, "", SENTENCE, 1.0), None),
        (Answer(2, "", f"ablation ...\n{SENTENCE}", 1.0), None),
        (Answer(None, "", "", 60.0), "stuck"),
        (Answer(TRACEBACK, "", "Traceback (most recent call last):\nKeyError: 'x'\n", 1.0), "traceback"),
        (Answer(1, "", "Traceback (most recent call last):\nKeyError: 'x'\n", 1.0), "traceback"),
        (Answer(-11, "", "", 1.0), "unclear"),
        (Answer(2, "", "", 1.0), "unclear"),
        (Answer(2, "", f"{SENTENCE}and more\n", 1.0), "unclear"),
        (Answer(2, "", "headcount: 'NoneType' object has no attribute 'get'\n", 1.0), "unclear"),
    ],
)
def test_what_counts_as_a_failure(answer, what):
    tried = Tried()
    assert judge(tried, answer, ["report", "nowhere"]) == (what is None)
    assert [failure.what for failure in tried.failures] == ([] if what is None else [what])


def test_files_that_are_cut_are_found_and_hidden_ones_are_litter(tmp_path):
    import numpy

    save_file({"weight": numpy.zeros(100)}, tmp_path / "model.safetensors")
    half = {"value": 0.5, "n": 2, "interval": [0.1, 0.9]}
    write_rows(tmp_path, "evaluation", [row("evaluation", "exact_match", half)])
    assert torn_files(tmp_path) == {} and litter(tmp_path) == []
    for path in (tmp_path / "model.safetensors", tmp_path / "results" / "evaluation.json"):
        path.write_bytes(path.read_bytes()[:-3])
    (tmp_path / ".out.partial-12").mkdir()
    assert set(torn_files(tmp_path)) == {"model.safetensors", "results/evaluation.json"}
    assert litter(tmp_path) == [".out.partial-12"]


@pytest.mark.parametrize("name", ["recipe.yaml", "config.json", "metrics.jsonl", "model.safetensors", "texts.csv"])
def test_a_seed_repeats_a_mutation_and_every_mutation_is_one(name):
    content = b'{"a": [1, 2, {"b": "c"}]}\n'
    for seed in range(60):
        broken = mutate(random.Random(seed), Path(name), content)
        assert broken == mutate(random.Random(seed), Path(name), content)
        assert broken != content


def test_the_page_names_every_kind_of_failure():
    page = PAGE.read_text()
    assert all(f"*{kind}*, {says}" in page for kind, says in KINDS.items())
