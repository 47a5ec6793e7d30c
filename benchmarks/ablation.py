"""Switching every head off in turn, over 2,000 addition problems: headcount's engine against the loops people write.

- The addition model, encoder-decoder with 24 heads: the engine, a teacher-forced loop with hooks, one of generations.
- A decoder-only model, 4 layers with 4 heads, which TransformerLens and nnsight can hold too. nnsight and the hooks
  run our model; TransformerLens runs a GPT-2 of the same size, with random weights.

What comes before a head does not change without it, so an exact sweep needs the products of 11.2 whole passes instead
of 25 for the first model, and of 10 instead of 17 for the second: no exact way can be more than 2.2 and 1.7 times as
quick as teacher-forced passes with the same kernels.

All ways on one model give the same outcomes, example by example; it is an error if fewer than 99.9 % agree (float ties
may differ).
"""

import copy
from functools import partial

import numpy as np
import torch
from timing import absent, compare, take_turns, version

from headcount.analysis.interventions.intervention import one_at_a_time
from headcount.analysis.interventions.sweep import sweep
from headcount.data_builders.examples import make_examples
from headcount.data_builders.vocabulary import IGNORED
from headcount.trainers.model_building import make_model
from headcount.trainers.recipe import load_recipe
from headcount.trainers.training_data import make_corpus, style_of


PROBLEMS, BATCH, LEAST_AGREEMENT = 2000, 500, 0.999
OURS = "headcount engine"
LENS_SIZE = ["model.architecture=decoder", "model.num_hidden_layers=4"]


def engine(model, rows):
    return sweep(model, rows, one_at_a_time(model.list_heads())).right


def slot(model, head: str):
    """The attention layer of a head, and where its output stands in the input of the output projection."""
    layer, number = head.rsplit(".", 1)
    module = model.attention_modules()[layer]
    place = module.heads.index(int(number)) * module.head_dim
    return module, slice(place, place + module.head_dim)


def closing_hook(model, head: str):
    module, place = slot(model, head)

    def close(projection, inputs):
        merged = inputs[0].clone()
        merged[..., place] = 0.0
        return (merged,)

    return module.out_proj.register_forward_pre_hook(close)


def batches(rows):
    return [{n: v[i : i + BATCH] for n, v in rows.items()} for i in range(0, len(rows["labels"]), BATCH)]


@torch.inference_mode()
def hooks(model, rows, outcome):
    """(1 + heads, N): a pass over all rows for the intact model and for every head."""
    found = []
    for head in [None, *model.list_heads()]:
        hook = None if head is None else closing_hook(model, head)
        found.append(torch.cat([outcome(model, batch) for batch in batches(rows)]).numpy())
        if hook is not None:
            hook.remove()
    return np.stack(found)


def all_right(logits, labels, is_encoder_decoder: bool):
    if not is_encoder_decoder:
        logits, labels = logits[:, :-1], labels[:, 1:]
    return ((logits.argmax(-1) == labels) | (labels == IGNORED)).all(-1)


def teacher_forced(model, batch):
    return all_right(model(**batch).logits, batch["labels"], model.config.is_encoder_decoder)


def generated(model, batch):
    places = batch["labels"].shape[1]
    written = model.generate(batch["input_ids"], max_new_tokens=places, do_sample=False)[:, 1:]
    padded = torch.full_like(batch["labels"], model.config.pad_token_id)
    padded[:, : written.shape[1]] = written
    return (padded == batch["labels"]).all(-1)


def nnsight_model(model):
    """A copy: nnsight puts itself into every module of the model that it is given."""
    from nnsight import NNsight

    return NNsight(copy.deepcopy(model))


def nnsight_loop(wrapped, model, rows):
    found = []
    for head in [None, *model.list_heads()]:
        parts = []
        for batch in batches(rows):
            with torch.inference_mode(), wrapped.trace(**batch):
                if head is not None:
                    _, layer, _, _ = head.split(".")
                    _, place = slot(model, head)
                    wrapped.model.decoder.layers[int(layer)].self_attn.out_proj.input[..., place] = 0.0
                logits = wrapped.output.logits.save()
            parts.append(all_right(logits, batch["labels"], False))
        found.append(torch.cat(parts).numpy())
    return np.stack(found)


