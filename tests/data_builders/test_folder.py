"""Corpora on disk: read where headcount is not installed, streamed, rewritten, broken, and described by their card."""

import json
import subprocess
import sys
from pathlib import Path

import datasets
import numpy as np
import pytest
import yaml

from headcount.data_builders import card, folder
from headcount.data_builders.addition.options import AdditionOptions
from headcount.data_builders.builders import make_builder
from headcount.data_builders.folder import check_folder, load_folder, open_folder, write_folder
from headcount.data_builders.registry import TASKS
from headcount.data_builders.sortedness.options import SortednessOptions
from headcount.data_builders.strings import StringOptions


ADDITION = AdditionOptions(train=500, validation=100, test=100, hard=50, pairs=30)
SORTEDNESS = SortednessOptions(train=200, validation=20, test=20, test_lengths=(8, 32))
REVERSE = StringOptions(train=200, validation=20, test=20, test_lengths=(12,))
OPTIONS = {"addition": ADDITION, "sortedness": SORTEDNESS, "reverse": REVERSE}


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("corpora")
    for task, options in OPTIONS.items():
        write_folder(task, options, root / task)
    return {task: root / task for task in OPTIONS}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


def test_every_task_is_named_as_it_is_registered_and_described():
    assert all(name == task.name and task.texts.description for name, task in TASKS.items())


READ_WITHOUT_HEADCOUNT = """
import sys
sys.modules["headcount"] = None  # any import of it fails
from datasets import load_dataset
addition, sortedness = sys.argv[1:]
for streaming in (False, True):
    rows = list(load_dataset(addition, "default", split="train", streaming=streaming))
    assert len(rows) == 500 and all(row["a"] + row["b"] == row["sum"] for row in rows)
    assert all(int(row["target"]) == row["sum"] for row in rows)
    assert len(list(load_dataset(addition, "pairs", split="ripple", streaming=streaming))) == 30
    rows = list(load_dataset(sortedness, "swap", split="test_32", streaming=streaming))
    assert len(rows) == 20 and all((row["values"] == sorted(row["values"])) == row["label"] for row in rows)
whole = load_dataset(sortedness)
assert whole["train"].features["label"].names == ["unsorted", "sorted"]
assert set(whole) == {"train", "validation", "test_8", "test_32"}
classes = load_dataset(addition)["hard"].features["column_class"].feature
assert classes.names == ["kill", "propagate", "generate"]
print("read")
"""


def test_both_are_read_where_headcount_is_not_installed(folders, tmp_path):
    command = [sys.executable, "-c", READ_WITHOUT_HEADCOUNT, str(folders["addition"]), str(folders["sortedness"])]
    environment = {"HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1", "PATH": "", "HOME": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.stdout.strip() == "read", done.stderr


@pytest.mark.parametrize("task", OPTIONS)
def test_what_is_read_is_what_the_corpus_has(task, folders):
    corpus = TASKS[task].splits(OPTIONS[task])
    for config, sizes in corpus.sizes().items():
        read = load_folder(folders[task], config)
        assert {split: len(rows) for split, rows in read.items()} == sizes
        for split in sizes:
            made = [row for table in corpus.tables(config, split) for row in table.to_pylist()]
            assert list(read[split]) == made
            assert read[split].features == corpus.features(config)


@pytest.mark.parametrize("task", OPTIONS)
def test_an_opened_folder_has_the_problems_that_the_corpus_draws(task, folders):
    read, drawn = open_folder(folders[task]), TASKS[task].splits(OPTIONS[task])
    assert read.options == drawn.options and read.sizes() == drawn.sizes()
    for config, sizes in drawn.sizes().items():
        for split in sizes if config != "pairs" else ():
            ours, theirs = (TASKS[task].encode(each.problems(split, config)) for each in (read, drawn))
            assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)


def test_a_rewritten_folder_serves_its_new_rows(tmp_path):
    target = tmp_path / "corpus"
    write_folder("addition", ADDITION, target)
    before = load_folder(target, "default", "train")["input"]
    other = AdditionOptions(seed=1, train=500, validation=100, test=100, hard=50, pairs=30)
    write_folder("addition", other, target, overwrite=True)
    after = load_folder(target, "default", "train")["input"]
    assert list(before) != list(after)
    assert list(after) == [
        row["input"]
        for table in TASKS["addition"].splits(other).tables("default", "train")
        for row in table.to_pylist()
    ]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == [], "nothing is left behind"


def test_the_same_options_write_the_same_bytes(folders, tmp_path):
    again = write_folder("sortedness", SORTEDNESS, tmp_path / "again")
    assert again["files"] == check_folder(folders["sortedness"])["files"]
    assert (tmp_path / "again" / "README.md").read_text() == (folders["sortedness"] / "README.md").read_text()


def test_an_existing_folder_is_not_overwritten_unless_asked(tmp_path):
    target = tmp_path / "corpus"
    target.mkdir()
    (target / "thesis.txt").write_text("years of work")
    with pytest.raises(ValueError, match="is not empty; expected a new or empty folder"):
        write_folder("addition", ADDITION, target)
    with pytest.raises(ValueError, match="is no corpus folder"):
        write_folder("addition", ADDITION, target, overwrite=True)
    assert (target / "thesis.txt").read_text() == "years of work"
    with pytest.raises(ValueError, match="is a file"):
        write_folder("addition", ADDITION, target / "thesis.txt")


def test_a_failure_half_way_leaves_nothing_and_keeps_the_old_folder(tmp_path):
    target = tmp_path / "corpus"
    manifest = write_folder("addition", ADDITION, target)

    def fail_late(split: str, rows: int) -> None:
        if split == "default/hard":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_folder("addition", AdditionOptions(seed=3), target, overwrite=True, progress=fail_late)
    assert check_folder(target) == manifest
    with pytest.raises(KeyboardInterrupt):
        write_folder("addition", AdditionOptions(seed=3), tmp_path / "new", progress=fail_late)
    assert [path.name for path in tmp_path.iterdir() if path.name != "cache"] == ["corpus"]


