"""The sweep over all heads of transformers' own models: `headcount.ablate` against the loops that people write.

python benchmarks/stock_ablation.py                           # GPT-2, BERT and T5 of random weights
python benchmarks/stock_ablation.py --models GPT-2 --rounds 1 --batch 16

TransformerLens and nnsight take part, on GPT-2, where they are installed (pip install transformer-lens nnsight). Every
way gives the same outcome for every head, which is checked; processor time is measured in one run, in turns, as a
ratio to one plain pass over the batches in the same round. headcount.ablate also runs the intact model and checks
itself.
"""

import argparse
import copy
import importlib.util
import json
import statistics
import tempfile
import time
from pathlib import Path

import torch
from tokenizers import Tokenizer
from tokenizers import models as tokenizer_models
from transformers import (
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

import headcount
from headcount.modeling.stock.finding import attention_layers


LENGTH, VOCABULARY = 32, 100
SIZE = {"vocab_size": VOCABULARY, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}


def make_model(name: str, layers: int, heads: int, width: int):
    torch.manual_seed(0)
    if name == "GPT-2":
        model = GPT2LMHeadModel(GPT2Config(**SIZE, n_layer=layers, n_head=heads, n_embd=width, n_positions=64))
    elif name == "BERT":
        config = {"num_hidden_layers": layers, "num_attention_heads": heads, "hidden_size": width}
        model = BertForMaskedLM(BertConfig(**SIZE, **config, intermediate_size=4 * width))
    else:
        config = {"num_layers": layers // 2, "num_heads": heads, "d_model": width, "d_kv": width // heads}
        model = T5ForConditionalGeneration(T5Config(**SIZE, **config, d_ff=4 * width, decoder_start_token_id=0))
    return model.eval()


def make_batch(name: str, rows: int, seed: int) -> dict:
    ids = torch.randint(3, VOCABULARY, (rows, LENGTH), generator=torch.Generator().manual_seed(seed))
    return {"input_ids": ids, "decoder_input_ids": ids[:, : LENGTH // 2]} if name == "T5" else {"input_ids": ids}


def logit_sum(outputs, batch):
    return outputs.logits.square().mean((1, 2))


def by_headcount(model, batches, runner=None):
    rows = headcount.ablate(model, batches, metric=logit_sum, runner=runner)
    values = {row["head"]: row["ablated"]["value"] for row in rows}
    return [values[head] for head in headcount.list_heads(model)]


def every_batch(run):
    """The mean over batches of what a loop finds on one."""
    return lambda model, batches: torch.tensor([run(model, batch) for batch in batches]).mean(0).tolist()


def closing(place: int, count: int):
    def close(projection, inputs):
        parts = inputs[0].unflatten(-1, (count, -1)).clone()
        parts[..., place, :] = 0.0
        return (parts.flatten(-2),)

    return close


def by_hooks(model, batch):
    """One pass per head, with a hook on the input of the output projection."""
    found = []
    for layer in attention_layers(model).values():
        module = layer.module
        names = ("c_proj", "o")
        projection = next((getattr(module, name) for name in names if hasattr(module, name)), None)
        if projection is None:
            projection = model.get_submodule(layer.path.rpartition(".")[0]).output.dense
        for place in range(len(layer.heads)):
            hook = projection.register_forward_pre_hook(closing(place, len(layer.heads)))
            found.append(logit_sum(model(**batch), batch).mean().item())
            hook.remove()
    return found


def by_transformer_lens(bridge, batch):
    def close(place):
        def hook(z, hook):
            z[:, :, place] = 0.0
            return z

        return hook

    found = []
    for layer in range(bridge.cfg.n_layers):
        for place in range(bridge.cfg.n_heads):
            hooks = [(f"blocks.{layer}.attn.hook_z", close(place))]
            logits = bridge.run_with_hooks(batch["input_ids"], fwd_hooks=hooks)
            found.append(logits.square().mean((1, 2)).mean().item())
    return found


def by_nnsight(traced, batch, heads: int):
    found = []
    for layer in range(len(traced.transformer.h)):
        for place in range(heads):
            with traced.trace(**batch):
                merged = traced.transformer.h[layer].attn.c_proj.input
                size = merged.shape[-1] // heads
                merged[..., place * size : (place + 1) * size] = 0.0
                logits = traced.output.logits.save()
            found.append(logits.square().mean((1, 2)).mean().item())
    return found


def peers(model) -> dict:
    """TransformerLens and nnsight around copies of a GPT-2, where they are installed."""
    ways = {}
    if importlib.util.find_spec("transformer_lens"):
        from transformer_lens.model_bridge import TransformerBridge

        words = {"[UNK]": 0, "[BOS]": 1, "[EOS]": 2, **{str(i): i for i in range(3, VOCABULARY)}}
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_object=Tokenizer(tokenizer_models.WordLevel(words, unk_token="[UNK]")),
            unk_token="[UNK]",
            bos_token="[BOS]",
            eos_token="[EOS]",
            pad_token="[UNK]",
        )
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            eager = GPT2LMHeadModel.from_pretrained(folder, attn_implementation="eager").eval()
            tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)  # the bridge wants one that knows its folder
            bridge = TransformerBridge.boot_transformers(folder, hf_model=eager, tokenizer=tokenizer)
        ways["TransformerLens, one pass per head"] = every_batch(lambda _, batch: by_transformer_lens(bridge, batch))
    if importlib.util.find_spec("nnsight"):
        from nnsight import NNsight

        traced = NNsight(copy.deepcopy(model))
        ways["nnsight, one pass per head"] = every_batch(lambda m, batch: by_nnsight(traced, batch, m.config.n_head))
    return ways


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="GPT-2,BERT,T5")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--batches", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="where to write the rows")
    options = parser.parse_args()
    table = []
    for name in options.models.split(","):
        model = make_model(name, options.layers, options.heads, options.width)
        batches = [make_batch(name, options.batch, seed) for seed in range(options.batches)]
        ways = {
            "headcount.ablate": by_headcount,
            "the same, loop": lambda model, batches: by_headcount(model, batches, "loop"),
            "hooks, one pass per head": every_batch(by_hooks),
            **(peers(model) if name == "GPT-2" else {}),
        }
        heads = len(headcount.list_heads(model))
        ratios, seconds, wanted = {way: [] for way in ways}, {way: [] for way in ways}, None
        for round_number in range(options.rounds + 1):  # the first one warms up
            with torch.inference_mode():
                start = time.process_time()
                for batch in batches * 3:
                    model(**batch)
                plain = (time.process_time() - start) / 3
            for way, run in ways.items():
                with torch.inference_mode():
                    start = time.process_time()
                    found = torch.tensor(run(model, batches))
                    elapsed = time.process_time() - start
                wanted = found if wanted is None else wanted
                if not torch.allclose(found, wanted, rtol=1e-3):
                    raise SystemExit(f"{name}, {way}: OUTCOMES DIFFER")
                if round_number:
                    ratios[way].append(elapsed / plain)
                    seconds[way].append(elapsed)
        size = f"{heads} heads, {options.batches} batches {options.batch} x {LENGTH}"
        print(f"{name}: {size}; processor time in plain passes, median (range)")
        for way, values in ratios.items():
            figures = {"ratio": statistics.median(values), "ratio_range": [min(values), max(values)]}
            figures |= {"seconds": statistics.median(seconds[way]), "threads": torch.get_num_threads()}
            settings = {"heads": heads, "batch": options.batch, "rounds": options.rounds}
            table.append({"model": name, "way": way, **settings, **figures})
            print(f"  {way:36} {statistics.median(values):6.1f}  ({min(values):.1f}-{max(values):.1f})")
    if options.json:
        options.json.write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
