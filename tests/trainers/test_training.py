"""The loop as a user runs it: real processes, killed, interrupted, doubled."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from headcount.trainers import checkpoints
from headcount.trainers.loop import Diverged, RunOptions, train_recipe
from headcount.trainers.muon import NEWTON_SCHULZ, Muon, cut, join, orthogonalize
from headcount.trainers.new_run import prepare_folder
from headcount.trainers.optimizers import OPTIMIZERS, schedule
from headcount.trainers.recipe import TrainingOptions, load_recipe
from headcount.trainers.training_data import FixedRows, make_batches, make_corpus


ROOT = Path(__file__).parent.parent.parent
SHORT = ["training.steps=24", "training.evaluate_every=12", "training.checkpoint_every=5", "training.log_every=1"]
FAST_ADDITION = [*SHORT, "data.train=300", "data.test=40", "data.validation=40", "data.hard=20", "data.pairs=0"]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


def quiet(recipe, folder, **options):
    return train_recipe(recipe, RunOptions(Path(folder), **options), say=lambda text: None)


def weights(folder) -> dict[str, torch.Tensor]:
    return load_file(Path(folder) / "model" / "model.safetensors")


def same(first, second) -> bool:
    first, second = weights(first), weights(second)
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def losses(folder) -> list[float]:
    lines = [json.loads(line) for line in (Path(folder) / "metrics.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if "loss" in line]


def command(recipe: str, folder, *extra: str) -> list[str]:
    settings = [part for setting in FAST_ADDITION for part in ("--set", setting)]
    return [sys.executable, "-m", "headcount", "train", recipe, "--output", str(folder), *settings, *extra]


@pytest.mark.parametrize("name", ["addition-tiny", "sortedness-tiny"])
def test_a_run_leaves_what_the_design_says(name, tmp_path):
    recipe = load_recipe(name, SHORT)
    summary = quiet(recipe, tmp_path / "run")
    run = tmp_path / "run"
    assert load_recipe(str(run / "recipe.yaml")) == recipe
    assert summary["steps"] == 24 and len(losses(run)) == 24
    rows = json.loads((run / "results" / "evaluation.json").read_text())
    assert all({"n", "interval", "value"} <= row.keys() for row in rows if row["metric"] != "wrong_answer")
    provenance = json.loads((run / "provenance.json").read_text())
    assert {"command", "seed", "commit", "versions", "hardware", "seconds"} <= provenance.keys()
    names = {path.name for path in (run / "model").iterdir()}
    assert {"model.safetensors", "config.json", "tokenizer.json"} <= names
    assert not list(run.rglob("*.bin")) and not list(run.rglob("*.pt")) and not list(run.rglob("*.pkl"))


def test_cpu_seconds_are_those_of_the_run_and_not_of_its_process(tmp_path):
    before = time.process_time()
    quiet(load_recipe("addition-tiny", FAST_ADDITION), tmp_path / "run", evaluate=False)
    spent = time.process_time() - before
    assert before > 0.1, "what the process did before must be told apart"
    found = json.loads((tmp_path / "run" / "provenance.json").read_text())["cpu_seconds"]
    assert 0 < found <= spent + 0.01


def test_same_seed_same_weights_and_another_seed_others(tmp_path):
    recipe = load_recipe("addition-tiny", [*FAST_ADDITION, "model.dropout=0.1"])
    quiet(recipe, tmp_path / "a", evaluate=False)
    quiet(recipe, tmp_path / "b", evaluate=False)
    quiet(recipe.with_seed(1), tmp_path / "c", evaluate=False)
    assert same(tmp_path / "a", tmp_path / "b") and not same(tmp_path / "a", tmp_path / "c")
    assert losses(tmp_path / "a") == losses(tmp_path / "b")


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_killed_at_any_moment_and_resumed_it_ends_with_the_same_weights(optimizer, tmp_path):
    extra = ["--set", "model.dropout=0.1", "--set", f"training.optimizer={optimizer}"]
    subprocess.run(
        command("addition-tiny", tmp_path / "whole", *extra), check=True, env=ENVIRONMENT, capture_output=True
    )
    run = tmp_path / "killed"
    for kill_after in (2, 9):  # logged steps, so that the first kill comes before the first checkpoint
        resume = ["--resume"] if run.exists() else []
        process = subprocess.Popen(
            command("addition-tiny", run, *extra, *resume), env=ENVIRONMENT, stderr=subprocess.PIPE
        )
        deadline = time.time() + 120
        while time.time() < deadline and process.poll() is None:
            log = run / "metrics.jsonl"
            if log.exists() and len(log.read_text().splitlines()) >= kill_after:
                break
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
    subprocess.run(command("addition-tiny", run, *extra, "--resume"), check=True, env=ENVIRONMENT, capture_output=True)
    assert same(tmp_path / "whole", run)
    assert losses(tmp_path / "whole") == losses(run)


def test_a_torn_checkpoint_is_passed_over(tmp_path):
    recipe = load_recipe("addition-tiny", FAST_ADDITION)
    quiet(recipe, tmp_path / "whole", evaluate=False)
    run = tmp_path / "torn"
    quiet(recipe, run, evaluate=False, keep=3)
    newest, before, *_ = checkpoints.list_checkpoints(run / "checkpoints")
    with (newest / "optimizer-0.safetensors").open("r+b") as file:
        file.truncate(100)
    (run / "provenance.json").unlink()
    (run / "model" / "model.safetensors").unlink()
    with pytest.warns(UserWarning, match=f"{newest} is torn"):
        found, state = checkpoints.newest_whole_checkpoint(run / "checkpoints")
    assert found == before and state["step"] == 15
    with pytest.warns(UserWarning, match="is torn"):
        quiet(recipe, run, resume=True, evaluate=False)
    assert same(tmp_path / "whole", run)
    (newest / "state.json").write_text("{")
    with pytest.warns(UserWarning, match="is torn"):
        checkpoints.newest_whole_checkpoint(run / "checkpoints")


def test_only_the_newest_checkpoints_are_kept(tmp_path):
    quiet(load_recipe("addition-tiny", FAST_ADDITION), tmp_path / "run", keep=1, evaluate=False)
    assert [path.name for path in checkpoints.list_checkpoints(tmp_path / "run" / "checkpoints")] == ["step-00000020"]


def test_interrupt_writes_a_checkpoint_and_says_how_to_go_on(tmp_path):
    run = tmp_path / "run"
    long = [
        "--set",
        "training.steps=5000",
        "--set",
        "training.checkpoint_every=5000",
        "--set",
        "training.evaluate_every=5000",
    ]
    process = subprocess.Popen(
        command("addition-tiny", run, *long), env=ENVIRONMENT, stderr=subprocess.PIPE, text=True
    )
    while not (run / "metrics.jsonl").exists() or len((run / "metrics.jsonl").read_text().splitlines()) < 3:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=120)
    assert process.returncode == 130
    sentence = error.strip().splitlines()[-1]
    assert re.search(r"interrupted at step \d+ of 5000; .*--resume", sentence) and "Traceback" not in error
    step = int(re.search(r"step (\d+)", sentence)[1])
    assert checkpoints.newest_whole_checkpoint(run / "checkpoints")[1]["step"] == step


def test_a_loss_that_is_not_a_number_stops_the_run_and_keeps_the_last_good_checkpoint(tmp_path, monkeypatch):
    recipe = load_recipe("addition-tiny", FAST_ADDITION)
    from headcount.trainers import loop

    real = loop.make_batches

    def poisoned(*arguments):
        batches = real(*arguments)

        def batch(step: int):
            if step == 12:
                model_parameters[0].data.fill_(float("nan"))
            return batches(step)

        batch.steps = batches.steps
        return batch

    model_parameters = []
    build = loop.make_model
    monkeypatch.setattr(loop, "make_model", lambda r: (m := build(r), model_parameters.extend(m.parameters()))[0])
    monkeypatch.setattr(loop, "make_batches", poisoned)
    with pytest.raises(
        Diverged, match=r"the loss is not finite at step 13; the last good checkpoint is .*step-00000010"
    ):
        quiet(recipe, tmp_path / "run")
    tensors = load_file(tmp_path / "run" / "checkpoints" / "step-00000010" / "model.safetensors")
    assert all(torch.isfinite(tensor).all() for tensor in tensors.values())
    assert not (tmp_path / "run" / "model").exists()


def test_an_existing_run_is_never_overwritten_unasked(tmp_path):
    recipe = load_recipe("addition-tiny", FAST_ADDITION)
    run = tmp_path / "run"
    quiet(recipe, run, evaluate=False)
    with pytest.raises(ValueError, match="holds a finished run; expected --resume to go on, --overwrite"):
        quiet(recipe, run)
    with pytest.raises(ValueError, match="was started with other settings"):
        quiet(recipe.with_seed(5), run, resume=True)
    before = (run / "model" / "model.safetensors").stat().st_mtime_ns
    assert quiet(recipe, run, resume=True)["steps"] == 24  # finished: nothing is computed again
    assert (run / "model" / "model.safetensors").stat().st_mtime_ns == before
    quiet(recipe.with_seed(5), run, overwrite=True, evaluate=False)
    assert "seed: 5" in (run / "recipe.yaml").read_text()


def test_folders_that_cannot_be_used_fail_early(tmp_path):
    recipe = load_recipe("addition-tiny", FAST_ADDITION)
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="is a file; expected a folder"):
        quiet(recipe, tmp_path / "file")
    with pytest.raises(ValueError, match="cannot be written"):
        quiet(recipe, tmp_path / "file" / "run")
    with pytest.raises(ValueError, match="holds no run to resume"):
        quiet(recipe, tmp_path / "new", resume=True)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    with pytest.raises(ValueError, match="is not empty and holds no run"):
        quiet(recipe, tmp_path / "full")
    with pytest.raises(ValueError, match=r"MB left, but this run needs about \d+ MB"):
        quiet(recipe, tmp_path / "huge", keep=10**12)


@pytest.mark.parametrize("resume", [False, True])
def test_a_run_that_was_killed_in_its_first_moments_starts_again(resume, tmp_path):
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    run = tmp_path / "run"
    run.mkdir()
    (run / f".probe-{process.pid}").write_bytes(b"headcount")
    (run / f".recipe.partial-{process.pid}.yaml").write_text("half")
    quiet(load_recipe("addition-tiny", FAST_ADDITION), run, resume=resume, evaluate=False)
    assert (run / "model" / "model.safetensors").exists() and not list(run.glob(".*"))


def test_gradient_accumulation_changes_nothing(tmp_path):
    for parts in (1, 4):
        quiet(
            load_recipe("addition-tiny", [*FAST_ADDITION, f"gradient_accumulation={parts}"]),
            tmp_path / f"{parts}",
            evaluate=False,
        )
    assert losses(tmp_path / "1") == pytest.approx(losses(tmp_path / "4"), rel=2e-3, abs=1e-4)


def test_bfloat16_trains_and_saves_float32_weights(tmp_path):
    quiet(load_recipe("addition-tiny", [*FAST_ADDITION, "precision=bfloat16"]), tmp_path / "half", evaluate=False)
    quiet(load_recipe("addition-tiny", FAST_ADDITION), tmp_path / "full", evaluate=False)
    assert losses(tmp_path / "half") == pytest.approx(losses(tmp_path / "full"), rel=0.05)
    assert losses(tmp_path / "half") != losses(tmp_path / "full")
    assert {tensor.dtype for tensor in weights(tmp_path / "half").values()} == {torch.float32}


def test_early_stop_on_a_target(tmp_path):
    recipe = load_recipe("sortedness-tiny", [*SHORT, "training.target=0.2"])
    assert quiet(recipe, tmp_path / "run", evaluate=False)["steps"] == 12


TWO_PROCESSES = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu"]
TWO_PROCESSES += ["--num_processes", "2", "--main_process_port", "0"]


@pytest.mark.slow
@pytest.mark.parametrize("zero_pad", ["true", "false"])
def test_two_processes_have_the_loss_curve_of_one(zero_pad, tmp_path):
    """With answers of unequal lengths the processes hold different numbers of labels; each label counts the same."""
    extra = ["--set", f"data.zero_pad={zero_pad}", "--set", "training.steps=12"]
    subprocess.run(
        command("addition-tiny", tmp_path / "one", *extra), check=True, env=ENVIRONMENT, capture_output=True
    )
    script = [
        str(ROOT / "scripts" / "train.py"),
        *command("addition-tiny", tmp_path / "two", *extra, "--processes", "2")[4:],
    ]
    answer = subprocess.run([*TWO_PROCESSES, *script], env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
    assert answer.returncode == 0, answer.stderr[-2000:]
    one, two = losses(tmp_path / "one"), losses(tmp_path / "two")
    assert len(two) == 12 and two == pytest.approx(one, rel=1e-3)
    assert json.loads((tmp_path / "two" / "provenance.json").read_text())["hardware"]["processes"] == 2
    first, second = (
        json.loads((tmp_path / name / "results" / "evaluation.json").read_text())[0]["n"] for name in ("one", "two")
    )
    assert first == second == 40


WATCHED = """
import gc
import torch
from headcount.trainers.loop import RunOptions, TrainingStopped, train_recipe
from headcount.trainers.recipe import load_recipe

