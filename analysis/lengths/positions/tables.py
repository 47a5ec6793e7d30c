"""Position encodings to look at: tables of vectors, their cosine similarities, and scores as functions of distance."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ....configuration.configuration_headcount import HeadcountConfig
from ....data_builders.registry import find_task
from ....modeling.modeling_headcount import HeadcountForSequenceClassification
from ....modeling.position_encodings import POSITION_ENCODINGS, sinusoid
from ....records.rows import Row, Rows, read_rows, row
from ....trainers.model_loading import load_model, read_config


SHOWN = 48  # positions of a table
REACH = 32  # distances on each side
SIZE, HEAD_SIZE = 64, 16


@dataclass(frozen=True)
class Trained:
    """An encoding, the cell that it is from, and for how many positions that was trained."""

    encoding: Any
    source: str
    positions: int | None = None
    head_size: int = HEAD_SIZE


def position_rows(output: Path) -> Rows:
    """Rows for the figures: `table` and `scores`, from trained cells of the study where an encoding has parameters.

    Of several cells with the same encoding the first one by name is shown, and named. An encoding that no cell was
    trained with is shown as it starts, if it has parameters, and the row says so.
    """
    trained = trained_encodings(output / "cells")
    rows = [table_row("sinusoidal", sinusoid(torch.arange(SHOWN)[None], SIZE)[0], "computed", None)]
    for variant, found in trained.items():
        if isinstance(found.encoding, POSITION_ENCODINGS["learned"]):
            rows.append(table_row(variant, learned_table(found.encoding), found.source, found.positions))
    for name, kind in POSITION_ENCODINGS.items():
        same = [each for each in trained.values() if type(each.encoding) is kind and list(each.encoding.parameters())]
        rows += score_rows(name, same[0] if same else untrained_encoding(name))
    return rows


def trained_encodings(cells: Path) -> dict[str, Trained]:
    """Variant -> the encoding of its first finished cell: that of the stack that reads the input."""
    found: dict[str, Trained] = {}
    for path in sorted(cells.glob("*/results/lengths.json")):
        folder, example = path.parent.parent, read_rows(path)[0]
        if example["variant"] not in found:
            config = read_config(folder / "model")
            model: Any = load_model(folder / "model", config.architecture)
            positions = find_task(example["task"]).tokens_at(example["trained"][1], config.architecture)
            encoding = model.model.first_stack.position_encoding.eval()
            found[example["variant"]] = Trained(encoding, folder.name, positions, config.head_dim)
    return found


def untrained_encoding(name: str) -> Trained:
    """An encoding as it starts in a model of the study's size."""
    options = {"max_position_embeddings": SHOWN} if name == "learned" else {}
    config = HeadcountConfig(
        architecture="encoder", vocab_size=8, hidden_size=SIZE, position_embedding_type=name, **options
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = HeadcountForSequenceClassification(config)
    encoding = model.model.encoder.position_encoding.eval()
    return Trained(encoding, "untrained" if list(encoding.parameters()) else "no parameters")


@torch.inference_mode()
def learned_table(encoding: Any) -> Tensor:
    """(positions, features), as far as there are any: a clamped table goes on with its last vector."""
    size = SHOWN if encoding.overflow == "clamp" else min(SHOWN, encoding.table.shape[0])
    return encoding.embed(torch.zeros(1, size, encoding.table.shape[1]), torch.arange(size)[None])[0]


def table_row(name: str, table: Tensor, source: str, trained_up_to: int | None) -> Row:
    unit = torch.nn.functional.normalize(table.float(), dim=-1)
    return row(
        "positions",
        "table",
        name=name,
        source=source,
        trained_up_to=trained_up_to,
        table=table.numpy().round(4).tolist(),
        cosine=(unit @ unit.t()).numpy().round(4).tolist(),
    )


@torch.inference_mode()
def score_rows(name: str, found: Trained) -> Rows:
    """What position adds to the score of a key `distance` ahead, head by head where heads differ.

    Encodings on the embeddings: the cosine of the two vectors, as mean over places; rotary: the score of two equal
    vectors of ones, as a share of its maximum; the others: the bias itself. None: it does nothing.
    """
    encoding, distances = found.encoding, list(range(-REACH, REACH + 1))
    middle = torch.tensor([[2 * REACH]])
    keys = torch.arange(REACH, 3 * REACH + 1)[None]

    def score_row(quantity: str, scores: list[float | None], head: int | None = None) -> Row:
        about: dict[str, Any] = {"encoding": name, "source": found.source, "distance": distances}
        return row("positions", "scores", **about, quantity=quantity, head=head, scores=scores)

    if type(encoding).embed is not POSITION_ENCODINGS["none"].embed:
        places = torch.arange(4 * REACH if name == "sinusoidal" else min(2 * REACH, encoding.table.shape[0]))
        width = SIZE if name == "sinusoidal" else encoding.table.shape[1]
        vectors = encoding.embed(torch.zeros(1, len(places), width), places[None])[0]
        cosine = torch.nn.functional.normalize(vectors, dim=-1)
        cosine = cosine @ cosine.t()
        values = [
            float(cosine.diagonal(distance).mean()) if abs(distance) < len(places) else None for distance in distances
        ]
        return [score_row("cosine of the vectors", values)]
    if name == "rotary":
        ones = torch.ones(1, 1, keys.shape[1], HEAD_SIZE)
        query, key = encoding.rotate(ones[:, :, :1], ones, middle, keys)
        scores = (query @ key.transpose(-2, -1))[0, 0, 0] / ones.shape[-1]
        return [score_row("score of equal vectors", scores.tolist())]
    query = torch.ones(1, encoding.num_heads, 1, found.head_size)
    bias = encoding.bias(query, middle, keys) if encoding.uses_bias() else None
    if bias is None:
        return [score_row("nothing", [0.0] * len(distances))]
    alike = bool((bias == bias[:, :1]).all())
    return [
        score_row(
            "bias",
            [None if value == float("-inf") else round(value, 4) for value in bias[0, head, 0].tolist()],
            None if alike else head,
        )
        for head in range(1 if alike else bias.shape[1])
    ]
