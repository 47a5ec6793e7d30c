"""`headcount heads` and `headcount prune` as a user runs them, on a model trained for a few seconds."""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import run
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from headcount.records.rows import only, parts, read_rows, select, values_of


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    few = [
        "training.steps=250",
        "training.checkpoint_every=100",
        "data.test=60",
        "data.pairs=30",
        "model.num_attention_heads=2",
    ]
    run("train", "addition-tiny", "--output", folder, *(word for value in few for word in ("--set", value)))
    return folder


@pytest.fixture(scope="module")
def studied(trained, tmp_path_factory):
    output = tmp_path_factory.mktemp("heads") / "out"
    return output, run("heads", trained, "--output", output, "--rows", 50)


def rows_of(output, name):
    return json.loads((output / "results" / f"{name}.json").read_text())


def test_heads_leaves_rows_figures_and_a_ranking(studied):
    output, answer = studied
    names = {path.stem for path in (output / "results").iterdir()}
    assert names == {
        "ablation",
        "sets",
        "gradient",
        "specialization",
        "maps",
        "toggles",
        "interchange",
        "signature",
        "selection",
        "atlas",
        "subsets",
    }
    for name in names:
        assert read_rows(output / "results" / f"{name}.json"), name
    drops = select(rows_of(output, "ablation"), scope={}, metric="exact_match_drop")
    assert len(drops) == 3 * 6 and all(row["n"] == 50 and len(row["interval"]) == 2 for row in drops)
    lines = answer.stdout.splitlines()
    assert lines[0].split()[:2] == ["head", "drop"] and lines[7].startswith("6 heads, ") and not lines[8]
    values = [float(line.split()[1]) for line in lines[1:7]]
    assert values == sorted(values, reverse=True)
    assert lines[9].split()[:2] == ["set", "sites"] and "share still right without the whole set" in lines[-1]
    assert [line.split("  ")[0] for line in lines[10:12]] == ["encoder.0.self.*", "all but encoder.0.self.*"]
    figures = {path.name for path in (output / "figures").iterdir()}
    assert {"ablation.png", "ablation.svg", "specialization.png", "atlas.png", "subsets.svg"} <= figures
    kinds = ("encoder_self", "decoder_self", "decoder_cross")
    assert {f"maps_{which}_{kind}.png" for which in ("average", "example_0") for kind in kinds} <= figures
    assert not [name for name in figures if "partial" in name]


def test_a_second_call_computes_nothing_and_other_settings_are_refused(trained, studied):
    output, first = studied
    stamps = {path: path.stat().st_mtime_ns for path in (output / "results").iterdir()}
    again = run("heads", trained, "--output", output, "--rows", 50)
    assert again.stdout == first.stdout
    assert {path: path.stat().st_mtime_ns for path in (output / "results").iterdir()} == stamps
    refused = run("heads", trained, "--output", output, "--rows", 40, code=2)
    assert "holds results for rows=50, now asked for 40" in refused.stderr
    assert "--mode 'half' is not known" in run("heads", trained, "--output", output, "--mode", "half", code=2).stderr
    assert "holds no finished run" in run("heads", output, "--output", output, code=2).stderr


def test_heads_of_a_classifier(tmp_path):
    sizes = ("training.steps=20", "data.test=30", "data.test_lengths=[8, 16]")
    settings = [word for value in sizes for word in ("--set", value)]
    run("train", "sortedness-tiny", "--output", tmp_path / "run", *settings)
    answer = run("heads", tmp_path / "run", "--output", tmp_path / "heads", "--rows", 40, "--mode", "zero", "--json")
    found = json.loads(answer.stdout)
    assert set(found) == {"ablation", "sets", "gradient", "specialization", "toggles", "selection", "subsets"}
    assert {row["metric"] for row in found["ablation"]} == {"accuracy_drop", "loss_rise"}
    assert {row["mode"] for row in found["ablation"] + found["sets"]} == {"zero"}
    assert parts(found["ablation"], "kind") and parts(found["ablation"], "length")


def test_prune_writes_a_smaller_model_that_loads_and_generates(trained, tmp_path):
    output = tmp_path / "small"
    answer = run("prune", trained, "--output", output, "--keep", 3, "--finetune", 5, "--control", "--rows", 50)
    config = json.loads((output / "model" / "config.json").read_text())
    assert sum(map(len, config["pruned_heads"].values())) == 3
    model = AutoModelForSeq2SeqLM.from_pretrained(output / "model")
    assert len(model.list_heads()) == 3
    tokenizer = AutoTokenizer.from_pretrained(output / "model")
    written = model.generate(**tokenizer("37+85", return_tensors="pt"), max_new_tokens=5)
    assert tokenizer.decode(written[0], skip_special_tokens=True).isdigit()

    rows = rows_of(output, "pruning")
    tested = {row["model"]: row for row in select(rows, split="test")}
    assert set(tested) == {
        *("intact", "all harmless one at a time", "pruned", "control", "control, random heads"),
        *("the same heads, no training", "random heads, no training"),
    }
    assert tested["pruned"]["bytes"] == (output / "model" / "model.safetensors").stat().st_size
    assert tested["pruned"]["parameters"] == model.num_parameters() == tested["control"]["parameters"]
    assert set(values_of(select(rows, split="validation"), "fine_tuned")) == {True, False}
    assert "removed 3 of 6 heads" in answer.stdout and (output / "figures" / "pruning.png").exists()
    evaluated = json.loads(run("evaluate", output, "--json").stdout)
    whole = only(evaluated, split="test", metric="exact_match", scope={})
    assert whole["value"] == tested["pruned"]["value"]
    card = run("push", output, "--repo-id", "small", "--dry-run").stdout
    assert f"{model.num_parameters():,}" in card and "figures/pruning.png" in card
    assert not (output / "unfinished").exists()
    again = run("prune", trained, "--output", output, "--keep", 3, "--finetune", 5, "--control", "--rows", 50)
    assert again.stdout == answer.stdout and "is finished already" in again.stderr
    refused = run("prune", trained, "--output", output, "--keep", 3, code=2)
    assert "holds results for finetune=5, now asked for None" in refused.stderr
    assert "holds no result of headcount prune" in run("prune", trained, "--output", output.parent, code=2).stderr


