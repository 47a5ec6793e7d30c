"""`headcount push` for real: huggingface_hub's own client, over HTTP, to the server of hub_server.py, and back."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml
from datasets import load_dataset
from huggingface_hub import ModelCard
from small_runs import REVERSE, SORTEDNESS, small_data, small_run
from transformers import pipeline
from without_headcount import run_without_headcount

from headcount.publishing.hub_upload import published_data, push
from headcount.publishing.repository import stage_data, stage_run
from headcount.scripts.cli import run as headcount


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    folder = small_run(tmp_path_factory.mktemp("runs") / "addition")
    (folder / "figures").mkdir()
    (folder / "figures" / "ablation.png").write_bytes(b"the bytes of a picture")
    (folder / "report.html").write_text("<p>report</p>")
    return folder


PULL = """
from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoTokenizer, pipeline
name, problems = "alice/m", {problems!r}
tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=True)
model = AutoModelForSeq2SeqLM.from_pretrained(name, trust_remote_code=True)
inputs, expected = torch.load({logits!r})
assert tokenizer(problems[0], return_tensors="pt")["input_ids"].equal(inputs["input_ids"])
assert torch.equal(model(**inputs).logits, expected)
pipe = pipeline("integer-addition", model=name, trust_remote_code=True)
print(pipe(problems), pipeline(model=name, trust_remote_code=True)(problems))
pipe.save_pretrained("again")
print(pipeline("integer-addition", model="again", trust_remote_code=True)(problems))
"""


def test_model_and_data_there_and_back(hub, run, data, token, capsys, tmp_path):
    """Pushed by the command line, tied together, and the model pulled where headcount is not installed."""
    assert headcount(["push", str(data), "--repo-id", "sums", "--private"]) == 0  # in one's own namespace
    assert hub.repos["dataset", "alice/sums"].private
    assert b'load_dataset("alice/sums", ' in hub.repos["dataset", "alice/sums"].files()["README.md"]
    assert headcount(["push", str(run), "--repo-id", "alice/m", "--dataset", "alice/sums", "--json"]) == 0
    printed = capsys.readouterr()
    answer = json.loads(printed.out.splitlines()[-1])
    repo = hub.repos["model", "alice/m"]
    files = repo.files()
    assert answer["repo_id"] == "alice/m" and answer["url"].endswith(repo.branches["main"])
    assert repo.titles == ["initial commit", "Upload model with headcount 0.1.0"]
    model_files = {"model.safetensors", "config.json", "generation_config.json", "tokenizer.json"}
    code = {"modeling_headcount.py", "addition_pipeline.py"}
    assert model_files | code | {"README.md", "recipe.yaml", "figures/ablation.png", "report.html"} < files.keys()
    assert ModelCard(files["README.md"].decode()).data.datasets == ["alice/sums"]
    entries = yaml.safe_load(files[".eval_results/addition.yaml"])
    rows = json.loads((run / "results" / "evaluation.json").read_text())
    assert entries[0]["value"] == rows[0]["value"] and f"n={rows[0]['n']}" in entries[0]["notes"]
    revision = hub.repos["dataset", "alice/sums"].branches["main"]
    assert entries[0]["dataset"] == {"id": "alice/sums", "task_id": "default.test.exact_match", "revision": revision}
    assert token not in printed.out + printed.err + "".join(map(repr, files.values())) + "".join(hub.requests)

    problems = ["37+85", "9+9", "70+29"]
    pipe = pipeline("integer-addition", model=str(run / "model"))
    inputs = {**pipe.tokenizer(problems[0], return_tensors="pt"), "labels": torch.tensor([[5, 4, 3, 2]])}
    torch.save((inputs, pipe.model(**inputs).logits.detach()), tmp_path / "logits.pt")
    shown = f"prints\n\n```\n{pipe('37+81')}\n{pipe(['70+29', '99+1'])}\n```"
    assert shown in files["README.md"].decode()  # what the example of the card prints is what the model says
    code = PULL.format(problems=problems, logits=str(tmp_path / "logits.pt"))
    expected = pipe(problems)
    assert run_without_headcount(code, tmp_path, **hub.environment) == f"{expected} {expected}\n{expected}\n"


def test_a_pushed_data_set_loads_and_streams(hub, staged, data, tmp_path):
    push(staged)
    code = """
