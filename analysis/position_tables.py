"""Position encodings to look at: tables of vectors, their cosine similarities, and scores as functions of distance."""

import json
from pathlib import Path

import torch
from torch import Tensor

from ..configuration.configuration_headcount import HeadcountConfig
from ..modeling.modeling_headcount import HeadcountForSequenceClassification
from ..modeling.position_encodings import POSITION_ENCODINGS, sinusoid


SHOWN = 48  # positions of a table
REACH = 32  # distances on each side
SIZE = 64


def position_rows(output: Path) -> list[dict]:
    """Rows for the figures: `table` and `scores`, from trained cells of the study where an encoding has parameters.

    Of several cells with the same encoding the first one by name is shown, and named. An encoding that no cell was
    trained with is shown as it starts, if it has parameters, and the row says so.
    """
    trained = trained_encodings(output / "cells")
    rows = [table_row("sinusoidal", sinusoid(torch.arange(SHOWN)[None], SIZE)[0], "computed", None)]
    for variant, (encoding, cell, trained_up_to) in trained.items():
        if isinstance(encoding, POSITION_ENCODINGS["learned"]):
            rows.append(table_row(variant, learned_table(encoding), cell, trained_up_to))
    for name, kind in POSITION_ENCODINGS.items():
        same = [found for found in trained.values() if type(found[0]) is kind and list(found[0].parameters())]
        rows += score_rows(name, *(same[0][:2] if same else untrained_encoding(name)))
    return rows


def trained_encodings(cells: Path) -> dict[str, tuple[torch.nn.Module, str, int]]:
    """Variant -> the encoding of its first finished cell, the cell's name, and its longest training length."""
    found = {}
    for path in sorted(cells.glob("*/results/lengths.json")):
        folder, row = path.parent.parent, json.loads(path.read_text())[0]
        variant = row["variant"]
        if variant not in found:
            model = HeadcountForSequenceClassification.from_pretrained(folder / "model")
            found[variant] = (model.model.encoder.position_encoding.eval(), folder.name, row["trained"][1])
    return found


def untrained_encoding(name: str) -> tuple[torch.nn.Module, str]:
    """An encoding as it starts in a model of the study's size."""
    options = {"max_position_embeddings": SHOWN} if name == "learned" else {}
    config = HeadcountConfig(
        architecture="encoder", vocab_size=8, hidden_size=SIZE, position_embedding_type=name, **options
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = HeadcountForSequenceClassification(config)
    encoding = model.model.encoder.position_encoding.eval()
    return encoding, "untrained" if list(encoding.parameters()) else "no parameters"


@torch.inference_mode()
def learned_table(encoding) -> Tensor:
    """(positions, features), as far as there are any: a clamped table goes on with its last vector."""
    size = SHOWN if encoding.overflow == "clamp" else min(SHOWN, encoding.table.shape[0])
    return encoding.embed(torch.zeros(1, size, encoding.table.shape[1]), torch.arange(size)[None])[0]


def table_row(name: str, table: Tensor, source: str, trained_up_to: int | None) -> dict:
    unit = torch.nn.functional.normalize(table.float(), dim=-1)
    return {
        "metric": "table",
        "name": name,
        "source": source,
        "trained_up_to": trained_up_to,
        "table": table.numpy().round(4).tolist(),
        "cosine": (unit @ unit.t()).numpy().round(4).tolist(),
    }


@torch.inference_mode()
def score_rows(name: str, encoding, source: str) -> list[dict]:
    """What position adds to the score of a key `distance` ahead, head by head where heads differ.

    Encodings on the embeddings: the cosine of the two vectors, as mean over places; rotary: the score of two equal
    vectors of ones, as a share of its maximum; the others: the bias itself. None: it does nothing.
    """
    distances = list(range(-REACH, REACH + 1))
    middle = torch.tensor([[2 * REACH]])
    keys = torch.arange(REACH, 3 * REACH + 1)[None]
    base = {"metric": "scores", "encoding": name, "source": source, "distance": distances}
    if type(encoding).embed is not POSITION_ENCODINGS["none"].embed:
        places = torch.arange(4 * REACH if name == "sinusoidal" else min(2 * REACH, encoding.table.shape[0]))
        width = SIZE if name == "sinusoidal" else encoding.table.shape[1]
        vectors = encoding.embed(torch.zeros(1, len(places), width), places[None])[0]
        cosine = torch.nn.functional.normalize(vectors, dim=-1)
        cosine = cosine @ cosine.t()
        values = [
            float(cosine.diagonal(distance).mean()) if abs(distance) < len(places) else None for distance in distances
        ]
        return [{**base, "quantity": "cosine of the vectors", "head": None, "scores": values}]
    if name == "rotary":
        ones = torch.ones(1, 1, keys.shape[1], SIZE // 4)
        query, key = encoding.rotate(ones[:, :, :1], ones, middle, keys)
        scores = (query @ key.transpose(-2, -1))[0, 0, 0] / ones.shape[-1]
        return [{**base, "quantity": "score of equal vectors", "head": None, "scores": scores.tolist()}]
    query = torch.ones(1, encoding.num_heads, 1, SIZE // encoding.num_heads)
    bias = encoding.bias(query, middle, keys) if encoding.uses_bias() else None
    if bias is None:
        return [{**base, "quantity": "nothing", "head": None, "scores": [0.0] * len(distances)}]
    alike = bool((bias == bias[:, :1]).all())
    return [
        {
            **base,
            "quantity": "bias",
            "head": None if alike else head,
            "scores": [None if value == float("-inf") else round(value, 4) for value in bias[0, head, 0].tolist()],
        }
        for head in range(1 if alike else bias.shape[1])
    ]
