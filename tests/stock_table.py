"""The compatibility table of docs/stock-models.md, measured: every architecture is built and its masks are checked.

python tests/stock_table.py        # writes the table into the page
"""

from pathlib import Path

import torch
import transformers
from stock_models import ARCHITECTURES, close_by_hook, float_outputs, make_stock, output_projection

import headcount
from headcount.analysis.interventions.intervention import one_at_a_time
from headcount.analysis.interventions.sweep import sweep
from headcount.modeling.stock.finding import attention_layers


PAGE = Path(__file__).parent.parent / "docs" / "stock-models.md"
BEGIN, END = "<!-- table: python tests/stock_table.py -->\n", "<!-- end of table -->\n"
HEADER = ["architecture", "checked on", "stacks", "attention", "ablation by", "pruning", "remarks"]


def check_masks(model, inputs) -> None:
    """Every attention layer: its last head masked is the same as closed by a hook, and not the same as the intact."""
    with torch.inference_mode():
        plain = float_outputs(model(**inputs))
        for layer in attention_layers(model).values():
            with headcount.mask_heads(model, [f"{layer.name}.{layer.heads[-1]}"]):
                masked = float_outputs(model(**inputs))
            hook = close_by_hook(output_projection(model, layer.path), layer.heads[-1], len(layer.heads))
            hooked = float_outputs(model(**inputs))
            hook.remove()
            assert any((a - b).abs().max() > 1e-4 for a, b in zip(masked, plain, strict=True)), layer.name
            for a, b in zip(masked, hooked, strict=True):
                torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


def can_be_pruned(model, heads: list[str]) -> bool:
    try:
        headcount.prune_heads(model, heads)
    except ValueError:
        return False
    return True


def row(name: str) -> list[str]:
    stock = ARCHITECTURES[name]
    model_class = getattr(transformers, stock.model)
    model, inputs = make_stock(name, "sdpa" if stock.stacks else "eager"), stock.inputs(3)
    try:
        layers = attention_layers(model)
    except ValueError:
        return [name, f"`{stock.model}`", "-", "-", "-", "-", f"**not supported**: {stock.note}"]
    check_masks(model, inputs)
    heads = one_at_a_time(headcount.list_heads(model))
    runner = sweep(model, inputs, heads, lambda outputs, batch: float_outputs(outputs)[0].flatten(1).sum(1)).runner
    attention = ["eager", *(["sdpa"] if model_class._supports_sdpa else [])]
    attention += ["flex"] if model_class._supports_flex_attn else []
    stacks = list(dict.fromkeys(layer.split(".")[0] for layer in layers))
    prunes = can_be_pruned(model, [f"{layer.name}.{layer.heads[-1]}" for layer in layers.values()])
    can = [", ".join(stacks), ", ".join(attention), runner, "yes" if prunes else "-"]
    return [name, f"`{stock.model}`", *can, stock.note]


def table() -> str:
    rows = [HEADER, ["---"] * len(HEADER), *map(row, ARCHITECTURES)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def table_in(page: str) -> str:
    return page.partition(BEGIN)[2].partition(END)[0]


if __name__ == "__main__":
    page = PAGE.read_text()
    PAGE.write_text(page.replace(BEGIN + table_in(page) + END, BEGIN + table() + END))
