"""Forward and training step (without optimizer) of a sortedness-size classifier, lengths 16 to 4,096, and memory.

Peers have learned positions, and so has the line of ours that they are compared with. The recipe's own encoding,
directional ALiBi, needs a bias of length x length per head, made once and shared by the layers.
"""

import os
import subprocess
import sys
from pathlib import Path

import torch
from timing import compare, take_turns
from torch import nn
from transformers import BertConfig, BertForSequenceClassification

from headcount import HeadcountConfig, HeadcountForSequenceClassification


LENGTHS = {16: 64, 256: 8, 1024: 2, 4096: 1}  # length: batch
LONGEST = max(LENGTHS)
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
    return BertForSequenceClassification(BertConfig(
        vocab_size=103, hidden_size=128, num_hidden_layers=4, num_attention_heads=4, intermediate_size=512,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, max_position_embeddings=LONGEST,
    ))  # fmt: skip


def ours(encoding: str) -> nn.Module:
    return HeadcountForSequenceClassification(HeadcountConfig(
        architecture="encoder", vocab_size=103, num_hidden_layers=4, hidden_size=128, num_attention_heads=4,
        intermediate_size=512, hidden_act="gelu", position_embedding_type=encoding,
        **({"max_position_embeddings": LONGEST} if encoding == "learned" else {}),
    ))  # fmt: skip


MODELS = {
    OURS: lambda: ours("learned"),
    "headcount, rotary": lambda: ours("rotary"),
    "headcount, alibi_directional": lambda: ours("alibi_directional"),
    "torch.nn.TransformerEncoder": TorchClassifier,
    "BERT": bert,
}


def run(model: nn.Module, input_ids: torch.Tensor, train: bool) -> None:
    with torch.set_grad_enabled(train):
        logits = model(input_ids)
        logits = getattr(logits, "logits", logits)
        if train:
            nn.functional.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long)).backward()
            model.zero_grad(set_to_none=True)


def peak_memory(name: str, length: int) -> float:
    """MB that one forward adds to a process at its highest, measured in a process of its own."""
    code = (
        "import resource, sys, torch; sys.path.insert(0, sys.argv[1]); import classifier as c\n"
        "model, peak = c.MODELS[sys.argv[2]]().eval(), lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "c.run(model, torch.randint(3, 103, (1, 16)), False); before = peak()\n"
        "c.run(model, torch.randint(3, 103, (1, int(sys.argv[3]))), False); print((peak() - before) / 1024)"
    )
    command = [sys.executable, "-c", code, str(Path(__file__).parent), name, str(length)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ})
    return float(answer.stdout)


def measure(seconds: float) -> list[dict]:
    torch.manual_seed(0)
    models = {name: make() for name, make in MODELS.items()}
    found, parts = [], 2 * len(LENGTHS) + 2
    for train in (False, True):
        for length, batch in LENGTHS.items():
            input_ids = torch.randint(3, 103, (batch, length))
            for model in models.values():
                model.train(train)
            work = f"classifier {'training' if train else 'forward'}, length {length}"
            ways = {name: lambda m=model, t=train, x=input_ids: run(m, x, t) for name, model in models.items()}
            found += compare(work, take_turns(ways, seconds / parts), OURS, length=length, batch=batch)
    for length in (1024, LONGEST):
        for name in MODELS:
            found.append({"work": f"classifier memory, length {length}", "way": name, "length": length,
                          "value": peak_memory(name, length), "unit": "MB"})  # fmt: skip
    return found
