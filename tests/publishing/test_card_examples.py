"""The programs of a card: really run, and built from what the model says of itself alone."""

import ast
import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from fixed_runs import HEADS, fixed_run

from headcount.data_builders.card_examples import Example, PublishedModel, generic_examples, literal
from headcount.data_builders.registry import TASKS
from headcount.publishing.card_examples import RUNNER, published_model, run_examples
from headcount.trainers.recipe import load_recipe


HOSTILE = 'x"]); import os; os.system("true"); ("'


def test_examples_really_run_and_an_example_that_fails_stops_the_push(tmp_path):
    good = {"use": Example("", 'print("it is", "alice/m")'), "limit": Example("", "1 / 0", may_fail=True)}
    ran = run_examples(good, "alice/m", tmp_path)
    assert ran["use"].output == f"it is {tmp_path}"
    assert ran["limit"].output == "ZeroDivisionError: division by zero"
    with pytest.raises(ValueError, match=r"does not run on .*: ModuleNotFoundError: No module named 'headcount'"):
        run_examples({"use": Example("", "import headcount")}, "alice/m", tmp_path)


def test_a_literal_is_read_back_as_it_was():
    assert literal("alice/m") == '"alice/m"'
    for text in ("it's", HOSTILE, "a\\b\n", "ü"):
        assert ast.literal_eval(literal(text)) == text


def test_words_of_result_files_never_become_code():
    """A head that the model does not have cannot be named, whatever its rows say."""
    run = fixed_run("addition")
    rows = [{**row, "head": HOSTILE, "value": 1.0} for row in run.rows["ablation"]]
    hostile = replace(run, rows={**run.rows, "ablation": [*rows, *run.rows["ablation"]]})
    options = load_recipe("addition").options
    model = published_model(hostile, "alice/m", HEADS, options)
    assert model.head == HEADS[1], "of the model's own heads, the one that is missed most"
    for example in TASKS["addition"].card_examples(model).values():
        assert "os.system" not in example.code and ast.parse(example.code)


@pytest.mark.parametrize("name", TASKS)
def test_every_task_has_programs_and_a_model_without_heads_has_none_for_them(name):
    task = TASKS[name]
    style = {"label": "encoder"}.get(task.kind, "decoder")
    config = {"architecture": style, "answer_order": "plain", "operand_digits": None}
    model = PublishedModel("alice/m", config, task.options(), HEADS[0], 50)
    for examples in (task.card_examples(model), generic_examples(task, model)):
        assert list(examples) == ["use", "heads", "limit"]
        assert all(ast.parse(example.code) for example in examples.values())
    assert list(generic_examples(task, replace(model, head=None))) == ["use", "limit"]


def test_the_process_of_the_examples_ends_with_the_one_that_asked():
    line, held = os.pipe()
    command = [sys.executable, "-c", RUNNER, str(line)]
    process = subprocess.Popen(command, pass_fds=(line,), stdin=subprocess.PIPE, text=True)
    process.stdin.write(json.dumps([{"code": "import time; time.sleep(600)", "may_fail": False}]))
    process.stdin.close()
    os.close(line)
    assert process.poll() is None
    os.close(held)  # as the end of the parent does
    assert process.wait(timeout=60) == 130
