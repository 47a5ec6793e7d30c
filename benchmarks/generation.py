"""Greedy generation of addition answers (4 digits and the end), batch 1, 64 and 2,000, with cache, random weights.

All write the same number of tokens. The one-pass evaluator answers what evaluation asks of generation, "is the greedy
answer exactly right?", without generating; the same can be had of a peer by hand, and that is shown too.
"""

import torch
from adders import ADDERS, PACKAGES, generate
from timing import absent, compare, take_turns, version

from headcount.trainers.evaluation import split_examples, teacher_forced_tokens
from headcount.trainers.model_building import make_model
from headcount.trainers.recipe import load_recipe
from headcount.trainers.training_data import make_corpus


CALLS = {1: 10, 64: 4, 2000: 1}  # in one turn
OURS, EVALUATOR = "headcount generate()", "headcount one-pass evaluator"


def exactly_right(model, rows: dict) -> torch.Tensor:
    tokens, labels = teacher_forced_tokens(model, rows)
    return (tokens == labels).all(-1)


def measure(seconds: float) -> list[dict]:
    recipe, found = load_recipe("addition"), []
    torch.manual_seed(0)
    model = make_model(recipe).eval()
    peers = {
        name: make().eval()
        for name, make in ADDERS.items()
        if hasattr(make, "write") and (name not in PACKAGES or version(PACKAGES[name]))
    }
    corpus = make_corpus(recipe)
    all_rows = split_examples(recipe, corpus, corpus.problems("test")).rows
    for batch, calls in CALLS.items():
        rows = {name: values[:batch] for name, values in all_rows.items()}
        places, work = rows["labels"].shape[1], f"greedy generation, batch {batch}"

        def repeated(call, times=calls):
            def run() -> None:
                with torch.inference_mode():
                    for _ in range(times):
                        call()

            return run

        ways = {
            OURS: repeated(lambda rows=rows, places=places: generate(model, rows["input_ids"], places)),
            EVALUATOR: repeated(lambda rows=rows: exactly_right(model, rows)),
        }
        for name, peer in peers.items():
            ways[f"{name}, one pass by hand"] = repeated(
                lambda p=peer, rows=rows: (p(**rows)[1].argmax(-1) == rows["labels"]).all(-1)
            )
            ways[f"{name} generate()"] = repeated(lambda p=peer, rows=rows, n=places: p.write(rows["input_ids"], n))
        times = take_turns(ways, seconds / len(CALLS))
        writing = {name: values for name, values in times.items() if "generate()" in name}
        found += compare(work, writing, OURS, calls)
        found += compare(f"is the greedy answer right? batch {batch}", times, EVALUATOR, calls)
        found += [
            absent(work, name, "not installed") for name, package in PACKAGES.items() if version(package) is None
        ]
    return found