destroy = torch.distributed.destroy_process_group

def watched(group=None):
    wrapped = torch.nn.parallel.DistributedDataParallel
    print("models that hold the group:", sum(isinstance(thing, wrapped) for thing in gc.get_objects()), flush=True)
    destroy(group)

torch.distributed.destroy_process_group = watched
options = RunOptions(Path({folder!r}), evaluate=False)
try:
    train_recipe(load_recipe("addition-tiny", {changes!r}), options)
except TrainingStopped as stopped:
    print(type(stopped).__name__)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("changes", "diverged"), [([], 0), (["training.learning_rate=1.0e+30"], 2)])
def test_processes_part_only_when_nothing_holds_the_group(changes, diverged, tmp_path):
    """A wrapped model that outlives the group makes torch hang at the end, once in some hundred runs."""
    script = tmp_path / "watched.py"
    changes = [*FAST_ADDITION, *changes]
    script.write_text("from pathlib import Path\n" + WATCHED.format(folder=str(tmp_path / "run"), changes=changes))
    answer = subprocess.run(
        [*TWO_PROCESSES, str(script)], env=ENVIRONMENT, capture_output=True, text=True, timeout=300
    )
    assert answer.returncode == 0, answer.stderr[-2000:]
    assert answer.stdout.count("models that hold the group: 0\n") == 2
    assert answer.stdout.count("Diverged") == diverged


