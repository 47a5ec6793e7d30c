"""Forward and training step (without optimizer) of a sortedness-size classifier, lengths 16 to 4,096, and memory.

Peers have learned positions, and so has the line of ours that they are compared with. The recipe's own encoding,
directional ALiBi, needs a bias of length x length per head, made once and shared by the layers. torch's encoder takes
its own fast path where there are no gradients, which is its default. Memory is what one forward of one sequence adds
to a process at its highest.
"""

import subprocess
import sys
from functools import partial
from pathlib import Path

import torch
from timing import absent, compare, take_turns
from torch import nn
from transformers import BertConfig, BertForSequenceClassification

from headcount import HeadcountConfig, HeadcountForSequenceClassification


LONGEST = 4096
LENGTHS = {16: 64, 256: 8, 1024: 2, 4096: 1}  # length: batch
CALLS = {16: 10, 256: 4, 1024: 2, 4096: 1}  # in one turn
MEMORY_LENGTHS = (1024, LONGEST)
OURS = "headcount, learned"


class TorchClassifier(nn.Module):
    """The same size out of torch's parts: tables, nn.TransformerEncoder, mean, linear."""

    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(103, 128), nn.Embedding(LONGEST, 128)
        layer = nn.TransformerEncoderLayer(
            128, 4, 512, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.classifier = nn.Linear(128, 2)

    def forward(self, input_ids):
        states = self.encoder(self.tokens(input_ids) + self.positions.weight[: input_ids.shape[1]])
        return self.classifier(states.mean(1))


def bert() -> nn.Module:
    return BertForSequenceClassification(
        BertConfig(
            vocab_size=103,
            hidden_size=128,
            num_hidden_layers=4,
            num_attention_heads=4,
            intermediate_size=512,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            max_position_embeddings=LONGEST,
        )
    )


def ours(encoding: str) -> nn.Module:
    return HeadcountForSequenceClassification(
        HeadcountConfig(
            architecture="encoder",
            vocab_size=103,
            num_hidden_layers=4,
            hidden_size=128,
            num_attention_heads=4,
            intermediate_size=512,
            hidden_act="gelu",
            position_embedding_type=encoding,
            **({"max_position_embeddings": LONGEST} if encoding == "learned" else {}),
        )
    )


MODELS = {
    OURS: lambda: ours("learned"),
    "headcount, rotary": lambda: ours("rotary"),
    "headcount, alibi_directional": lambda: ours("alibi_directional"),
    "torch.nn.TransformerEncoder": TorchClassifier,
    "BERT": bert,
}


def run(model: nn.Module, input_ids: torch.Tensor, train: bool, calls: int = 1) -> None:
    with torch.set_grad_enabled(train):
        for _ in range(calls):
            logits = model(input_ids)
            logits = getattr(logits, "logits", logits)
            if train:
                nn.functional.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long)).backward()
                model.zero_grad(set_to_none=True)


def peak_memory(name: str) -> list[float]:
    """MB that a forward adds at its highest, by length, measured in a process of its own."""
    command = [sys.executable, __file__, name]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    return [float(value) for value in answer.stdout.split()]


def print_peaks(name: str) -> None:
    """The kernel's own high-water mark, set back before every length; that of a parent is not in it."""
    model = MODELS[name]().eval()
    run(model, torch.randint(3, 103, (1, 16)), False)
    for length in MEMORY_LENGTHS:
        Path("/proc/self/clear_refs").write_text("5")
        before = high_water_mark()
        run(model, torch.randint(3, 103, (1, length)), False)
        print((high_water_mark() - before) / 1024)


def high_water_mark() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def measure(seconds: float) -> list[dict]:
    torch.manual_seed(0)
    models = {name: make() for name, make in MODELS.items()}
    found, parts = [], 2 * len(LENGTHS) + 2
    for train in (False, True):
        for length, batch in LENGTHS.items():
            input_ids, calls = torch.randint(3, 103, (batch, length)), CALLS[length]
            for model in models.values():
                model.train(train)
            work = f"classifier {'training' if train else 'forward'}, length {length}"
            ways = {name: partial(run, model, input_ids, train, calls) for name, model in models.items()}
            warm_up = {name: partial(run, model, input_ids, train) for name, model in models.items()}
            times = take_turns(ways, seconds / parts, warm_up)
            found += compare(work, times, OURS, calls, length=length, batch=batch)
    if not Path("/proc/self/clear_refs").exists():
        return [*found, absent("classifier memory", OURS, "there is no /proc here to read it from")]
    for name in MODELS:
        for length, value in zip(MEMORY_LENGTHS, peak_memory(name), strict=True):
            work = f"classifier memory, length {length}"
            found.append({"work": work, "way": name, "length": length, "value": value, "unit": "MB"})
    return found


if __name__ == "__main__":
    print_peaks(sys.argv[1])
