"""The model card: every figure is a row of the run's results, and nothing is mentioned that is not there."""

import json
import re
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from huggingface_hub import ModelCard
from markdown_it import MarkdownIt
from small_runs import LONG_ADDITION, REVERSE, SORTEDNESS, small_run

from headcount.publishing.card import CardFacts, model_card, model_text
from headcount.publishing.card_examples import published_model
from headcount.publishing.card_tables import headline_rows
from headcount.records.rows import row as make_row
from headcount.records.rows import select
from headcount.records.run_folder import read_run
from headcount.reports.study import task_of
from headcount.reports.wording import interval, percent
from headcount.trainers.recipe import load_recipe


RUNS = {"addition-tiny": None, "sortedness-tiny": SORTEDNESS, "addition-long": LONG_ADDITION, "reverse": REVERSE}
HEADS = ["encoder.0.self.0", "encoder.0.self.1"]


@pytest.fixture(scope="module", params=RUNS)
def run(request, tmp_path_factory):
    folder = small_run(tmp_path_factory.mktemp("runs") / "run", request.param, RUNS[request.param])
    return read_run(folder, whole=True)


def facts_of(run, **options) -> CardFacts:
    data = load_recipe(str(run.folder / "recipe.yaml")).options
    examples = task_of(run).card_examples(published_model(run, "alice/m", HEADS, data))
    examples = {name: replace(example, output=f"output of {name}") for name, example in examples.items()}
    return CardFacts("alice/m", "0.1.0", "headcount data", asdict(data), examples, **options)


def text_of(run, **options) -> str:
    return model_card(run, facts_of(run, **options)).content


def is_label(run) -> bool:
    return task_of(run).kind == "label"


def test_every_rate_stands_in_the_card_with_n_and_interval(run):
    text, told = text_of(run), {"place", *(task_of(run).texts.main_facts or task_of(run).texts.facts)}
    rates = [row for row in run.evaluation if row["interval"] and set(row["scope"]) <= told]
    assert len(rates) > 8
    for row in rates:
        parts = (percent(row["value"], 1 if is_label(run) else 2), interval(row), f"{row['n']:,}")
        lines = [line for line in text.splitlines() if all(part in line for part in parts)]
        for fact, value in row["scope"].items():
            name = task_of(run).place_name(value) if fact == "place" else task_of(run).fact_name(fact, value)
            lines = [line for line in lines if line.startswith(f"| {name} |")]
        assert lines, row
    if is_label(run):
        assert "| one answer for all |" in text and "| 50.0 % |" in text
    else:
        assert "exact match, free-running | 95 % interval | tokens right, teacher-forced" in text


def test_the_metadata_hold_the_same_figures(run):
    data = ModelCard(text_of(run)).data
    assert data.license == "apache-2.0" and data.library_name == "transformers" and "headcount" in data.tags
    assert data.pipeline_tag == ("text-classification" if is_label(run) else "text-generation")
    assert data.datasets is None and data.model_name == "m"
    for result in data.eval_results:
        config = None if result.dataset_config == "default" else result.dataset_config
        wanted = {"metric": result.metric_type, "split": result.dataset_split, "kind": config}
        (row,) = select(run.evaluation, scope={}, **wanted)
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
    if is_label(run):
        worst = min(run.evaluation, key=lambda row: row["value"])
        assert f"At length {worst['length']} it misses {round((1 - worst['value']) * worst['n'])} of" in text
        assert "Built in by hand: values are embedded as cumulative sums" in text
        return
    wrong = select(run.evaluation, metric="wrong_answer")
    assert wrong  # a dozen steps teach nothing
    for row in wrong[:8]:
        assert f"| `{row['input']}` | `{row['target']}` | `{row['generated']}` | {row['split']} |" in text


def test_heads_and_figures_are_there_only_if_the_run_has_them(run):
    assert "## The heads" not in text_of(run) and "![" not in text_of(run)

    def ablated(head, value, interval, name, scope=None):
        about = {"head": head, "mode": "zero", "class": name, "class_is_certain": True}
        estimate = {"value": value, "n": 40, "interval": interval}
        return make_row("ablation", "exact_match_drop", estimate, scope=scope, **about)

    rows = [
        ablated("encoder.0.self.0", 0.012, [0.001, 0.023], "important"),
        ablated("encoder.0.self.1", 0.4, [0.3, 0.5], "critical"),
        ablated("encoder.0.self.1", 0.77, [0.7, 0.8], "critical", {"longest_chain": 2}),
    ]
    loss = {"value": 9.9, "n": 40, "interval": [9.0, 10.0]}
    rows.append(make_row("ablation", "loss_rise", loss, head="encoder.0.self.1", mode="zero"))
    names = ("ablation", "my_own", "maps_example_0_encoder_self")
    figures = {name: [Path(f"figures/{name}.png"), Path(f"figures/{name}.svg")] for name in names}
    text = text_of(replace(run, rows={**run.rows, "ablation": rows}, figures=figures))
    critical = "| `encoder.0.self.1` | 40.00 points | 30.00 to 50.00 | 40 | critical |"
    assert text.index(critical) < text.index("| `encoder.0.self.0` | 1.20 points | 0.10 to 2.30 | 40 | important |")
    assert "![What is lost when one head is switched off](figures/ablation.png)" in text
    assert "![My own](figures/my_own.png)" in text and "1 more figures, of single examples" in text
    assert "of 2 heads, 1 critical, 1 important" in text and "990.00" not in text and "77.00" not in text
    assert 'head_mask_for(["encoder.0.self.1"])' in text, "the head that is missed most is the example"
    pruned = text_of(replace(run, config={**run.config, "pruned_heads": {"encoder.0.self": [1]}}))
    assert "gone from the parameters: `encoder.0.self.1`." in pruned


def test_all_seeds_are_shown(run):
    assert f"This is one training run, seed {run.seed}; other seeds were not given" in text_of(run)
    other = replace(run, provenance={**run.provenance, "seed": 7})
    text = text_of(run, other_seeds=(other,))
    for seed in (run.seed, 7):
        for words, row in headline_rows(task_of(run), run.evaluation):
            assert f"| {seed} | {words} | {row['n']:,} | {percent(row['value'])} | {interval(row)} |" in text


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


def test_broken_runs_are_one_sentence(run, tmp_path):
    with pytest.raises(ValueError, match="is not a folder; expected a run of headcount train"):
        read_run(tmp_path / "nowhere", whole=True)
    with pytest.raises(ValueError, match=r"has no recipe.yaml; expected the folder of a finished and evaluated run"):
        read_run(tmp_path, whole=True)
    broken = json.loads((run.folder / "provenance.json").read_text())
    for name in ("recipe.yaml", "model/config.json", "results/evaluation.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text((run.folder / name).read_text())
    (tmp_path / "provenance.json").write_text(json.dumps(broken)[:-5])
    with pytest.raises(ValueError, match=r"provenance.json is not JSON"):
        read_run(tmp_path, whole=True)


def test_the_card_names_layers_that_are_not_the_default_and_reads_runs_that_knew_no_other(tmp_path):
    run = read_run(small_run(tmp_path / "run"), whole=True)
    layers = {"num_key_value_heads": 2, "feed_forward_type": "gated", "norm_type": "rms"}
    changed = model_text(replace(run, config={**run.config, **layers}))
    assert "4 heads on 2 shared keys and values, " in changed and "gated feed-forward 256, " in changed
    assert "norm `rms`" in changed
    earlier = {name: value for name, value in run.config.items() if name not in layers}
    assert model_text(replace(run, config=earlier)) == model_text(run) != changed