def lens_model(model):
    """GPT-2 of the size of ours, in TransformerLens' bridge."""
    from transformer_lens.model_bridge.sources import build_bridge_from_module
    from transformers import GPT2Config, GPT2LMHeadModel

    own = model.config
    config = GPT2Config(
        vocab_size=own.vocab_size,
        n_positions=16,
        n_embd=own.hidden_size,
        n_layer=own.num_hidden_layers,
        n_head=own.num_attention_heads,
        n_inner=own.intermediate_size,
        activation_function="relu",
        bos_token_id=own.bos_token_id,
        eos_token_id=own.eos_token_id,
    )
    return build_bridge_from_module(GPT2LMHeadModel(config), "GPT2LMHeadModel", hf_config=config).eval()


@torch.inference_mode()
def lens_loop(lens, rows):
    def closing(head: int):
        def close(z, hook):
            z = z.clone()
            z[:, :, head] = 0.0
            return z

        return close

    heads = [(layer, head) for layer in range(lens.cfg.n_layers) for head in range(lens.cfg.n_heads)]
    found = []
    for place in [None, *heads]:
        fwd_hooks = [] if place is None else [(f"blocks.{place[0]}.attn.hook_z", closing(place[1]))]
        logits = [lens.run_with_hooks(batch["input_ids"], fwd_hooks=fwd_hooks) for batch in batches(rows)]
        right = [all_right(part, batch["labels"], False) for part, batch in zip(logits, batches(rows), strict=True)]
        found.append(torch.cat(right).numpy())
    return np.stack(found)


def load(overrides: list[str]):
    """A model with random weights, and rows whose answers are what it writes itself.

    So the intact model is always right, and an ablated one is not: outcomes that agree say something.
    """
    recipe = load_recipe("addition", overrides)
    torch.manual_seed(0)
    model = make_model(recipe).eval()
    model.generation_config.eos_token_id = None  # random weights end anywhere
    problems = make_corpus(recipe).problems("test")[:PROBLEMS]
    rows = make_examples(recipe.the_task, recipe.options, problems, style_of(recipe)).rows
    for _ in range(rows["labels"].shape[1]):  # every pass makes one more place the greedy one
        with torch.inference_mode():
            written = torch.cat([model(**batch).logits.argmax(-1) for batch in batches(rows)])
        if model.config.is_encoder_decoder:
            rows["labels"] = written
        else:
            asked = rows["labels"][:, 1:] != IGNORED
            for name in ("input_ids", "labels"):
                kept = torch.where(asked, written[:, :-1], rows[name][:, 1:])
                rows[name] = torch.cat((rows[name][:, :1], kept), dim=1)
    return model, rows


def run(work: str, ways: dict, rows: dict, own_model: list[str], seconds: float, **facts) -> list[dict]:
    outcomes: dict[str, np.ndarray] = {}

    def keeping(name, way):
        return lambda: outcomes.__setitem__(name, way())

    less = {name: partial(way, {n: v[:BATCH] for n, v in rows.items()}) for name, way in ways.items()}
    times = take_turns({name: keeping(name, partial(way, rows)) for name, way in ways.items()}, seconds, less)
    found = compare(work, times, OURS, problems=PROBLEMS, **facts)
    for row in found:
        if row["way"] in own_model:
            row["same_outcomes"] = float((outcomes[row["way"]] == outcomes[OURS]).mean())
            row["right"] = float(outcomes[OURS].mean())
            if row["same_outcomes"] < LEAST_AGREEMENT:
                raise ValueError(
                    f"{row['way']} agrees with {OURS} on {row['same_outcomes']:.2%} of the outcomes only."
                )
    return found


def measure(seconds: float) -> list[dict]:
    model, rows = load([])
    ways = {
        OURS: partial(engine, model),
        "hooks, teacher-forced": partial(hooks, model, outcome=teacher_forced),
        "hooks, generate() with cache": partial(hooks, model, outcome=generated),
    }
    found = run("ablation of 24 heads, encoder-decoder", ways, rows, list(ways), 0.6 * seconds, heads=24)

    work = "ablation of 16 heads, decoder only"
    single, rows = load(LENS_SIZE)
    ways = {OURS: partial(engine, single), "hooks, teacher-forced": partial(hooks, single, outcome=teacher_forced)}
    own_model = list(ways)
    for name, package in (("TransformerLens", "transformer-lens"), ("nnsight", "nnsight")):
        if version(package) is None:
            found.append(absent(work, name, "not installed"))
    if version("nnsight"):
        ways["nnsight, teacher-forced"] = partial(nnsight_loop, nnsight_model(single), single)
        own_model.append("nnsight, teacher-forced")
    if version("transformer-lens"):
        ways["TransformerLens, teacher-forced"] = partial(lens_loop, lens_model(single))
    return found + run(work, ways, rows, own_model, 0.4 * seconds, heads=16)