from datasets import load_dataset
rows = load_dataset("alice/sums", "default", split="hard")
stream = load_dataset("alice/sums", split="hard", streaming=True)
assert list(stream) == list(rows)
print(len(rows), rows[0]["input"])
"""
    first = load_dataset(str(data), "default", split="hard")[0]
    assert run_without_headcount(code, tmp_path, **hub.environment) == f"20 {first['input']}\n"
    card = hub.repos["dataset", "alice/sums"].files()["README.md"].decode()
    assert 'load_dataset("alice/sums", "default", split="train")' in card and "DIR" not in card


def test_other_data_than_that_of_the_run_are_refused(hub, run, tmp_path):
    (tmp_path / "work").mkdir()
    push(stage_data(small_data(tmp_path / "other", seed=5), "alice/other", tmp_path / "work"))
    with pytest.raises(ValueError, match="alice/other was made with seed=5, but this run was trained with 0"):
        stage_run(run, "alice/addition", tmp_path / "m", published_data("alice/other"))
    with pytest.raises(ValueError, match="the data set alice/nothing cannot be read: the Hub does not know it"):
        published_data("alice/nothing")


def test_runs_beside_must_be_other_seeds_of_the_same_recipe(run, tmp_path):
    other = small_run(tmp_path / "other", settings=["training.steps=3", "data.train=300"])
    with pytest.raises(ValueError, match=r"was not trained with the recipe of .*; expected the same recipe with"):
        stage_run(run, "alice/addition", tmp_path / "m", beside=(other,))
    with pytest.raises(ValueError, match=r"has seed 0, as .*; expected runs with different seeds"):
        stage_run(run, "alice/addition", tmp_path / "m", beside=(run,))


def test_dry_run_lists_every_file_shows_the_card_and_sends_nothing(hub, data, staged, capsys, monkeypatch):
    monkeypatch.delenv("HF_TOKEN")
    assert headcount(["push", str(data), "--repo-id", "alice/sums", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    for name, path in staged.files.items():
        assert f"{path.stat().st_size:12,}  {name}\n" in shown
    assert shown.endswith(staged.card)
    assert headcount(["push", str(data), "--repo-id", "alice/sums", "--dry-run", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["repo_type"] == "dataset" and [file["path"] for file in answer["files"]] == list(staged.files)
    assert not hub.requests


def test_the_real_program_in_a_process_of_its_own(hub, data, token):
    command = [sys.executable, "-m", "headcount", "push", str(data), "--repo-id", "alice/sums"]
    answer = subprocess.run(
        command, env={**os.environ, **hub.environment}, capture_output=True, text=True, timeout=120
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith("pushed ") and "in one commit: http://127.0.0.1" in answer.stdout
    assert len(hub.repos["dataset", "alice/sums"].commits) == 2
    assert token not in answer.stdout + answer.stderr and "%|" not in answer.stderr


def test_local_folder_is_the_repository_and_nothing_is_sent(run, tmp_path, capsys):
    target = tmp_path / "published" / "model"
    assert headcount(["push", str(run), "--repo-id", "alice/m", "--local", str(target)]) == 0
    assert (target / "README.md").exists() and (target / "model.safetensors").exists()
    code = f"""
from transformers import AutoModelForSeq2SeqLM
print(len(AutoModelForSeq2SeqLM.from_pretrained({str(target)!r}, trust_remote_code=True).list_heads()))
"""
    answer = run_without_headcount(code, tmp_path)
    assert answer.strip().endswith("12")
    assert headcount(["push", str(run), "--repo-id", "alice/m", "--local", str(target)]) == 2
    assert "not empty; expected a new folder" in capsys.readouterr().err
    assert headcount(["push", str(run), "--repo-id", "m", "--local", str(tmp_path / "x"), "--private"]) == 2
    assert "--private has no effect with --local" in capsys.readouterr().err
    assert not (tmp_path / "x").exists() and not list(target.parent.glob(".*"))


@pytest.mark.parametrize(
    "recipe, settings, auto",
    [("reverse", REVERSE, "Seq2SeqLM"), ("sortedness-tiny", SORTEDNESS, "SequenceClassification")],
)
def test_a_model_of_any_task_is_published_with_programs_that_ran(recipe, settings, auto, tmp_path):
    folder, target = small_run(tmp_path / "run", recipe, settings), tmp_path / "published"
    assert headcount(["push", str(folder), "--repo-id", "alice/m", "--local", str(target)]) == 0
    card = (target / "README.md").read_text()
    shown = [block.split("```")[0].strip() for block in card.split("prints\n\n```\n")[1:]]
    assert len(shown) == 2 and all(shown), "both programs printed something"
    assert "ValueError" in card or "Exception" in card, "what it cannot read is refused, and the card shows how"
    code = f"""
from transformers import AutoModelFor{auto}
print(AutoModelFor{auto}.from_pretrained({str(target)!r}, trust_remote_code=True).list_heads()[0])
"""
    assert run_without_headcount(code, tmp_path).strip().endswith("encoder.0.self.0")
