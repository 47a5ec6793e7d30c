"""Runs whose every word and figure is fixed, and the cards that they must give, in tests/publishing/cards/.

After a change of a card that is meant, `python tests/fixed_runs.py` writes the cards anew; read the diff.
"""

from dataclasses import asdict, replace
from pathlib import Path

import yaml

from headcount.data_builders.card import command_of
from headcount.publishing.card import CardFacts, model_card
from headcount.publishing.card_examples import published_model
from headcount.records.intervals import paired_interval, rate
from headcount.records.rows import Rows, row
from headcount.records.run_folder import Run
from headcount.trainers.model_building import make_config
from headcount.trainers.recipe import load_recipe


CARDS = Path(__file__).parent / "publishing" / "cards"
RECIPES = {  # card -> recipe, and what is changed in it
    "addition": ("addition", []),
    "addition-long": ("addition-long", ["data.test_lengths=[50,1000]"]),
    "sortedness-windowed": ("sortedness-windowed", []),
    "reverse": ("reverse", ["data.test_lengths=[20]"]),
}
PROVENANCE = {
    "command": "__main__.py train RECIPE --output runs/RECIPE",
    "seed": 0,
    "commit": "0123456789012345678901234567890123456789-dirty",
    "versions": {"headcount": "0.2.0", "python": "3.11.2", "torch": "2.13.0"},
    "hardware": {
        "machine": "x86_64",
        "processor": "A Processor",
        "accelerator": None,
        "threads": 1,
        "processes": 1,
    },
    "seconds": 12.34,
    "cpu_seconds": 12.0,
    "finished_at": "2026-01-02T03:04:05Z",
}
HEADS = ("encoder.0.self.0", "encoder.0.self.1")


def fixed_run(name: str) -> Run:
    recipe = load_recipe(*RECIPES[name])
    rows = {"evaluation": EVALUATIONS[name](), "training": training_rows()}
    figures = {}
    if name == "addition":
        rows |= {"ablation": ablation_rows(), "pruning": pruning_rows()}
        figures = {
            name: [Path(f"figures/{name}.png")] for name in ("ablation", "atlas", "maps_example_0_encoder_self")
        }
    words = {"command": PROVENANCE["command"].replace("RECIPE", recipe.name), "recipe": recipe.name}
    config = {**make_config(recipe).to_dict(), "pruned_heads": {"encoder.1.self": [3]} if figures else {}}
    return Run(
        Path(name),
        recipe=yaml.safe_load(recipe.to_yaml()),
        provenance={**PROVENANCE, **words},
        config=config,
        rows=rows,
        figures=figures,
    )


def card_of(name: str) -> str:
    """The whole card; what its programs print is fixed too."""
    run, recipe = fixed_run(name), load_recipe(*RECIPES[name])
    model = published_model(run, f"alice/{name}", HEADS, recipe.options)
    examples = {
        key: replace(example, output=f"what {key} prints")
        for key, example in recipe.the_task.card_examples(model).items()
    }
    other = replace(run, provenance={**run.provenance, "seed": 1})
    facts = CardFacts(
        repo_id=f"alice/{name}",
        version="0.2.0",
        data_command=command_of(recipe.task, recipe.options),
        data_options=asdict(recipe.options),
        examples=examples,
        dataset="alice/data" if name == "addition" else None,
        other_seeds=(other,) if name == "addition" else (),
    )
    return model_card(run, facts).content


def training_rows() -> Rows:
    return [row("training", "loss", {"value": 0.0123}, recipe="r", seed=0, steps=1234, seconds=12.3)]


def answer_rows(task: str, split: str, right: int, n: int, facts: dict[str, dict], places: list[int]) -> Rows:
    about = {"task": task, "split": split, "kind": None, "length": None}
    free = {"decoding": "free-running", **about}
    rows = [row("evaluation", "exact_match", rate(right, n), **free)]
    rows.append(row("evaluation", "token_accuracy", rate(3 * n - 1, 3 * n), decoding="teacher-forced", **about))
    for fact, values in facts.items():
        rows += [
            row("evaluation", "exact_match", rate(*of), scope={fact: value}, **free) for value, of in values.items()
        ]
    rows += [
        row("evaluation", "place_accuracy", rate(k, n), scope={"place": place}, **free)
        for place, k in enumerate(places)
    ]
    return rows


