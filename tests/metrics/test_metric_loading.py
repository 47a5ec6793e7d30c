"""Every metric as an `evaluate` module: by path, offline, combined, over processes; and its errors."""

import ast
import doctest
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import evaluate
import pytest
from metric_examples import INPUTS, alike

from headcount import metrics


ROOT = Path(__file__).parents[2]
ALLOWED_IMPORTS = {
    "datasets",
    "evaluate",
    *(f"headcount.metrics.{file}" for file in ("answers", "classes", "confidence")),
}


@pytest.fixture
def load(tmp_path):
    return lambda name, *config: evaluate.load(metrics.path(name), *config, cache_dir=str(tmp_path))


def plain(name, **options):
    return metrics.METRICS[name](**INPUTS[name], **options)


def test_every_folder_is_a_metric_and_every_metric_has_an_example():
    folders = {folder.parent.name for folder in Path(metrics.path("exact_match")).parent.glob("*/__init__.py")}
    assert folders == set(metrics.METRICS) == set(INPUTS)


def test_path_names_the_nearest_metric():
    with pytest.raises(ValueError, match="did you mean 'exact_match'"):
        metrics.path("exact_matches")


@pytest.mark.parametrize("name", metrics.METRICS)
def test_module_and_function_agree(load, name):
    assert alike(load(name).compute(**INPUTS[name]), plain(name))


@pytest.mark.parametrize("name", metrics.METRICS)
def test_examples_can_be_added_one_by_one(load, name):
    metric = load(name)
    for values in zip(*INPUTS[name].values(), strict=True):
        example = dict(zip(INPUTS[name], values, strict=True))
        metric.add(prediction=example.pop("predictions"), reference=example.pop("references"), **example)
    assert alike(metric.compute(), plain(name))


@pytest.mark.parametrize("name", metrics.METRICS)
def test_the_card_is_complete_and_its_example_true(load, name, monkeypatch):
    card = load(name).description
    for heading in ("Inputs", "Outputs", "Example", "Needs", "Limits"):
        assert f"\n{heading}" in card
    monkeypatch.chdir(ROOT)
    names, checked = {}, 0
    for example in doctest.DocTestParser().get_examples(card):
        if example.want:
            value = eval(example.source, names)
            assert alike(value, ast.literal_eval(example.want), tolerance=6e-5), f"{example.source} gives {value}"
            checked += 1
        else:
            exec(example.source, names)
    assert checked


