"""Forward and training step of a sortedness-size classifier against torch's own encoder, interleaved, as ratios.

python benchmarks/attention.py
"""

import statistics
import time
from collections.abc import Callable

import torch
from torch import nn

from headcount import HeadcountConfig, HeadcountForSequenceClassification


class TorchClassifier(nn.Module):
    """The same size out of torch's parts: embedding, nn.TransformerEncoder, mean, linear."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(103, 128)
        layer = nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.classifier = nn.Linear(128, 2)

    def forward(self, input_ids):
        return self.classifier(self.encoder(self.embedding(input_ids)).mean(1))


def ours(attention: str, **options) -> nn.Module:
    config = HeadcountConfig(architecture="encoder", vocab_size=103, num_hidden_layers=4, **options)
    model = HeadcountForSequenceClassification(config)
    model.set_attn_implementation(attention)
    return model


def step(model: nn.Module, input_ids: torch.Tensor, train: bool) -> None:
    with torch.set_grad_enabled(train):
        logits = model(input_ids)
        logits = getattr(logits, "logits", logits)
        if train:
            nn.functional.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long)).backward()
            model.zero_grad(set_to_none=True)


def interleaved(candidates: dict[str, Callable[[], None]], rounds: int = 7) -> dict[str, list[float]]:
    """Seconds of every candidate in every round; all candidates run once in each round, after one round of warm-up."""
    seconds = {name: [] for name in candidates}
    for turn in range(rounds + 1):
        for name, work in candidates.items():
            start = time.perf_counter()
            work()
            if turn:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def main() -> None:
    models = {
        "torch nn.TransformerEncoder": TorchClassifier(),
        "headcount sdpa, none": ours("sdpa", position_embedding_type="none"),
        "headcount sdpa, rotary": ours("sdpa", position_embedding_type="rotary"),
        "headcount sdpa, alibi_directional": ours("sdpa", position_embedding_type="alibi_directional"),
        "headcount eager, none": ours("eager", position_embedding_type="none"),
    }
    print(f"{torch.get_num_threads()} threads; median seconds, and torch's median divided by it")
    for train in (False, True):
        for batch, length in ((64, 16), (8, 256), (1, 1024)):
            input_ids = torch.randint(3, 103, (batch, length))
            for model in models.values():
                model.train(train)
            work = {name: lambda m=model, t=train, x=input_ids: step(m, x, t) for name, model in models.items()}
            medians = {name: statistics.median(values) for name, values in interleaved(work).items()}
            reference = medians["torch nn.TransformerEncoder"]
            print(f"\n{'training step' if train else 'forward'}, batch {batch}, length {length}")
            for name, median in medians.items():
                print(f"  {name:34} {median:8.4f} s  {reference / median:5.2f}x")


if __name__ == "__main__":
    main()
