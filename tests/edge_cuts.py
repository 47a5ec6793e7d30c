"""Cuts edges of a model without norms: a reader gets its input without what one node has added to it.

Written by hand for headcount's own models, independently of the wiring from which a construction is made.
"""

from contextlib import ExitStack
from functools import partial

import torch

from headcount.analysis.circuits.constructions.wiring import LOGITS


def contributions(model, inputs) -> dict[str, torch.Tensor]:
    """What every embedding, head and feed-forward sublayer adds to its stream, (B, L, E), in an intact run."""
    found = {}

    def embedded(name, module, arguments):
        found[f"{name}.embed"] = arguments[0]

    def attended(name, attention, module, arguments):
        heads = arguments[0].unflatten(-1, (attention.num_heads, attention.head_dim))
        weight = attention.out_proj.weight.unflatten(1, (attention.num_heads, attention.head_dim))
        for number in range(attention.num_heads):
            found[f"{name}.{number}"] = heads[..., number, :] @ weight[:, number].T

    def fed(name, module, arguments, output):
        found[name] = output - module.down_proj.bias

    with ExitStack() as stack:
        for name, attention in model.attention_modules().items():
            hook = attention.out_proj.register_forward_pre_hook(partial(attended, name, attention))
            stack.callback(hook.remove)
        for name in ("encoder", "decoder"):
            module = getattr(model.model, name, None)
            if module is not None:
                stack.callback(module.layers[0].register_forward_pre_hook(partial(embedded, name)).remove)
                for number, layer in enumerate(module.layers):
                    hook = layer.feed_forward.register_forward_hook(partial(fed, f"{name}.{number}.mlp"))
                    stack.callback(hook.remove)
        with torch.inference_mode():
            model(**inputs)
    return found


def run_without(model, inputs, edges, added) -> torch.Tensor:
    """The logits with all of these edges cut."""

    def less_input(states, module, arguments):
        return (arguments[0] - states, *arguments[1:])

    def less_read(states, rows, module, arguments, output):
        output = output.clone()
        output[..., rows] -= states @ module.weight[rows].T
        return output

    with ExitStack() as stack:
        for writer, reader in edges:
            states = added[writer]
            if reader == LOGITS:
                target = getattr(model, "pooler", None) or model.lm_head
                stack.callback(target.register_forward_pre_hook(partial(less_input, states)).remove)
                continue
            name, layer, kind, *head = reader.split(".")
            if kind == "mlp":
                target = getattr(model.model, name).layers[int(layer)].feed_forward
                stack.callback(target.register_forward_pre_hook(partial(less_input, states)).remove)
                continue
            attention = model.attention_modules()[f"{name}.{layer}.{kind}"]
            rows = slice(int(head[0]) * attention.head_dim, (int(head[0]) + 1) * attention.head_dim)
            from_memory = kind == "cross" and writer.startswith("encoder")
            reads = [] if from_memory else [attention.q_proj]
            reads += [attention.k_proj, attention.v_proj] if kind == "self" or from_memory else []
            for projection in reads:
                stack.callback(projection.register_forward_hook(partial(less_read, states, rows)).remove)
        with torch.inference_mode():
            return model(**inputs).logits