@pytest.mark.parametrize("name", metrics.METRICS)
def test_a_metric_imports_nothing_that_evaluate_could_miss(name):
    tree = ast.parse(Path(metrics.path(name), f"{name}.py").read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert len(node.names) == 1, "evaluate reads `import a, b` as one name"
            assert node.names[0].name in ALLOWED_IMPORTS
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module in {*ALLOWED_IMPORTS, *sys.stdlib_module_names}


def test_configurations_for_token_ids_and_for_text(load):
    result = load("exact_match", "token_ids").compute(predictions=[[1, 2], [3]], references=[[1, 2], [3, 4]])
    assert result["correct"] == 1
    result = load("calibration", "text").compute(predictions=["a", "b"], references=["a", "c"], confidences=[1, 0])
    assert result["expected_calibration_error"] == 0


def test_options_reach_the_module(load):
    answers = {"predictions": ["21"], "references": ["211"]}
    result = load("digit_accuracy").compute(**answers, answer_order="reversed")
    assert result == metrics.compute_digit_accuracy(**answers, answer_order="reversed")
    assert len(load("calibration").compute(**INPUTS["calibration"], n_bins=5)["bins"]) == 5


def test_combine(load):
    names = ["exact_match", "digit_accuracy", "carry_exact_match", "decoding_gap"]
    combined = evaluate.combine([load(name) for name in names])
    combined.add_batch(**INPUTS["carry_exact_match"] | INPUTS["decoding_gap"])
    result = combined.compute()
    assert result["exact_match_exact_match"] == plain("exact_match")["exact_match"]
    assert result["digit_accuracy_interval"] == plain("digit_accuracy")["interval"]
    assert result["by_longest_carry_chain"] == plain("carry_exact_match")["by_longest_carry_chain"]
    assert (result["gap"], result["decoding_gap_n"]) == (plain("decoding_gap")["gap"], 9)


def run_children(tmp_path, num_process, jobs):
    """Results of process 0; the other processes must have none."""
    environment = os.environ | {"HF_HOME": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"}
    jobs_file, results = tmp_path / "jobs.json", [tmp_path / f"{index}.json" for index in range(num_process)]
    jobs_file.write_text(json.dumps(jobs))
    script = Path(__file__).with_name("evaluate_in_child.py")
    children = [
        subprocess.Popen(
            [sys.executable, str(script), str(index), str(num_process), str(jobs_file), str(results[index])],
            cwd=ROOT,
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        for index in range(num_process)
    ]
    for child in children:
        _, errors = child.communicate(timeout=120)
        assert child.returncode == 0, errors
    first, *others = (json.loads(file.read_text()) for file in results)
    assert all(set(other.values()) == {None} for other in others)
    return first


def shards_of(name, *bounds):
    return [{key: values[slice(*ends)] for key, values in INPUTS[name].items()} for ends in bounds]


def test_offline_by_relative_path_without_transformers(tmp_path):
    jobs = [{"name": name, "path": f"metrics/{name}", "shards": [INPUTS[name]]} for name in metrics.METRICS]
    results = run_children(tmp_path, 1, jobs)
    for name in metrics.METRICS:
        assert alike(results[name], plain(name)), name


def test_two_processes_give_the_result_of_one(tmp_path):
    jobs = [
        {"name": name, "path": metrics.path(name), "shards": shards_of(name, (0, 5), (5, None))}
        for name in metrics.METRICS
    ]
    # A process that had no examples takes part all the same.
    jobs.append(jobs[0] | {"name": "one_without_examples", "shards": shards_of("exact_match", (0, None), (0, 0))})
    results = run_children(tmp_path, 2, jobs)
    for name in metrics.METRICS:
        assert alike(results[name], plain(name)), name
    assert results["one_without_examples"] == plain("exact_match")


@pytest.mark.parametrize("name", metrics.METRICS)
def test_no_examples_is_an_error(load, name):
    nothing = {column: [] for column in INPUTS[name]}
    for compute in (metrics.METRICS[name], load(name).compute):
        with pytest.raises(ValueError, match=r"^There are no examples, expected at least one\.$"):
            compute(**nothing)


@pytest.mark.parametrize(("name", "column"), [(name, column) for name in INPUTS for column in INPUTS[name]])
def test_columns_of_different_length_are_an_error(load, name, column):
    uneven = INPUTS[name] | {column: INPUTS[name][column][:-1]}
    with pytest.raises(ValueError, match=r"^There are .* 8 .*expected as many\.$|^There are 8 .* expected as many\.$"):
        metrics.METRICS[name](**uneven)
    with pytest.raises(ValueError, match=r"Mismatch in the number of"):
        load(name).compute(**uneven)


@pytest.mark.parametrize("name", metrics.METRICS)
def test_an_unknown_option_is_an_error(load, name):
    with pytest.raises(ValueError, match=rf"^{name} has .*, got colour\.$"):
        load(name).compute(**INPUTS[name], colour="blue")


@pytest.mark.parametrize("name", ["exact_match", "calibration"])
def test_an_unknown_configuration_is_an_error(load, name):
    with pytest.raises(ValueError, match=rf"^{name} has no configuration 'colour', expected one of"):
        load(name, "colour")


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("digit_accuracy", {"answer_order": "sideways"}, r"answer_order is 'sideways', expected one of"),
        ("digit_accuracy", {"references": ["1 2"] * 9}, r"'1 2' is not a string of the digits 0-9"),
        ("digit_accuracy", {"predictions": ["579"] * 8 + [None]}, r"None is not a string"),
        ("carry_exact_match", {"longest_carry_chain": [0.5] * 9}, r"not whole numbers from 0"),
        ("carry_exact_match", {"longest_carry_chain": [-1] * 9}, r"not whole numbers from 0"),
        ("sortedness_accuracy", {"predictions": [0.9] * 9}, r"predictions have values other than 0"),
        ("sortedness_accuracy", {"references": [2] * 9}, r"references have values other than 0"),
        ("sortedness_accuracy", {"length": [8.5] * 9}, r"length .* not whole numbers"),
        ("sortedness_accuracy", {"kind": ["swap"] * 8 + [None]}, r"kind .* not strings"),
        ("calibration", {"confidences": [1.5] * 9}, r"outside 0 to 1"),
        ("calibration", {"confidences": [float("nan")] * 9}, r"outside 0 to 1"),
        ("calibration", {"n_bins": 0}, r"n_bins is 0, expected a whole number from 1"),
        ("calibration", {"n_bins": 2.5}, r"n_bins is 2.5"),
    ],
)
def test_wrong_values_are_errors_of_one_sentence(load, name, wrong, message):
    for compute in (metrics.METRICS[name], load(name).compute):
        with pytest.raises(ValueError, match=message) as error:
            compute(**INPUTS[name] | wrong)
        assert "\n" not in str(error.value) and str(error.value).endswith(".")


def test_every_module_wraps_the_plain_function():
    for name, function in metrics.METRICS.items():
        module = importlib.import_module(f"headcount.metrics.{name}.{name}")
        assert getattr(module, f"compute_{name}") is function
        assert f"compute_{name}" in metrics.__all__


def test_plain_functions_do_without_evaluate_which_takes_seconds_to_import():
    code = (
        "import sys; from headcount import metrics; metrics.compute_exact_match(['1'], ['1']);"
        "print([name for name in ('evaluate', 'datasets', 'torch', 'transformers') if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert answer.stdout == "[]\n", answer.stderr