PARTS = {  # how much of the work is done when it is stopped, by what is there then
    "the curve": "unfinished/results/curve.json",
    "fine-tuning": "unfinished/results/finetuned.json",
    "half of the control": "control/checkpoints/step-00000100/state.json",
    "the control": "control/provenance.json",
    "the model": "recipe.yaml",
}


PRUNING = ("--keep", 4, "--finetune", 3, "--control", "--rows", 20)


@pytest.fixture(scope="module")
def pruned(trained, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pruned") / "whole"
    run("prune", trained, "--output", folder, *PRUNING)
    return folder


@pytest.mark.parametrize("done", PARTS)
def test_a_pruning_that_was_stopped_goes_on_and_ends_the_same(trained, pruned, tmp_path, done, monkeypatch):
    output, written = tmp_path / "small", []
    real = Path.rename, Path.replace

    def stop_after(original):
        def moved(path, target):
            found = original(path, target)
            if (output / PARTS[done]).exists() and not written:
                written.append(target)
                raise KeyboardInterrupt
            return found

        return moved

    monkeypatch.setattr(Path, "rename", stop_after(real[0]))
    monkeypatch.setattr(Path, "replace", stop_after(real[1]))
    stopped = run("prune", trained, "--output", output, *PRUNING, code=130)
    assert stopped.stderr.endswith("interrupted; what is finished stays; the same command goes on from there\n")
    stamp = (output / PARTS[done]).stat().st_mtime_ns if done != "the model" else None
    again = run("prune", trained, "--output", output, *PRUNING)
    assert written and ("removing heads, without" not in again.stderr)
    if done == "half of the control":
        assert "resuming" in again.stderr and "at step 0 " not in again.stderr
    if done == "the control":
        assert (output / PARTS[done]).stat().st_mtime_ns == stamp
    weights = [(folder / "model" / "model.safetensors").read_bytes() for folder in (pruned, output)]
    assert weights[0] == weights[1]

    def plain(folder):  # speed is measured, and differs
        return [{k: v for k, v in row.items() if k != "relative_speed"} for row in rows_of(folder, "pruning")]

    assert plain(pruned) == plain(output)


def test_ctrl_c_while_the_control_is_trained_is_one_sentence(trained, tmp_path):
    longer = shutil.copytree(trained, tmp_path / "longer")  # so that the control does not end before the signal comes
    recipe = longer / "recipe.yaml"
    recipe.write_text(re.sub(r"\bsteps: 250\b", "steps: 20000", recipe.read_text()))
    assert "steps: 20000" in recipe.read_text()
    arguments = [
        "prune",
        str(longer),
        "--output",
        str(tmp_path / "small"),
        "--keep",
        "5",
        "--control",
        "--rows",
        "20",
    ]
    process = subprocess.Popen([sys.executable, "-m", "headcount", *arguments], stderr=subprocess.PIPE, text=True)
    log = tmp_path / "small" / "control" / "metrics.jsonl"
    deadline = time.monotonic() + 120
    while not (log.exists() and log.read_text().count("\n") > 1):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in said and "--resume" not in said
    assert said.endswith("headcount: interrupted; what is finished stays; the same command goes on from there\n")


def test_prune_names_what_is_wrong(trained, tmp_path):
    def refused(*arguments):
        return run("prune", trained, "--output", tmp_path / "x", *arguments, code=2).stderr

    assert "max_drop and keep exclude each other" in refused("--keep", 3, "--max-drop", 0.1)
    assert "keep=6 is not allowed; expected 0 to 5" in refused("--keep", 6)
    assert "'--finetune': '0' is not allowed" in refused("--finetune", 0)
    assert "max_drop=2.0 is not allowed" in refused("--max-drop", 2)
    assert "is the run itself" in run("prune", trained, "--output", trained, code=2).stderr
    assert not (tmp_path / "x").exists()


def test_a_model_folder_serves_as_well_as_its_run(trained, studied, tmp_path):
    _, first = studied
    again = run("heads", trained / "model", "--output", tmp_path / "heads", "--rows", 50)
    assert again.stdout == first.stdout
    run("prune", trained / "model", "--output", tmp_path / "small", "--keep", 5, "--rows", 20)
    assert (tmp_path / "small" / "model" / "model.safetensors").exists()
