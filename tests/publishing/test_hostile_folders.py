"""Folders that somebody else made: nothing in them becomes code, leads out of them, or is published by a link."""

import json
import re
import shutil

import pytest
from command_line import run as headcount
from small_runs import small_data, small_run

from headcount.records.files import hash_file, read_json, write_json
from headcount.scripts import cli


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return small_run(tmp_path_factory.mktemp("hostile") / "run")


@pytest.fixture
def run(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "run")


def test_a_row_cannot_run_code_through_the_card(run, tmp_path, capsys):
    """The head of the top row once went into a program that the card runs."""
    mark = tmp_path / "was-run"
    code = f'encoder.0.self.0"]); open({str(mark)!r}, "w").close(); (["'
    row = json.loads((run / "results" / "evaluation.json").read_text())[0]
    about = {"study": "ablation", "metric": "exact_match_drop", "mode": "zero", "class": "critical", "value": 0.9}
    write_json(run / "results" / "ablation.json", [{**row, **about, "interval": [0.8, 1.0], "head": code}])
    assert cli.run(["push", str(run), "--repo-id", "a/b", "--dry-run"]) == 2
    assert not mark.exists() and "ablation.json has a row with head=" in capsys.readouterr().err


def test_a_manifest_cannot_name_files_outside(tmp_path):
    data = small_data(tmp_path / "data")
    victim = tmp_path / "victim.txt"
    victim.write_text("precious")
    (data / "default" / ".." / ".." / "attack.txt").write_text("attack")
    manifest = read_json(data / "manifest.json")
    for name in ("../victim.txt", str(victim), "default/../../victim.txt"):
        facts = {"bytes": victim.stat().st_size, "sha256": hash_file(victim)}
        write_json(data / "manifest.json", {**manifest, "files": {**manifest["files"], name: facts}})
        for place in (["--local", tmp_path / "deep" / "published"], ["--dry-run"]):
            said = headcount("push", data, "--repo-id", "a/b", *place, code=2).stderr
            assert "is not the name of a file in" in said
    assert victim.read_text() == "precious" and not (tmp_path / "deep").exists()


@pytest.mark.parametrize("name", ["results/zz.json", "figures/zz.svg", "report.html", "model/chat_template.jinja"])
def test_links_out_of_a_run_are_not_published(name, run, tmp_path, capsys):
    secret = tmp_path / "secret"
    secret.write_text("[]")
    (run / name).parent.mkdir(exist_ok=True)
    (run / name).symlink_to(secret)
    assert cli.run(["push", str(run), "--repo-id", "a/b", "--local", str(tmp_path / "published")]) == 2
    assert "is a link that leaves" in capsys.readouterr().err and not (tmp_path / "published").exists()


@pytest.mark.parametrize("name", ["figures/zz.png", "README.md", "manifest.json"])
def test_links_out_of_a_data_folder_are_not_published(name, tmp_path):
    data = small_data(tmp_path / "data")
    if (data / name).exists():
        shutil.move(data / name, tmp_path / "secret")
    else:
        (tmp_path / "secret").write_text("secret")
    (data / name).symlink_to(tmp_path / "secret")
    said = headcount("push", data, "--repo-id", "a/b", "--local", tmp_path / "published", code=2).stderr
    assert "is a link that leaves" in said and not (tmp_path / "published").exists()


@pytest.mark.parametrize("name", ["figures/zz.svg", "results/zz.json"])
def test_links_out_of_a_run_do_not_get_into_its_report(name, run, tmp_path):
    (tmp_path / "secret").write_text("<svg>secret</svg>")
    (run / name).parent.mkdir(exist_ok=True)
    (run / name).symlink_to(tmp_path / "secret")
    assert "is a link that leaves" in headcount("report", run, code=2).stderr


def test_text_of_files_is_text_in_the_card(run, tmp_path):
    nasty = "x`|<img src=http://e>\n\n# [y](http://z)"
    path = run / "provenance.json"
    origin = read_json(path)
    hardware = {**origin["hardware"], "processor": nasty}
    command = "train\n```\n<script>"
    write_json(path, {**origin, "hardware": hardware, "commit": nasty, "recipe": nasty, "command": command})
    rows = read_json(run / "results" / "evaluation.json", list)
    wrong = next(row for row in rows if row["metric"] == "wrong_answer")
    wrong |= {"input": nasty, "generated": "`"}
    write_json(run / "results" / "evaluation.json", rows)
    headcount("push", run, "--repo-id", "a/b", "--local", tmp_path / "published")
    card = (tmp_path / "published" / "README.md").read_text()
    assert "\n# [y]" not in card and "````\ntrain\n```\n<script>\n````" in card
    lines = [line for line in card.splitlines() if "http://e" in line]
    assert len(lines) == 4 and all(line.startswith("| ") and line.endswith(" |") for line in lines)
    for line in lines:
        outside = re.sub(r"(`+) .*? \1(?!`)", "", line)  # what is not code
        assert "<img" not in outside.replace("\\<img", "") and "[y]" not in outside
