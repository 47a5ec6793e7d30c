"""The model card: every figure is a row of the run's results, and nothing is mentioned that is not there."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from huggingface_hub import ModelCard
from markdown_it import MarkdownIt
from small_runs import LONG_ADDITION, SORTEDNESS, small_run

from headcount.reports.card import CardFacts, model_card
from headcount.reports.card_examples import Example, examples_for, run_examples
from headcount.reports.card_tables import group_name, headline_rows, interval, percent
from headcount.reports.run_record import read_run
from headcount.trainers.recipe import load_recipe
from headcount.trainers.training_data import make_corpus


RUNS = {"addition-tiny": None, "sortedness-tiny": SORTEDNESS, "addition-long": LONG_ADDITION}


@pytest.fixture(scope="module", params=RUNS)
def run(request, tmp_path_factory):
    return read_run(small_run(tmp_path_factory.mktemp("runs") / "run", request.param, RUNS[request.param]))


def facts_of(run, **options) -> CardFacts:
    corpus_options = make_corpus(load_recipe(str(run.folder / "recipe.yaml"))).options
    examples = {
        name: replace(example, output=f"output of {name}") for name, example in examples_for(run, "alice/m").items()
    }
    return CardFacts("alice/m", "0.1.0", "headcount data", vars(corpus_options), examples, **options)


def text_of(run, **options) -> str:
    return model_card(run, facts_of(run, **options)).content


def test_every_rate_stands_in_the_card_with_n_and_interval(run):
    text = text_of(run)
    rates = [row for row in run.rows["evaluation"] if "interval" in row and "longest_chain" not in row]
    assert len(rates) > 8
    for row in rates:
        value = percent(row["value"], 1 if run.task == "sortedness" else 2)
        parts = (value, interval(row), f"{row['n']:,}")
        lines = [line for line in text.splitlines() if all(part in line for part in parts)]
        if "group" in row:
            lines = [line for line in lines if line.startswith(f"| {group_name(row['group'])} |")]
        assert lines, row
    if run.task == "addition":
        assert "exact match, free-running | 95 % interval | tokens right, teacher-forced" in text
    else:
        assert "| one answer for all |" in text and "| 50.0 % |" in text


def test_the_metadata_hold_the_same_figures(run):
    data = ModelCard(text_of(run)).data
    assert data.license == "apache-2.0" and data.library_name == "transformers" and "headcount" in data.tags
    assert data.pipeline_tag == {"addition": "text-generation", "sortedness": "text-classification"}[run.task]
    assert data.datasets is None and data.model_name == "m"
    for result in data.eval_results:
        (row,) = [
            row for row in run.rows["evaluation"]
            if row["metric"] == result.metric_type and row["split"] == result.dataset_split
            and row.get("kind", "default") == result.dataset_config
            and not {"group", "longest_chain", "place"} & row.keys()
        ]  # fmt: skip
        assert result.metric_value == row["value"]
        assert result.metric_args == {"n": row["n"], "interval_95": row["interval"]}
    assert ModelCard(text_of(run, dataset="alice/d")).data.datasets == ["alice/d"]


def test_command_commit_versions_and_hardware_are_those_of_the_run(run):
    text, provenance = text_of(run), run.provenance
    assert provenance["commit"].removesuffix("-dirty") in text and provenance["hardware"]["processor"] in text
    assert all(f"{name} {version}" in text for name, version in provenance["versions"].items())
    assert f"{provenance['seconds']:.1f} s of training" in text


def test_mistakes_of_the_model_are_shown(run):
    text = text_of(run)
    wrong = [row for row in run.rows["evaluation"] if row["metric"] == "wrong_answer"]
    if run.task == "addition":
        assert wrong  # a dozen steps teach nothing
        for row in wrong[:8]:
            assert f"| `{row['input']}` | `{row['target']}` | `{row['generated']}` | {row['split']} |" in text
    else:
        worst = min(run.rows["evaluation"], key=lambda row: row["value"])
        assert f"At length {worst['length']} it misses {round((1 - worst['value']) * worst['n'])} of" in text
        assert "Built in by hand: values are embedded as cumulative sums" in text


def test_heads_and_figures_are_there_only_if_the_run_has_them(run):
    assert "## The heads" not in text_of(run) and "![" not in text_of(run)
    rows = [
        {"head": "encoder.0.self.0", "value": 0.012, "n": 40, "interval": [0.001, 0.023], "class": "important"},
        {"head": "encoder.0.self.1", "value": 0.4, "n": 40, "interval": [0.3, 0.5], "class": "critical"},
    ]
    rows.append({"head": "encoder.0.self.1", "metric": "loss_rise", "value": 9.9, "n": 40, "interval": [9.0, 10.0]})
    figures = [Path(f"figures/{name}.png") for name in ("ablation", "my_own", "maps_example_0_encoder_self")]
    text = text_of(replace(run, rows={**run.rows, "ablation": rows}, figures=figures))
    critical = "| `encoder.0.self.1` | 40.00 points | 30.00 to 50.00 | 40 | critical |"
    assert text.index(critical) < text.index("| `encoder.0.self.0` | 1.20 points | 0.10 to 2.30 | 40 | important |")
    assert "![What is lost when one head is switched off](figures/ablation.png)" in text
    assert "![My own](figures/my_own.png)" in text and "1 more figures, of single problems" in text
    assert "of 2 heads, 1 critical, 1 important" in text and "990.00" not in text
    pruned = text_of(replace(run, config={**run.config, "pruned_heads": {"encoder.0.self": [1]}}))
    assert "gone from the parameters: `encoder.0.self.1`." in pruned


def test_all_seeds_are_shown(run):
    assert f"This is one training run, seed {run.seed}; other seeds were not given" in text_of(run)
    other = replace(run, provenance={**run.provenance, "seed": 7})
    text = text_of(run, other_seeds=(other,))
    for seed in (run.seed, 7):
        for row in headline_rows(run.task, run.rows["evaluation"]):
            where = row.get("label", row["split"])
            assert f"| {seed} | {where} | {row['n']:,} | {percent(row['value'])} | {interval(row)} |" in text


def test_the_card_is_whole_and_well_formed(run):
    text = text_of(run)
    body = text.split("---\n", 2)[2]
    left_over = re.search(r"TODO|More Information|needed\]|\bDIR\b|\{\{ |[^`]\bNone\b|undefined", body)
    assert left_over is None, left_over
    tokens = MarkdownIt().enable("table").parse(body)
    assert sum(token.type == "table_open" for token in tokens) >= 4
    assert not any("| ---" in token.content for token in tokens if token.type == "inline")  # no table that is broken
    titles = [tokens[i + 1].content for i, token in enumerate(tokens) if token.type == "heading_open"]
    wanted = ["m", "Use", "Evaluation", "Seeds", "Training", "Limits", "Licence", "Citation"]
    assert titles == wanted
    assert "\n\n\n" not in body
    for name in ("use", "heads", "limit"):
        assert f"```\noutput of {name}\n```" in text


def test_examples_really_run_and_an_example_that_fails_stops_the_push(tmp_path):
    good = {"use": Example("", 'print("it is", "alice/m")'), "limit": Example("", "1 / 0", may_fail=True)}
    ran = run_examples(good, "alice/m", tmp_path)
    assert ran["use"].output == f"it is {tmp_path}"
    assert ran["limit"].output == "ZeroDivisionError: division by zero"
    with pytest.raises(ValueError, match=r"does not run on .*: ModuleNotFoundError: No module named 'headcount'"):
        run_examples({"use": Example("", "import headcount")}, "alice/m", tmp_path)


def test_broken_runs_are_one_sentence(run, tmp_path):
    with pytest.raises(ValueError, match="is not a folder; expected a run of headcount train"):
        read_run(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"has no recipe.yaml; expected the folder of a finished and evaluated run"):
        read_run(tmp_path)
    broken = json.loads((run.folder / "provenance.json").read_text())
    for name in ("recipe.yaml", "model/config.json", "results/evaluation.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text((run.folder / name).read_text())
    (tmp_path / "provenance.json").write_text(json.dumps(broken)[:-5])
    with pytest.raises(ValueError, match=r"provenance.json cannot be read: the run is broken"):
        read_run(tmp_path)
