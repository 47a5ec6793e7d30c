"""The head study: every analysis by name, on whatever task."""

import json

import numpy as np
import pytest
from small_models import make_model
from task_examples import carry_pairs, random_addition, sortedness, taught

from headcount.analysis.heads.pruning import outcomes_of
from headcount.analysis.heads.study import ANALYSES, NEEDS, StudyData, analyses_for, choose_shown
from headcount.analysis.interventions.sites import sites
from headcount.data_builders.examples import make_examples
from headcount.data_builders.registry import TASKS
from headcount.records.rows import check_row


def run(model, data):
    done = {}
    for name in analyses_for(model, data):
        done[name] = ANALYSES[name](model, data, **{needed: done[needed] for needed in NEEDS.get(name, ())})
        assert done[name], name
        for row in done[name]:
            check_row(row, name)
        json.dumps(done[name])
    return done


def test_shown_examples_have_failures_and_long_chains():
    model = make_model("encoder-decoder")
    examples = taught(model, random_addition(50))
    examples.rows["labels"][3, 0] += 1
    shown = choose_shown(model, examples, 4)
    assert len(shown) == 4
    right = outcomes_of(model, shown)
    assert not right[0] and right.any()


@pytest.mark.parametrize("style, order", [("encoder-decoder", "plain"), ("decoder", "reversed")])
def test_all_analyses_of_addition_give_rows(style, order):
    size = {"num_hidden_layers": 1, "num_attention_heads": 2}
    model = make_model(style, **size, **({"decoder_layers": 1} if style == "encoder-decoder" else {}))
    examples = random_addition(30, style=style, order=order)
    data = StudyData(examples, examples[np.arange(2)], {"carry": {"minimal": carry_pairs(style, order)}})
    done = run(model, data)
    assert list(done) == [name for name in ANALYSES if name != "fourier"]  # that is of tasks with residues
    assert {row["study"] for row in done["atlas"]} == {"atlas"}
    assert {row["site"] for row in done["atlas"]} == {str(site) for site in sites(model) if site.kind != "residual"}


def test_a_task_without_variables_goes_without_interchange():
    model = make_model("encoder", num_attention_heads=2, vocab_size=103)
    rng = np.random.default_rng(0)
    examples = sortedness([rng.integers(0, 9, length).tolist() for length in [4, 6] * 6])
    done = run(model, StudyData(examples, choose_shown(model, examples, 2)))
    assert list(done) == ["ablation", "sets", "gradient", "specialization", "maps", "toggles", "selection", "subsets"]
    with pytest.raises(ValueError, match="interchange needs pairs in which a variable differs"):
        ANALYSES["interchange"](model, StudyData(examples, examples[:1]))


def test_a_task_that_nobody_knows_by_name_is_studied_like_the_others():
    task = TASKS["reverse"]
    options = task.options(min_length=3, max_length=5)
    problems = task.problems(options, np.random.default_rng(0), 30)
    examples = make_examples(task, options, problems, "encoder-decoder")
    model = make_model(vocab_size=task.vocabulary.size, num_attention_heads=2, num_hidden_layers=1, decoder_layers=1)
    done = run(model, StudyData(examples, choose_shown(model, examples, 2)))
    assert "source" in {row["metric"] for row in done["specialization"]}
    assert {tuple(row["scope"]) for row in done["ablation"]} == {(), ("length",), ("repeats",), ("place",)}
    assert "subsets" in done and "subsets" not in analyses_for(make_model(), StudyData(examples, examples)), "too many"
