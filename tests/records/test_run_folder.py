"""A run folder is read by one reader, whole or as far as it goes; claims keep questions apart."""

import pytest

from headcount.records.claims import Claim
from headcount.records.files import read_json, write_json, write_text
from headcount.records.rows import row, write_rows
from headcount.records.run_folder import read_run


def make_run(folder):
    write_text(folder / "recipe.yaml", "task: addition\nname: addition-tiny\ntraining: {seed: 3}\n")
    hardware = dict.fromkeys(("machine", "processor", "accelerator", "threads", "processes"))
    about = {"command": "train", "recipe": "addition-tiny", "versions": {}, "finished_at": "2026", "seconds": 1.0}
    write_json(folder / "provenance.json", {"seed": 3, "commit": None, "hardware": hardware, **about})
    write_json(folder / "model" / "config.json", {"architecture": "decoder"})
    write_text(folder / "metrics.jsonl", '{"step": 1, "loss": 2.0}\n')
    write_rows(
        folder,
        "evaluation",
        [row("evaluation", "exact_match", {"value": 1.0, "n": 5, "interval": [0.5, 1.0]}, split="test")],
    )
    for name in ("ablation.png", "ablation.svg", ".ablation.partial.png", "notes.txt"):
        write_text(folder / "figures" / name, "")
    return folder


def test_a_run_is_read_with_its_rows_and_figures(tmp_path):
    run = read_run(make_run(tmp_path / "run"), whole=True)
    assert (run.name, run.task, run.recipe_name, run.seed) == ("run", "addition", "addition-tiny", 3)
    assert run.evaluation[0]["value"] == 1.0 and run.metrics == [{"step": 1, "loss": 2.0}] and run.training == []
    assert {name: [path.suffix for path in paths] for name, paths in run.figures.items()} == {
        "ablation": [".png", ".svg"]
    }


@pytest.mark.parametrize("name", ["provenance.json", "model/config.json", "results/evaluation.json"])
def test_what_is_missing_is_empty_or_named_if_all_is_wanted(name, tmp_path):
    folder = make_run(tmp_path / "run")
    (folder / name).unlink()
    assert read_run(folder).task == "addition"
    with pytest.raises(ValueError, match=f"has no {name}; expected the folder of a finished and evaluated run"):
        read_run(folder, whole=True)


@pytest.mark.parametrize(
    "change", [{"seed": "3"}, {"hardware": {}}, {"versions": 1}, {"seconds": None}, {"commit": []}]
)
def test_a_provenance_of_another_kind_is_named(change, tmp_path):
    folder = make_run(tmp_path / "run")
    write_json(folder / "provenance.json", {**read_json(folder / "provenance.json"), **change})
    with pytest.raises(ValueError, match=f"provenance.json has {next(iter(change))}="):
        read_run(folder, whole=True)


@pytest.mark.parametrize(
    "line", ['{"loss": 2.0}', '{"step": 1, "loss": "low"}', '{"step": [1]}', '{"step": 1, "n": {}}']
)
def test_a_log_of_another_kind_is_named(line, tmp_path):
    write_text(make_run(tmp_path / "run") / "metrics.jsonl", f"{line}\n")
    with pytest.raises(ValueError, match=r"metrics\.jsonl has a line with .*; expected the log as headcount wrote it"):
        read_run(tmp_path / "run")


def test_other_folders_are_no_runs(tmp_path):
    for folder, message in ((tmp_path / "nowhere", "is not a folder"), (tmp_path, "has no recipe.yaml")):
        with pytest.raises(ValueError, match=message):
            read_run(folder)


def test_a_claim_goes_on_with_its_own_results_and_refuses_another_question(tmp_path):
    claim = Claim(tmp_path, "heads", {"rows": 200, "modes": ("zero",), "data": None}, ["ablation"])
    assert claim.finished("ablation") is None
    write_rows(tmp_path, "ablation", [row("ablation", "loss_rise")])
    assert Claim(tmp_path, "heads", {"rows": 200, "modes": ["zero"], "data": None}, ["ablation"]).finished("ablation")
    with pytest.raises(ValueError, match="holds results for rows=200, now asked for 50"):
        Claim(tmp_path, "heads", {"rows": 50, "modes": ["zero"], "data": None}, ["ablation"])
    assert Claim(tmp_path, "heads", {"rows": 50}, ["ablation"], overwrite=True).finished("ablation") is None
