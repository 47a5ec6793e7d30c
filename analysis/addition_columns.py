"""What each head of an addition model reads while it writes a column, at every length; and the biases that make it so.

While the answer digit of a column is written, the useful keys are the two operand digits of that column (`own
column`), those of the column to the right, whose carry comes in (`right column`), and the answer digit just written
(`last digit`). `<bos>` is a place to look at for nothing. All weights of a query sum to one; `other` is the rest,
which grows when attention is diluted.

Shapes: n problems, H heads, Q queries that write a column, T tokens.
"""

from collections.abc import Iterable

import torch
from torch import Tensor

from ..data_builders.addition import AdditionCorpus
from ..data_builders.columns import Problems
from ..data_builders.long_problems import long_problems
from .addition_curve import encoded, no_room
from .statistics import mean_with_interval


LONGEST = 1000  # digits; the maps of longer problems do not fit into memory with ease
PROBLEMS = 8
READS = ("own column", "right column", "last digit", "<bos>", "other")


def column_reading(model, corpus: AdditionCorpus, lengths: Iterable[int]) -> list[dict]:
    """Rows by head and length, means over random problems: `weight` on each of `READS`, and `entropy_share`; and rows
    `bias`, the bias of each head by difference of ids, where the encoding has such a table.
    """
    model.eval()
    rows = bias_rows(model)
    for digits in sorted({corpus.options.digits, *lengths}):
        if digits > LONGEST or no_room(model.config, digits):
            continue
        count = max(1, min(PROBLEMS, 2 * 200 // digits))
        problems = long_problems("random", digits, count, corpus.options.seed)
        measured = [read_columns(model, problems[i : i + 1], corpus.options) for i in range(count)]
        for name in measured[0]:
            for layer in range(model.config.num_hidden_layers):
                for head in range(model.config.num_attention_heads):
                    values = [found[name][layer][head] for found in measured]
                    what = {"metric": "entropy_share"} if name == "entropy" else {"metric": "weight", "reads": name}
                    place = {"head": f"decoder.{layer}.self.{head}", "length": digits}
                    rows.append({**what, **place, **mean_with_interval(values)})
    return rows


@torch.inference_mode()
def read_columns(model, problem: Problems, options) -> dict[str, list[list[float]]]:
    """What -> [layer][head] for one problem: mean weights of the queries that write a column, and entropy."""
    inputs = encoded(problem, options)["input_ids"].to(model.device)
    maps = model(inputs, output_attentions=True).attentions
    found = {name: [] for name in (*READS, "entropy")}
    for layer in maps:  # (1, H, T, T)
        weights = by_column(layer[0].float(), problem.columns, options.answer_order == "reversed")
        for name, weight in weights.items():
            found[name].append(weight.mean(-1).tolist())
    return found


def by_column(maps: Tensor, digits: int, is_reversed: bool) -> dict[str, Tensor]:
    """(H, T, T) -> for each of `READS`, and entropy as a share of log of the visible keys, (H, Q).

    The text is <bos>, the first operand, +, the second, =, the answer; operands are written most significant first.
    """
    equals = 2 * digits + 2
    written = torch.arange(digits)  # columns, 0 = units
    # The token before an answer digit is the query that writes it. A plain answer starts with the topmost carry.
    place = written if is_reversed else digits - written
    query = equals + place
    rows = maps[:, query]  # (H, Q, T)
    number = torch.arange(digits)

    def operands(column: Tensor, there: Tensor) -> Tensor:
        both = rows[:, number, digits - column] + rows[:, number, 2 * digits + 1 - column]
        return both * there

    found = {
        "own column": operands(written, torch.ones(digits)),
        "right column": operands((written - 1).clamp(min=0), written > 0),
        "last digit": rows[:, number, query],
        "<bos>": rows[:, :, 0],
    }
    found["other"] = (1 - sum(found.values())).clamp(min=0)
    found["entropy"] = torch.special.entr(rows).sum(-1) / torch.log(query + 1.0)
    return found


def bias_rows(model) -> list[dict]:
    """The trained bias of every head by difference of ids; only relative_bias has such a table. Layers share it."""
    config = model.config
    if config.position_embedding_type != "relative_bias":
        return []
    encoding = model.model.decoder.position_encoding
    table = (encoding.scale * encoding.table).detach().float().cpu()  # (differences, H)
    reach = config.relative_position_range
    names = [*range(-reach, reach + 1), *(["<bos>"] if config.relative_bias_first_token else [])]
    return [
        {"metric": "bias", "head": f"head {head}", "difference": difference, "value": float(table[number, head])}
        for head in range(config.num_attention_heads)
        for number, difference in enumerate(names)
    ]
