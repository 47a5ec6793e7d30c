"""What a reader of the benchmark table relies on: fair turns, right ratios, peers of our size on the same task."""

import importlib
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import adders
import data
import pytest
import table
import timing
import torch
from run import BENCHMARKS

from headcount.data_builders.addition.options import AdditionOptions
from headcount.data_builders.registry import TASKS
from headcount.trainers.model_building import make_model
from headcount.trainers.recipe import load_recipe


HERE = [name for name in adders.ADDERS if name not in adders.PACKAGES or timing.version(adders.PACKAGES[name])]


def test_ways_take_turns_and_the_first_round_is_not_counted():
    calls = []
    ways = {name: lambda name=name: calls.append(name) for name in "abc"}
    times = timing.take_turns(ways, seconds=0.0)
    rounds = [calls[i : i + 3] for i in range(0, len(calls), 3)]
    assert all(sorted(one) == ["a", "b", "c"] for one in rounds) and len({tuple(one) for one in rounds[1:]}) > 1
    assert all(len(values) == len(rounds) - 1 == timing.LEAST_ROUNDS for values in times.values())


def test_a_warm_up_may_be_less_work():
    calls = []
    timing.take_turns({"a": lambda: calls.append("whole")}, 0.0, warm_up={"a": lambda: calls.append("less")})
    assert calls == ["less"] + timing.LEAST_ROUNDS * ["whole"]


def test_ratios_are_taken_within_a_round_and_seconds_are_per_piece_of_work():
    times = {"ours": [1.0, 2.0, 4.0], "peer": [3.0, 4.0, 2.0]}
    ours, peer = timing.compare("work", times, "ours", per=2)
    assert ours["ratio"] == 1.0 and ours["seconds"] == 1.0
    assert peer["ratio"] == 2.0 and peer["ratio_range"] == [0.5, 3.0] and peer["raw"] == [1.5, 2.0, 1.0]


@pytest.mark.parametrize("name", HERE)
def test_peers_have_our_size_and_see_no_answer_in_advance(name):
    ours = make_model(load_recipe("addition")).num_parameters()
    torch.manual_seed(0)
    peer = adders.ADDERS[name]().eval()
    size = sum(parameter.numel() for parameter in peer.parameters())
    assert abs(size / ours - 1) < 0.05
    input_ids, labels = torch.randint(3, 15, (4, 8)), torch.randint(3, 15, (4, 5))
    with torch.no_grad():
        _, logits = peer(input_ids, labels)
        changed = torch.cat((labels[:, :3], labels[:, 3:].flip(1) % 12 + 3), dim=1)
        _, others = peer(input_ids, changed)
    torch.testing.assert_close(logits[:, :4], others[:, :4])
    assert logits.shape[:2] == labels.shape


@pytest.mark.parametrize("name", HERE)
def test_a_raw_step_teaches_the_peer(name):
    torch.manual_seed(0)
    peer = adders.ADDERS[name]().train()
    optimizer = adders.make_optimizer(peer)
    batch = {"input_ids": torch.randint(3, 15, (8, 8)), "labels": torch.randint(3, 15, (8, 5))}
    losses = [float(adders.step(peer, optimizer, batch).detach()) for _ in range(20)]
    assert losses[-1] < 0.7 * losses[0]


def test_the_plain_python_rows_are_those_of_headcount():
    empty = dict.fromkeys(("train", "validation", "test", "hard", "pairs"), 0)
    corpus = TASKS["addition"].splits(AdditionOptions(digits=2, exhaustive=True, **empty))
    ours = [row for part in corpus.tables("exhaustive", "exhaustive") for row in part.to_pylist()]
    assert ours == [data.same_columns(a, b, 2) for a in range(100) for b in range(100)]


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_can_be_started(name):
    assert callable(importlib.import_module(name).measure)


def test_the_table_says_where_a_peer_is_faster_and_what_was_not_measured(tmp_path):
    rows = timing.compare("work", {"ours": [2.0] * 3, "slow": [4.0] * 3, "fast": [1.0] * 3}, "ours")
    rows.append(timing.absent("work", "gone", "not installed"))
    timing.write_result(tmp_path / "training.json", timing.machine("0123456789abcdef"), 1.0, rows)
    (tmp_path / "peers.json").write_text(json.dumps({"gone": {"version": None, "problem": "ERROR: no such package"}}))
    script = Path(table.__file__)
    subprocess.run(
        [sys.executable, script, "--results", tmp_path, "--output", tmp_path], check=True, capture_output=True
    )
    written = (tmp_path / "benchmarks.md").read_text()
    assert "| work | fast | 1 s | **0.50x (0.50 to 0.50)** | 3 |" in written
    assert "| work | slow | 4 s | 2.00x (2.00 to 2.00) | 3 |" in written
    assert "not measured: not installed" in written and "ERROR: no such package" in written
    assert "Not measured in this run: startup, data" in written
    assert "every way has a process of its own" in written  # what training.py says about itself
    assert (tmp_path / "figures" / "benchmarks.png").stat().st_size > 0


@pytest.mark.parametrize(
    ("ratios", "state"), [((2.1, 1.6), "reached"), ((2.1, 1.4), "partly"), ((1.2, 1.4), "missed")]
)
def test_the_lowest_ratio_decides_about_a_goal(ratios, state):
    works = ("training step, addition, batch 64", "training step, addition, batch 640")
    rows = [{"work": works[0], "way": f"raw loop, {i}", "ratio": ratio} for i, ratio in enumerate(ratios)]
    rows += [{"work": works[1], "way": "raw loop, 9", "ratio": 0.1}, timing.absent(works[0], "raw loop, x", "gone")]
    line, *others = table.goal_lines(rows)
    assert all("not measured" in other for other in others)
    assert state in line and f"{min(ratios):.2f}x to {max(ratios):.2f}x" in line


def test_a_way_apart_runs_in_a_process_of_its_own():
    apart = timing.Apart(partial, os.getpid)
    assert apart() == apart() != os.getpid()
    apart.close()
    assert apart.process.exitcode == 0