@pytest.mark.slow
def test_fewer_processes_than_asked_for_are_an_error(tmp_path):
    launch = [sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_processes", "2"]
    script = [str(ROOT / "scripts" / "train.py"), *command("addition-tiny", tmp_path / "run")[4:]]
    answer = subprocess.run([*launch, *script], env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
    assert answer.returncode != 0 and not (tmp_path / "run").exists()
    assert "2 processes were asked for, but 1 started" in answer.stderr


def test_batches_are_a_function_of_seed_and_step_and_cover_every_row():
    recipe = load_recipe("addition-tiny", ["data.zero_pad=false", "data.train=640", "training.batch_size=64"])
    corpus = make_corpus(recipe)
    first, second = make_batches(recipe, corpus), make_batches(recipe, corpus)
    assert isinstance(first, FixedRows) and first.steps_per_epoch == 10
    for step in (0, 7, 3, 19):
        assert all(torch.equal(first(step)[name], second(step)[name]) for name in first(step))
    rows = [tuple(row[row > 2].tolist()) for step in range(10) for row in second(step)["input_ids"]]
    assert len(set(rows)) == 640
    widths = [second(step)["input_ids"].shape[1] for step in range(10)]
    assert min(widths) < max(widths)  # short problems are not padded to the longest
    fresh = make_batches(load_recipe("sortedness-tiny"), make_corpus(load_recipe("sortedness-tiny")))
    assert torch.equal(fresh(5)["input_ids"], fresh(5)["input_ids"]) and fresh(5)["labels"].float().mean() == 0.5


def test_fresh_addition_never_shows_a_held_out_problem():
    sizes = ["data.train=500", "data.validation=1500", "data.test=1500", "data.hard=100", "data.pairs=0"]
    recipe = load_recipe("addition-exhaustive", ["data.digits=2", "training.batch_size=512", *sizes])
    corpus = make_corpus(recipe)
    batches = make_batches(recipe, corpus)
    held_out = set()
    for split in ("validation", "test", "hard"):
        problems = corpus.problems(split)
        held_out |= {frozenset(pair) for pair in zip(problems.a @ [1, 10], problems.b @ [1, 10], strict=True)}
    for step in range(5):
        rows = batches(step)["input_ids"]
        assert rows.shape == (512, 6)
        seen = {frozenset((10 * r[0] + r[1], 10 * r[3] + r[4])) for r in (rows - 3).tolist()}
        assert not seen & held_out


def test_every_width_of_fresh_addition_has_problems_left_to_train_on():
    recipe = load_recipe("addition-long-10")
    batches = make_batches(recipe, make_corpus(recipe))
    widths = {(batches(step)["input_ids"].shape[1] - 5) // 3 for step in range(60)}
    assert widths == set(range(1, 11))


def test_a_width_that_is_held_out_whole_is_an_error(monkeypatch):
    recipe = load_recipe("addition-long-10")
    corpus = make_corpus(recipe)
    monkeypatch.setattr(corpus, "is_held_out", lambda problems: np.ones(len(problems), bool))
    with pytest.raises(ValueError, match=r"nearly all problems of \d+ digits are held out; expected a larger"):
        make_batches(recipe, corpus)(0)


def test_orthogonalize_brings_singular_values_near_one():
    for shape in ((3, 32, 32), (2, 64, 16), (2, 16, 64)):
        values = torch.linalg.svdvals(orthogonalize(torch.randn(shape), steps=8))
        assert values.min() > 0.4 and values.max() < 1.4


def test_orthogonalize_is_the_newton_schulz_iteration():
    """Ours against the iteration as it is written down, X -> a X + b (X X') X + c (X X')^2 X."""
    a, b, c = NEWTON_SCHULZ
    for shape in ((3, 32, 32), (2, 64, 16), (2, 16, 64)):
        matrices = torch.randn(shape) * torch.logspace(0, -3, shape[-1])
        expected = matrices / matrices.norm(dim=(-2, -1), keepdim=True)
        for _ in range(3):
            gram = expected @ expected.mT
            expected = a * expected + (b * gram + c * gram @ gram) @ expected
        torch.testing.assert_close(orthogonalize(matrices, steps=3), expected, atol=1e-5, rtol=1e-4)


def test_muon_moves_the_matrices_of_the_layers_and_adamw_the_rest():
    recipe = load_recipe("addition-tiny")
    from headcount.trainers.model_building import make_model

    model = make_model(recipe)
    first, second = OPTIMIZERS["muon"](model, recipe.training)
    assert isinstance(first, Muon)
    own = {id(p) for group in first.param_groups for p in group["params"]}
    rest = {id(p) for group in second.param_groups for p in group["params"]}
    assert not own & rest and len(own | rest) == len(list(model.parameters()))
    assert all(("layers" in name and p.ndim == 2) == (id(p) in own) for name, p in model.named_parameters())


@pytest.mark.parametrize("shared", [[], ["model.num_key_value_heads=2"]])
def test_muon_per_head_treats_every_head_by_itself(shared):
    """The direction of a head's update is that of its part alone, whatever the other heads do."""
    from headcount.trainers.model_building import make_model

    recipe = load_recipe("addition-tiny", ["training.muon_per_head=true", *shared])
    torch.manual_seed(0)
    model = make_model(recipe)
    attention = model.attention_modules()["decoder.0.cross"]
    size = attention.head_dim
    parts = {
        attention.q_proj.weight: lambda matrix: matrix[size : 2 * size],  # of head 1
        attention.k_proj.weight: lambda matrix: matrix[size : 2 * size],  # of head 1, or of heads 2 and 3
        attention.out_proj.weight: lambda matrix: matrix[:, size : 2 * size],
        model.model.encoder.layers[0].feed_forward.up_proj.weight: lambda matrix: matrix,  # knows no heads
    }
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    before = {parameter: parameter.detach().clone() for parameter in parts}
    muon, _ = OPTIMIZERS["muon"](model, recipe.training)
    muon.step()
    for parameter, part in parts.items():
        alone = torch.nn.Parameter(part(before[parameter]).clone())
        alone.grad = part(parameter.grad).clone()
        Muon([alone], lr=recipe.training.muon_learning_rate, momentum=recipe.training.muon_momentum).step()
        size_alone = max(1.0, alone.shape[0] / alone.shape[1]) ** 0.5
        size_here = size_alone if parameter.shape == alone.shape else 1.0
        expected = (alone.detach() - part(before[parameter])) * size_here / size_alone
        torch.testing.assert_close(part(parameter.detach() - before[parameter]), expected, atol=1e-6, rtol=1e-4)
    whole, _ = OPTIMIZERS["muon"](model, replace(recipe.training, muon_per_head=False))
    assert len(whole.param_groups) == 1 and len(muon.param_groups) == 3


def test_cutting_into_blocks_and_joining_them_is_exact():
    matrices = torch.arange(2 * 6 * 8.0).view(2, 6, 8)
    pieces = cut(matrices, (3, 4))
    assert pieces.shape == (8, 3, 4) and torch.equal(pieces[1], matrices[0, :3, 4:])
    assert torch.equal(join(pieces, torch.Size((6, 8))), matrices)


def test_a_run_from_before_an_option_existed_goes_on(tmp_path):
    """Its recipe names fewer options, its optimizer state has no blocks; what counts are the values."""
    recipe = load_recipe("sortedness")
    lines = recipe.to_yaml().splitlines(keepends=True)
    (tmp_path / "recipe.yaml").write_text("".join(line for line in lines if "muon_per_head" not in line))
    prepare_folder(tmp_path, recipe, resume=True, overwrite=False, bytes_needed=1)
    with pytest.raises(ValueError, match="was started with other settings"):
        prepare_folder(tmp_path, recipe.with_seed(1), resume=True, overwrite=False, bytes_needed=1)
    matrix = torch.nn.Parameter(torch.zeros(4, 4))
    optimizer = Muon([matrix], lr=1.0)
    state = optimizer.state_dict()
    del state["param_groups"][0]["block"]
    optimizer.load_state_dict(state)
    matrix.grad = torch.eye(4)
    optimizer.step()
    assert (matrix.diagonal() < -0.5).all()


def test_schedule_rises_and_falls():
    factors = [schedule(step, 100, 0.1, "linear") for step in range(100)]
    assert factors[0] == 0.1 and factors[9] == 1.0 and factors[99] < 0.02 and max(factors) == 1.0
    assert schedule(99, 100, 0.0, "constant") == 1.0 and schedule(55, 100, 0.1, "cosine") == pytest.approx(0.5)
    assert TrainingOptions(steps=3).warmup == 0.1


def test_fresh_addition_of_mixed_lengths_has_one_width_per_batch_and_no_padding():
    recipe = load_recipe("addition-long", ["data.digits=6", "data.test=100", "data.hard=50", "data.test_lengths=[7]"])
    corpus = make_corpus(recipe)
    batches = make_batches(recipe, corpus)
    widths = set()
    for step in range(60):
        batch = batches(step)
        assert "attention_mask" not in batch and torch.equal(batch["input_ids"], batches(step)["input_ids"])
        widths.add((batch["input_ids"].shape[1] - 5) // 3)
    assert widths == set(range(1, 7))


def test_nine_shares_are_the_share_of_columns_that_sum_to_nine():
    for share in (0.0, 1.0):
        settings = ["data.digits=30", "data.min_digits=30", "data.hard=0", "data.test_lengths=[31]"]
        recipe = load_recipe("addition-long", [*settings, f"training.nine_shares=[{share}]"])
        tokens = make_batches(recipe, make_corpus(recipe))(0)["input_ids"]
        sums = (tokens[:, 1:31] - 3) + (tokens[:, 32:62] - 3)
        full = (tokens[:, 1:31] != 3).any(-1) & (tokens[:, 32:62] != 3).any(-1)
        nine = (sums[full][:, -1] == 9).float().mean()  # the units, which a shorter operand keeps
        assert nine < 0.3 if share == 0.0 else nine > 0.9