def at_length(task: str, kind: str, length: int, right: int, n: int = 100):
    about = {"task": task, "split": f"test_{length}", "kind": kind, "length": length}
    return row("evaluation", "exact_match", rate(right, n), decoding="free-running", **about)


def addition_rows() -> Rows:
    groups = {"chain_0": (280, 280), "chain_10": (1, 2), "chain_2": (400, 401), "nines": (2, 2)}
    chains = {0: (282, 282), 1: (900, 901)}
    rows = answer_rows("addition", "test", 1998, 2000, {"longest_chain": chains, "group": groups}, [2000, 1999, 1998])
    texts = {"input": "870+624", "target": "1494", "generated": "1594"}
    about = {"task": "addition", "split": "test", "kind": None, "length": None}
    rows.append(row("evaluation", "wrong_answer", {"n": 1}, decoding="free-running", **about, **texts))
    return rows + answer_rows("addition", "hard", 1000, 1000, {"group": {"nines": (125, 125)}}, [1000])


def long_addition_rows() -> Rows:
    rows = answer_rows("addition", "test", 2000, 2000, {"group": {"chain_1": (700, 700)}}, [2000])
    for kind, right in (("random", 100), ("full_chain", 97)):
        rows += [at_length("addition", kind, 50, 100), at_length("addition", kind, 1000, right)]
    return rows


def sortedness_rows() -> Rows:
    rows = []
    for kind, length, right in (("swap", 8, 200), ("swap", 64, 180), ("shuffle", 8, 200), ("shuffle", 64, 100)):
        rates = {"true_positive_rate": 1.0, "true_negative_rate": (right - 100) / 100, "majority_class_rate": 0.5}
        estimate = {**rate(right, 200), **rates, "one_class_only": right == 100}
        about = {"task": "sortedness", "split": f"test_{length}", "kind": kind, "length": length}
        rows.append(row("evaluation", "accuracy", estimate, **about))
    return rows


def reverse_rows() -> Rows:
    facts = {"length": {5: (160, 160), 10: (150, 170)}, "repeats": {"with": (890, 900), "without": (100, 100)}}
    rows = answer_rows("reverse", "test", 990, 1000, facts, [1000, 990])
    return [*rows, at_length("reverse", "random", 20, 3), at_length("reverse", "repeated", 20, 0)]


EVALUATIONS = {
    "addition": addition_rows,
    "addition-long": long_addition_rows,
    "sortedness-windowed": sortedness_rows,
    "reverse": reverse_rows,
}


def ablation_rows() -> Rows:
    rows = []
    for head, lost, name in (
        *zip(HEADS, (24, 800), ("important", "critical"), strict=True),
        ("gone.0.self.9", 900, "x"),
    ):
        estimate = {"value": lost / 2000, "n": 2000, "interval": paired_interval(1998 - lost, lost, 0, 2000)}
        about = {"mode": "zero", "head": head, "class": name, "class_is_certain": True}
        rows.append(row("ablation", "exact_match_drop", estimate, decoding="free-running", **about))
        rows.append(row("ablation", "loss_rise", {"value": 9.9, "n": 2000}, mode="zero", head=head))
        rows.append({**rows[-2], "scope": {"longest_chain": 1}})
    return rows


def pruning_rows() -> Rows:
    about = {"split": "test", "model": "pruned", "removed": 1, "parameters": 900_000, "bytes": 3_600_000}
    return [row("pruning", "exact_match", rate(1990, 2000), decoding="free-running", **about, relative_speed=1.25)]


if __name__ == "__main__":
    for each in RECIPES:
        (CARDS / f"{each}.md").write_text(card_of(each), encoding="utf-8")
