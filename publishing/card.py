"""The model card of a run: written from the files of its folder alone, every sentence backed by one of them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
from huggingface_hub import ModelCard, ModelCardData

from ..data_builders.card_examples import Example
from ..records.rows import Rows
from ..records.run_folder import Run
from ..reports.markdown import block, code, inline
from ..reports.study import task_of
from ..reports.wording import percent
from .card_parts import task_parts
from .card_tables import head_table, judged_heads, pruning_table, seed_table, table
from .eval_results import model_index


TEMPLATE = Path(__file__).parent / "templates" / "model_card.md"
TAGS = ("headcount", "algorithmic-reasoning", "interpretability", "attention-heads")

FIGURES = {
    "ablation": "What is lost when one head is switched off",
    "atlas": "What every head is, and the evidence",
    "attention": "Attention maps",
    "specialization": "What the heads attend to",
    "pruning": "Accuracy as heads are pruned",
    "extrapolation": "Accuracy by length",
    "training": "Training",
}


@dataclass(frozen=True)
class CardFacts:
    """What the card needs besides the run: who made the data and how, the examples, and other seeds."""

    repo_id: str
    version: str  # of headcount
    data_command: str  # makes the data of this run
    data_options: Mapping[str, Any]  # all of them, defaults included
    examples: dict[str, Example]
    dataset: str | None = None  # data set on the Hub
    other_seeds: tuple[Run, ...] = ()


def model_card(run: Run, facts: CardFacts) -> ModelCard:
    """The whole card; `card.save(path)` writes it.

    Args:
        run: the run, read whole.
        facts: what the files of the run do not say.
    """
    task, heads = task_of(run), judged_heads(run.rows.get("ablation", []))
    figures = [name for name in run.figures if is_shown(name)]
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined)
    environment.filters["block"] = block
    page = environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        card_data=metadata(run, facts).to_yaml(),
        title=facts.repo_id.split("/")[-1],
        built_in=[f"Built in by hand: {each.sentence}" for each in task.built_in(run.config)],
        examples=facts.examples,
        seeds_text=seeds_text(run, facts),
        seeds=seed_table(task, [run, *facts.other_seeds]),
        head_text=head_text(heads),
        head_rows=head_table(heads) if heads else "",
        pruned=", ".join(
            code(f"{layer}.{head}") for layer, gone in run.config["pruned_heads"].items() for head in gone
        ),
        pruning=pruning_table(run.rows.get("pruning", [])),
        figures=[(f"figures/{quote(name)}.png", inline(caption_of(name))) for name in figures],
        more_figures=len(run.figures) - len(figures),
        data_command=facts.data_command,
        data_table=table(["option", "value"], [[code(k), code(v)] for k, v in facts.data_options.items()]),
        data_text=data_text(run, facts),
        model_text=model_text(run),
        procedure=procedure(run),
        command=block(run.provenance["command"].replace("__main__.py ", "python -m headcount ", 1)),
        provenance=provenance_table(run),
        citation=citation(facts.version, run.provenance["finished_at"][:4]),
        **task_parts(task, run.evaluation, facts.data_options),
    )
    return ModelCard(page.rstrip() + "\n")


def metadata(run: Run, facts: CardFacts) -> ModelCardData:
    task = task_of(run)
    tag = task.texts.pipeline_tag
    return ModelCardData(
        license="apache-2.0",
        library_name="transformers",
        pipeline_tag=tag,
        tags=[*TAGS, run.task, "custom_code"],
        datasets=[facts.dataset] if facts.dataset else None,
        metrics=[task.measure["metric"]],
        model_name=facts.repo_id.split("/")[-1],
        eval_results=model_index(run, tag, facts.data_command, facts.dataset),
    )


def seeds_text(run: Run, facts: CardFacts) -> str:
    if not facts.other_seeds:
        return f"This is one training run, seed {run.seed}; other seeds were not given to this card."
    return (
        f"This repository holds seed {run.seed}. The same recipe was trained with {len(facts.other_seeds)} other "
        f"seed{'s' if len(facts.other_seeds) > 1 else ''}; all that were given to this card are shown."
    )


def head_text(rows: Rows) -> str:
    if not rows:
        return ""
    classes = Counter(row["class"] for row in sorted(rows, key=lambda row: -row["value"]))
    kinds = ", ".join(f"{count} {inline(kind)}" for kind, count in classes.items())
    return (
        f"One head at a time is switched off ({code(rows[0]['mode'])} ablation); of {len(rows)} heads, {kinds}. "
        "That a head can go alone does not say that it can go together with others."
    )


def caption_of(name: str) -> str:
    if name.startswith("maps_average_"):
        return f"Attention maps, average over problems: {name.removeprefix('maps_average_').replace('_', ' ')}"
    return FIGURES.get(name, name.replace("_", " ").capitalize())


def is_shown(name: str) -> bool:
    """Maps of single examples are many; they stay in the folder."""
    return not name.startswith("maps_example_")


def data_text(run: Run, facts: CardFacts) -> str:
    text = "The problems are generated, exactly, from a seed; no test problem is in the training data."
    if run.recipe["training"]["fresh_data"]:
        text += " Training rows are drawn anew for every batch, with the same options as the split `train`."
    if facts.dataset:
        text += f" They are published as [{facts.dataset}](https://huggingface.co/datasets/{facts.dataset})."
    return text + " This command writes the splits again; all options stand below it."


def model_text(run: Run) -> str:
    config, encoding = run.config, run.config["position_embedding_type"]
    layers = f"{config['num_hidden_layers']}"
    if config["architecture"] == "encoder-decoder":
        layers += f" + {config['decoder_layers']}"
    positions = "no position encoding"
    if encoding != "none":
        positions = f"position encoding `{encoding}` with {config['position_scheme']} ids"
    heads, feed_forward = f"{config['num_attention_heads']} heads", f"feed-forward {config['intermediate_size']}"
    if (
        config.get("num_key_value_heads") is not None
    ):  # a run of an earlier version has no such field, nor the next two
        heads += f" on {config['num_key_value_heads']} shared keys and values"
    if config.get("feed_forward_type", "plain") != "plain":
        feed_forward = f"{config['feed_forward_type']} {feed_forward}"
    parts = [f"{layers} layers", heads, f"hidden size {config['hidden_size']}", feed_forward, positions]
    if config.get("norm_type", "layer") != "layer":
        parts.append(f"norm `{config['norm_type']}`")
    if config["architecture"] == "encoder":
        parts += [f"{config['attention_direction']} attention", f"{config['pooling_type']} pooling"]
    if config["attention_normalizer"] != "softmax":
        parts.append(f"attention normalizer `{config['attention_normalizer']}`")
    if config["attention_window"] is not None:
        parts.append(f"attention within {config['attention_window']} tokens")
    return f"Architecture: {config['architecture']}, {', '.join(parts)}."


def procedure(run: Run) -> str:
    training = run.recipe["training"]
    rates = f"learning rate {training['learning_rate']}"
    if training["optimizer"] == "muon":
        by_heads = ", head by head in attention" if training.get("muon_per_head") else ""
        rates = (
            f"learning rate {training['muon_learning_rate']} for matrices{by_heads} and {training['learning_rate']} "
            "for the rest"
        )
    data = "fresh data in every batch" if training["fresh_data"] else "the training split, in random order"
    text = (
        f"Training: {training['optimizer']}, {rates}, betas {tuple(training['betas'])}, weight decay "
        f"{training['weight_decay']}, warm-up over {percent(training['warmup'], 0)} of the steps, then "
        f"{training['decay']} decay; batches of {training['batch_size']}, {data}; {training['precision']}; seed "
        f"{run.seed}."
    )
    for done in run.training[:1]:
        text += f" It took {done['steps']:,} steps; the last loss was {done['value']:.2g}."
    return text


def provenance_table(run: Run) -> str:
    facts = run.provenance
    commit = facts["commit"] or "not from a checkout"
    if commit.endswith("-dirty"):
        commit = f"{commit.removesuffix('-dirty')}, with changes that were not committed"
    hardware = facts["hardware"]
    machine = (
        f"{hardware['processor']} ({hardware['machine']}), threads: {hardware['threads']}, processes: "
        f"{hardware['processes']}, accelerator: {hardware['accelerator'] or 'none'}"
    )
    return table(
        ["what", "value"],
        [
            ["recipe", f"{code(facts['recipe'])}, seed {facts['seed']}"],
            ["commit of headcount", inline(commit)],
            ["versions", inline(", ".join(f"{name} {version}" for name, version in facts["versions"].items()))],
            ["hardware", inline(machine)],
            ["wall-clock", f"{facts['seconds']:.1f} s of training"],
            ["finished", inline(facts["finished_at"])],
        ],
    )


def citation(version: str, year: str | None = None) -> str:
    fields = {
        "title": "{headcount: attention heads that count, and which heads count}",
        "author": "{{The headcount developers}}",
        "version": f"{{{version}}}",
    } | ({"year": f"{{{year}}}"} if year else {})
    return "@software{headcount,\n" + ",\n".join(f"  {name} = {value}" for name, value in fields.items()) + "\n}"