def break_manifest(target: Path) -> None:
    (target / "manifest.json").write_text('{"files": {')


def cut_file(target: Path) -> None:
    path = next((target / "default").glob("test-*"))
    path.write_bytes(path.read_bytes()[:-100])


def flip_byte(target: Path) -> None:
    path = next((target / "default").glob("train-*"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda target: (target / "manifest.json").unlink(), "half-written or not a corpus"),
        (break_manifest, "cannot be read: the folder is broken"),
        (lambda target: (target / "manifest.json").write_text("[]"), "cannot be read: the folder is broken"),
        (lambda target: next((target / "pairs").glob("ripple-*")).unlink(), "ripple-.* is missing"),
        (lambda target: (target / "README.md").unlink(), "README.md is missing"),
        (cut_file, "test-.* is not what was written"),
        (flip_byte, "train-.* is not what was written"),
    ],
)
def test_a_broken_folder_is_reported_not_read(tmp_path, damage, message):
    target = tmp_path / "corpus"
    write_folder("addition", ADDITION, target)
    damage(target)
    with pytest.raises(ValueError, match=message):
        load_folder(target)


def test_missing_folders_and_configs_are_explained(folders, tmp_path):
    with pytest.raises(ValueError, match="is not a folder; expected one that `headcount data` has written"):
        check_folder(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="has no config 'pears'; expected one of default, pairs"):
        load_folder(folders["addition"], "pears")


def test_large_splits_are_cut_into_files(tmp_path, monkeypatch):
    monkeypatch.setattr(folder, "ROWS_PER_FILE", 100_000)
    options = AdditionOptions(digits=6, train=400_000, validation=0, test=0, hard=0, pairs=0)
    write_folder("addition", options, tmp_path / "corpus")
    names = sorted(path.name[:20] for path in (tmp_path / "corpus" / "default").iterdir())
    assert names == [f"train-{number:05d}-of-00004" for number in range(4)]
    assert len(load_folder(tmp_path / "corpus", split="train")) == 400_000


@pytest.mark.parametrize("task", OPTIONS)
def test_the_card_says_everything(task, folders):
    page = (folders[task] / "README.md").read_text()
    head = yaml.safe_load(page.split("---\n")[1])
    assert head["license"] == "apache-2.0"
    corpus = TASKS[task].splits(OPTIONS[task])
    assert [config["config_name"] for config in head["configs"]] == list(corpus.sizes())
    for config, sizes in corpus.sizes().items():
        for split, rows in sizes.items():
            assert f"| `{config}` | `{split}` | {rows:,} |" in page
        for column in corpus.features(config):
            assert f"`{column}`" in page or f", {column}" in page or f"{column}," in page
    for word in ("$", "TODO", "More Information", "None needed"):
        assert word not in page
    assert f"headcount data {task} --output DIR --seed 0 --" in page
    figure = folders[task] / "figures" / TASKS[task].texts.data.figure
    assert figure.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert f"figures/{figure.name}" in page


def test_the_command_on_the_card_gives_the_same_options(folders):
    assert card.command_of("sortedness", SORTEDNESS).endswith(
        "--test-lengths 8,32 --train 200 --validation 20 --test 20"
    )
    assert "--no-zero-pad" in card.command_of("addition", AdditionOptions(zero_pad=False))
    assert "--exhaustive" in card.command_of("addition", AdditionOptions(exhaustive=True))


def test_builders_prepare_the_same_rows(tmp_path):
    sizes = {"pairs": 30, "train": 500, "validation": 100, "test": 100, "hard": 50}
    builder = make_builder("addition", "pairs", str(tmp_path), **sizes)
    builder.download_and_prepare()
    made = [row for table in TASKS["addition"].splits(ADDITION).tables("pairs", "test") for row in table.to_pylist()]
    assert list(builder.as_dataset(split="test")) == made
    sortedness = make_builder(
        "sortedness", cache_dir=str(tmp_path), train=40, validation=10, test=10, test_lengths=(8,), seed=3
    )
    sortedness.download_and_prepare()
    assert {split: len(rows) for split, rows in sortedness.as_dataset().items()} == {
        "train": 40,
        "validation": 10,
        "test_8": 10,
    }
    other = make_builder(
        "sortedness", cache_dir=str(tmp_path), train=40, validation=10, test=10, test_lengths=(8,), seed=4
    )
    assert other.cache_dir != sortedness.cache_dir
    with pytest.raises(ValueError, match="these options give no config 'pairs'"):
        make_builder("addition", "pairs", str(tmp_path), pairs=0)


def test_the_manifest_names_options_and_files(folders):
    manifest = json.loads((folders["addition"] / "manifest.json").read_text())
    assert manifest["options"]["train"] == 500
    assert set(manifest["files"]) == {
        path.relative_to(folders["addition"]).as_posix() for path in folders["addition"].glob("*/*.parquet")
    }


PEAK_MEMORY = """
import resource, sys
from headcount.data_builders.addition.options import AdditionOptions
from headcount.data_builders.folder import write_folder
write_folder("addition", AdditionOptions(digits=6, train=int(sys.argv[1])), sys.argv[2])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_rows(tmp_path):
    peak = []
    for rows in (1_000_000, 5_000_000):
        command = [sys.executable, "-c", PEAK_MEMORY, str(rows), str(tmp_path / str(rows))]
        peak.append(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    assert peak[1] - peak[0] < 60, f"{peak} MB; the four million rows more take 150 MB on disk"
