"""What each head of a decoder reads while it writes a place of the answer, at every length; and the biases behind it.

A task says by its relations which keys are useful: for addition, while the digit of a column is written, the two
operand digits of that column (`own column`) and those of the column to the right, whose carry comes in (`right
column`). Beside them stand the token just written (`last digit`) and `<bos>`, a place to look at for nothing. All
weights of a query sum to one; `other` is the rest, which grows when attention is diluted.

Shapes: H heads, Q queries that write a place, T tokens.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...configuration.configuration_headcount import HeadcountConfig
from ...data_builders.corpus import Corpus
from ...data_builders.tasks import Problems, Relation, Task
from ...records.intervals import mean_with_interval
from ...records.rows import Row, Rows, row
from .measure import encode, why_no_room


LONGEST = 1000  # the maps of longer problems do not fit into memory with ease
PROBLEMS = 8
FIRST_TOKEN, OTHER = "<bos>", "other"
ENTROPY = "entropy"


def has_reading(task: Task, config: HeadcountConfig) -> bool:
    return config.architecture == "decoder" and bool(read_relations(task))


def read_relations(task: Task) -> dict[str, Relation]:
    """What a figure calls the keys -> which keys."""
    return {each.reads: each for each in task.relations.values() if each.reads is not None}


def reads_of(task: Task) -> tuple[str, ...]:
    """All that the weights of a query are divided into."""
    return (*read_relations(task), task.last_written, FIRST_TOKEN, OTHER)


def what_heads_read(model: Any, corpus: Corpus, lengths: Iterable[int]) -> Rows:
    """Rows by head and length, means over problems of the task's first class: `weight` on each of `reads_of`, and
    `entropy_share`; and rows `bias`, the bias of each head by difference of ids, where the encoding has such a table.
    """
    model.eval()
    task, options = corpus.task, corpus.options
    plain = next(iter(task.classes))
    rows = bias_rows(model)
    for length in sorted({task.trained_lengths(options)[1], *lengths}):
        if length > LONGEST or why_no_room(model, task, length):
            continue
        count = max(1, min(PROBLEMS, 2 * 200 // length))
        problems = task.test_problems(options, plain, length, count)
        measured = [read_problem(model, corpus, problems[i : i + 1]) for i in range(count)]
        for name in measured[0]:
            for layer in range(model.config.num_hidden_layers):
                for head in range(model.config.num_attention_heads):
                    mean = mean_with_interval([found[name][layer][head] for found in measured])
                    place = {"head": f"decoder.{layer}.self.{head}", "length": length}
                    if name == ENTROPY:
                        rows.append(reading_row("entropy_share", mean, **place))
                    else:
                        rows.append(reading_row("weight", mean, **place, reads=name))
    return rows


def reading_row(metric: str, estimate: dict, **about: Any) -> Row:
    return row("columns", metric, estimate, **about)


@torch.inference_mode()
def read_problem(model: Any, corpus: Corpus, problem: Problems) -> dict[str, list[list[float]]]:
    """What -> [layer][head] for one problem: mean weights of the queries that write a place, and entropy."""
    tokens = encode(model, corpus, problem)["input_ids"]
    maps = model(tokens.to(model.device), output_attentions=True).attentions
    query, keys = useful_keys(corpus.task, tokens.numpy(), corpus.options)
    found: dict[str, list[list[float]]] = {name: [] for name in (*reads_of(corpus.task), ENTROPY)}
    for layer in maps:  # (1, H, T, T)
        for name, weight in divide(layer[0].float().cpu(), query, keys, corpus.task.last_written).items():
            found[name].append(weight.mean(-1).tolist())
    return found


def useful_keys(task: Task, tokens: NDArray[np.int64], options: Any) -> tuple[Tensor, dict[str, Tensor]]:
    """(Q,): the queries that write a place with keys in the first relation; and reads -> (Q, T), its keys.

    The token before one of the answer is the query that writes it, and stands for it.
    """
    roles = task.roles(tokens, "input", options)
    role, index = roles.role[0], roles.index[0]
    query = np.flatnonzero(roles.where("answer")[0]) - 1
    keys = {}
    for reads, relation in read_relations(task).items():
        fits = np.isin(role, [roles.names.index(name) for name in relation.keys])[None].repeat(len(query), 0)
        if relation.offset is not None:
            fits = fits & (index[None] == index[query + 1][:, None] + relation.offset)
        keys[reads] = fits
    has_keys = next(iter(keys.values())).any(-1)
    return torch.from_numpy(query[has_keys]), {name: torch.from_numpy(fits[has_keys]) for name, fits in keys.items()}


def divide(maps: Tensor, query: Tensor, keys: dict[str, Tensor], last_written: str) -> dict[str, Tensor]:
    """(H, T, T) -> for each of `reads_of`, and entropy as a share of log of the visible keys, (H, Q)."""
    rows = maps[:, query]  # (H, Q, T)
    found = {name: (rows * fits).sum(-1) for name, fits in keys.items()}
    found[last_written] = rows[:, torch.arange(len(query)), query]
    found[FIRST_TOKEN] = rows[:, :, 0]
    found[OTHER] = (1 - torch.stack(list(found.values())).sum(0)).clamp(min=0)
    found[ENTROPY] = torch.special.entr(rows).sum(-1) / torch.log(query + 1.0)
    return found


def bias_rows(model: Any) -> Rows:
    """The trained bias of every head by difference of ids; only relative_bias has such a table. Layers share it."""
    config = model.config
    if config.position_embedding_type != "relative_bias":
        return []
    encoding = model.model.decoder.position_encoding
    table = (encoding.scale * encoding.table).detach().float().cpu()  # (differences, H)
    reach = config.relative_position_range
    names = [*range(-reach, reach + 1), *([FIRST_TOKEN] if config.relative_bias_first_token else [])]
    return [
        reading_row("bias", {"value": float(table[number, head])}, head=f"head {head}", difference=difference)
        for head in range(config.num_attention_heads)
        for number, difference in enumerate(names)
    ]
