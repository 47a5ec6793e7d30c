"""How near the machine's limit, where the time goes, and how cost grows.

- FLOP/s of our training step and forward against one large matrix product of torch on the same threads, in turns.
  Counted are the products of the linear layers, as torch counts them; attention (about 1 % more, which torch cannot
  count on a CPU), optimizer, norms and activations are not.
- The operators of a training step by their share of the operators' time; Python between them is not in it.
- The exponent of cost in layers, heads, batch and length: the slope of log seconds over log size.
"""

import math
import statistics

import torch
from timing import take_turns
from torch import nn
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode
from training import adamw, our_steps

from headcount import HeadcountConfig, HeadcountForSequenceClassification
from headcount.records.memory import keep_freed_memory
from headcount.trainers.model_building import make_model
from headcount.trainers.recipe import load_recipe
from headcount.trainers.training_data import make_batches, make_corpus


SIZE = 2048  # of the matrix product
STEPS = {64: 8, 512: 1}  # of training and forward, in one turn
OPERATORS = 12
GROWTH = {
    "num_hidden_layers": (1, 2, 4, 8),
    "num_attention_heads": (1, 2, 4, 8),
    "batch": (8, 16, 32, 64),
    "length": (64, 128, 256, 512, 1024),
}


def flops(work) -> int:
    counter = FlopCounterMode(display=False)
    with counter:
        work()
    return counter.get_total_flops()


def attained(seconds: float) -> list[dict]:
    left, right = torch.randn(SIZE, SIZE), torch.randn(SIZE, SIZE)
    found = []
    for batch_size, count in STEPS.items():
        recipe = adamw(load_recipe("addition", [f"training.batch_size={batch_size}"]))
        batches = make_batches(recipe, make_corpus(recipe))
        model, batch = make_model(recipe).eval(), batches(0)

        def forward(model=model, batch=batch, count=count) -> None:
            with torch.no_grad():
                for _ in range(count):
                    model(**batch)

        training = our_steps(recipe, batches, count)
        ways = {"matrix product": lambda: left @ right, "training step": training, "forward": forward}
        counted = {name: flops(way) for name, way in ways.items() if name != "matrix product"}
        counted["matrix product"] = 2 * SIZE**3
        times = take_turns(ways, seconds / 2)
        limit = [counted["matrix product"] / value for value in times["matrix product"]]
        for name, values in times.items():
            rates = [counted[name] / value for value in values]
            shares = [rate / most for rate, most in zip(rates, limit, strict=True)]
            found.append(
                {
                    "work": f"FLOP/s, batch {batch_size}",
                    "way": name,
                    "value": statistics.median(rates) / 1e9,
                    "unit": "GFLOP/s",
                    "share_of_matrix_product": statistics.median(shares),
                    "flops": counted[name],
                    "share_range": [min(shares), max(shares)],
                    "rounds": len(values),
                    "raw": values,
                }
            )
    return found


def by_operator() -> list[dict]:
    found = []
    for name in ("Muon", "AdamW"):
        recipe = load_recipe("addition")
        recipe = adamw(recipe) if name == "AdamW" else recipe
        steps = our_steps(recipe, make_batches(recipe, make_corpus(recipe)), 5)
        steps()
        with profile(activities=[ProfilerActivity.CPU]) as profiled:
            steps()
        events = sorted(profiled.key_averages(), key=lambda event: -event.self_cpu_time_total)
        total = sum(event.self_cpu_time_total for event in events)
        for event in events[:OPERATORS]:
            found.append(
                {
                    "work": f"operators of a training step, batch 64, {name}",
                    "way": event.key,
                    "value": 100 * event.self_cpu_time_total / total,
                    "unit": "%",
                }
            )
    return found


def growth(seconds: float) -> list[dict]:
    found = []
    for what, sizes in GROWTH.items():
        ways = {}
        for size in sizes:
            chosen = {"num_hidden_layers": 2, "num_attention_heads": 4, "batch": 8, "length": 64, what: size}
            batch, length = chosen.pop("batch"), chosen.pop("length")
            config = HeadcountConfig(
                architecture="encoder",
                vocab_size=103,
                hidden_size=128,
                intermediate_size=512,
                position_embedding_type="none",
                **chosen,
            )
            model = HeadcountForSequenceClassification(config).train()
            input_ids, labels = torch.randint(3, 103, (batch, length)), torch.zeros(batch, dtype=torch.long)

            def work(model: nn.Module = model, input_ids=input_ids, labels=labels) -> None:
                model(input_ids, labels=labels).loss.backward()
                model.zero_grad(set_to_none=True)

            ways[str(size)] = work
        medians = {name: statistics.median(values) for name, values in take_turns(ways, seconds / len(GROWTH)).items()}
        found.append(
            {
                "work": "growth of cost, forward and backward",
                "way": f"in {what}, {sizes[0]} to {sizes[-1]}",
                "value": slope([math.log(size) for size in sizes], [math.log(value) for value in medians.values()]),
                "unit": "exponent",
                "medians": medians,
            }
        )
    return found


def slope(x: list[float], y: list[float]) -> float:
    return statistics.linear_regression(x, y).slope


def measure(seconds: float) -> list[dict]:
    keep_freed_memory()  # as the command `headcount train` does
    torch.manual_seed(0)
    return [*attained(0.5 * seconds), *by_operator(), *growth(0.4 * seconds)]
