"""`headcount heads` stopped after --overwrite, and on data that changed under the same name."""

import pytest
from command_line import run
from small_runs import REVERSE, small_run

from headcount.analysis.heads import prune_run, study
from headcount.records.rows import read_rows, results_path, values_of


TINY = ("training.steps=2", "data.test=60", "data.pairs=30", "model.num_attention_heads=2", "model.hidden_size=16")
SMALL = [*REVERSE, "model.num_hidden_layers=1", "model.num_attention_heads=2"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    run("train", "addition-tiny", "--output", folder, *(word for value in TINY for word in ("--set", value)))
    return folder


def counts(output):
    return {path.stem: max(values_of(read_rows(path), "n")) for path in (output / "results").iterdir()}


def test_after_a_stopped_overwrite_no_row_of_the_old_question_is_left(trained, tmp_path, monkeypatch):
    command = ["heads", trained, "--output", tmp_path / "out", "--mode", "zero"]
    run(*command, "--rows", 60)

    def stop(*arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setitem(study.ANALYSES, "ablation", stop)
        run(*command, "--rows", 20, "--overwrite", code=130)
    assert not results_path(tmp_path / "out", "ablation").exists()
    assert not list((tmp_path / "out" / "figures").iterdir())
    run(*command, "--rows", 20)
    assert counts(tmp_path / "out")["ablation"] == 20
    assert counts(tmp_path / "out")["specialization"] == 20


def test_other_data_under_the_same_name_are_refused_and_the_same_elsewhere_are_not(tmp_path):
    trained, data, output = small_run(tmp_path / "run", "reverse", SMALL), tmp_path / "data", tmp_path / "out"
    few = ["--recipe", "reverse", "--train", 40, "--validation", 10, "--test", 30, "--overwrite"]
    run("data", "reverse", "--output", data, "--seed", 7, *few)
    command = ["heads", trained, "--output", output, "--mode", "zero", "--rows", 20]
    run(*command, "--data", data)
    stamp = results_path(output, "ablation").stat().st_mtime_ns
    data.rename(tmp_path / "moved")
    run(*command, "--data", tmp_path / "moved")
    assert results_path(output, "ablation").stat().st_mtime_ns == stamp
    run("data", "reverse", "--output", data, "--seed", 8, *few)
    assert "holds results for other data" in run(*command, "--data", data, code=2).stderr
    assert "holds results for other data" in run(*command, code=2).stderr


def test_a_stopped_overwrite_of_a_pruned_run_leaves_no_row_of_the_old_model(trained, tmp_path, monkeypatch):
    output = tmp_path / "small"
    command = ["prune", trained, "--output", output, "--rows", 20]
    run(*command, "--keep", 5)

    def stop(*arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(prune_run, "compare", stop)
        run(*command, "--keep", 4, "--overwrite", code=130)
    assert not results_path(output, "pruning").exists() and not (output / "figures").exists()
