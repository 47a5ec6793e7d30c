"""The sweep over all heads of the addition model: headcount's engine against the loops that people write.

python benchmarks/ablation.py                        # 24 heads, 2,000 problems
python benchmarks/ablation.py --problems 500 --rounds 1 --model runs/addition

All ways give the same outcomes, example by example; this is checked. Ratios are measured in one run, in turns. The
loop that generates problem by problem is timed on a sample of the problems and scaled up.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np
import torch

from headcount.analysis.ablation import ablate, one_head_at_a_time
from headcount.data_builders.addition import AdditionCorpus
from headcount.data_builders.addition_options import AdditionOptions
from headcount.trainers.model_building import make_model
from headcount.trainers.recipe import load_recipe
from headcount.trainers.trained_run import load_run
from headcount.trainers.training_data import encode_problems


SAMPLE = 20  # problems for the loop that generates one at a time
BATCH = 500


def engine(model, rows):
    return ablate(model, rows, one_head_at_a_time(model)).right


def closing_hooks(model, head: str | None):
    """A hook on the input of the output projection that closes one head: the usual way to ablate."""
    if head is None:
        return []
    layer, number = head.rsplit(".", 1)
    module = model.attention_modules()[layer]
    place = module.heads.index(int(number)) * module.head_dim

    def close(projection, inputs):
        merged = inputs[0].clone()
        merged[..., place : place + module.head_dim] = 0.0
        return (merged,)

    return [module.out_proj.register_forward_pre_hook(close)]


def loop(model, rows, outcome, batch: int):
    found = []
    for head in [None, *model.list_heads()]:
        hooks = closing_hooks(model, head)
        with torch.inference_mode():
            parts = [outcome(model, {n: v[i : i + batch] for n, v in rows.items()})
                     for i in range(0, len(rows["labels"]), batch)]  # fmt: skip
        for hook in hooks:
            hook.remove()
        found.append(torch.cat(parts).numpy())
    return np.stack(found)


def teacher_forced(model, batch):
    return (model(**batch).logits.argmax(-1) == batch["labels"]).all(-1)


def generated(model, batch, use_cache: bool):
    places = batch["labels"].shape[1]
    written = model.generate(batch["input_ids"], max_new_tokens=places, do_sample=False, use_cache=use_cache)[:, 1:]
    padded = torch.full_like(batch["labels"], model.config.pad_token_id)
    padded[:, : written.shape[1]] = written
    return (padded == batch["labels"]).all(-1)


WAYS = {
    "headcount": engine,
    "teacher-forced loop with hooks": lambda model, rows: loop(model, rows, teacher_forced, BATCH),
    "generation loop without cache": lambda model, rows: loop(model, rows, lambda m, b: generated(m, b, False), BATCH),
    "generation loop with cache": lambda model, rows: loop(model, rows, lambda m, b: generated(m, b, True), BATCH),
}


def one_by_one(model, rows):
    return loop(model, {n: v[:SAMPLE] for n, v in rows.items()}, lambda m, b: generated(m, b, True), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model", type=Path, help="folder of an addition run; default: random weights")
    parser.add_argument("--json", type=Path, help="where to write the rows")
    options = parser.parse_args()
    if options.model:
        model, recipe, corpus = load_run(options.model)
    else:
        recipe = load_recipe("addition")
        torch.manual_seed(0)
        model, corpus = make_model(recipe), AdditionCorpus(AdditionOptions(**recipe.data))
    model.eval()
    rows = encode_problems(corpus.problems("test")[: options.problems], recipe)

    seconds, outcomes = {name: [] for name in WAYS}, {}
    for number in range(options.rounds):
        for name, way in WAYS.items():
            start = time.perf_counter()
            outcomes[name] = way(model, rows)
            seconds[name].append(time.perf_counter() - start)
            print(f"round {number + 1}: {name} {seconds[name][-1]:.2f} s", flush=True)
    start = time.perf_counter()
    sample = one_by_one(model, rows)
    scaled = (time.perf_counter() - start) / SAMPLE * len(rows["labels"])
    seconds[f"generation, problem by problem (from {SAMPLE})"] = [scaled]
    for name, outcome in outcomes.items():
        same = (outcome == outcomes["headcount"]).all()
        print(f"{name}: {'same outcomes' if same else 'OUTCOMES DIFFER'}")
    if not (sample == outcomes["headcount"][:, :SAMPLE]).all():
        print("problem by problem: OUTCOMES DIFFER")

    table = []
    for name, times in seconds.items():
        ratios = [other / own for own, other in zip(seconds["headcount"], times, strict=False)]
        table.append({
            "way": name, "seconds": statistics.median(times), "range": [min(times), max(times)],
            "ratio": statistics.median(ratios), "ratio_range": [min(ratios), max(ratios)],
            "heads": len(model.list_heads()), "problems": len(rows["labels"]), "threads": torch.get_num_threads(),
        })  # fmt: skip
        spread = f"({min(ratios):.2f}-{max(ratios):.2f})"
        print(f"{name:46} {statistics.median(times):8.2f} s {table[-1]['ratio']:7.2f} x the engine's {spread}")
    if options.json:
        options.json.write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
