"""The plain way to intervene: one pass per intervention, with hooks, written without any of headcount's engine.

Works on headcount's own models and on the few transformers models that the tests name.
"""

from contextlib import ExitStack

import torch
from stock_models import output_projection


# Architecture -> path of the module whose output is that of the feed-forward sublayer.
FEED_FORWARD = {
    "BertForMaskedLM": "bert.encoder.layer.{layer}.output.dense",
    "GPT2LMHeadModel": "transformer.h.{layer}.mlp",
    "LlamaForCausalLM": "model.layers.{layer}.mlp",
    "T5ForConditionalGeneration": "{stack}.block.{layer}.layer.-1.DenseReluDense",
}
ATTENTION = {
    "BertForMaskedLM": "bert.encoder.layer.{layer}.attention.self",
    "GPT2LMHeadModel": "transformer.h.{layer}.attn",
    "LlamaForCausalLM": "model.layers.{layer}.self_attn",
    "T5ForConditionalGeneration": "{stack}.block.{layer}.layer.{kind}.Attention",
}

LAYER = {
    "BertForMaskedLM": "bert.encoder.layer.{layer}",
    "GPT2LMHeadModel": "transformer.h.{layer}",
    "LlamaForCausalLM": "model.layers.{layer}",
    "T5ForConditionalGeneration": "{stack}.block.{layer}",
}


def parts(site):
    """Stack, layer, kind, head or None, role or None, index or None; read off the name by hand."""
    place, _, role = site.partition("@")
    stack, layer, kind, *number = place.split(".")
    name, _, index = role.rstrip(")").partition("(")
    return stack, int(layer), kind, int(number[0]) if number else None, name or None, int(index) if index else None


def module_of(model, stack, layer, kind):
    """The module to hook, whether its input (heads) or its output counts, and the heads it has."""
    if hasattr(model, "attention_modules"):
        own = getattr(model.base_model, stack).layers[layer]
        if kind in ("self", "cross"):
            attention = own.self_attn if kind == "self" else own.cross_attn
            return attention.out_proj, list(attention.heads)
        return (own.feed_forward if kind == "mlp" else own), None
    name = type(model).__name__
    if kind == "residual":
        return model.get_submodule(LAYER[name].format(stack=stack, layer=layer)), None
    if kind == "mlp":
        path = FEED_FORWARD[name].format(stack=stack, layer=layer)
        if ".-1." in path:
            path = path.replace("-1", "1" if stack == "encoder" else "2")
        return model.get_submodule(path), None
    path = ATTENTION[name].format(stack=stack, layer=layer, kind=0 if kind == "self" else 1)
    if name.startswith("T5"):
        path = path.replace(".Attention", ".SelfAttention" if kind == "self" else ".EncDecAttention")
    return output_projection(model, path), list(range(4))


def outputs_of(model, inputs, sites):
    """Site -> what it puts out in the intact model: (B, L, D) of a head, (B, L, E) of a sublayer."""
    found = {}
    with ExitStack() as stack:
        for site in sites:
            _hook(model, site, stack, lambda own, site=site: found.setdefault(site, own.clone()))
        with torch.no_grad():
            model(**inputs)
    return found


def intervened(model, inputs, gates, replacement, tokens):
    """Outputs of one pass; for every site its gate, what replaces it, and at which tokens (B, L) if not at all."""
    with ExitStack() as stack:
        for site, gate in gates.items():

            def change(own, site=site, gate=gate):
                changed = gate * own + (1 - gate) * replacement[site]
                where = tokens.get(site)
                return changed if where is None else torch.where(where[..., None], changed, own)

            _hook(model, site, stack, change)
        with torch.no_grad():
            return model(**inputs)


def _hook(model, site, stack, change):
    owner, layer, kind, number, _, _ = parts(site)
    module, heads = module_of(model, owner, layer, kind)
    if heads is None:

        def after(module, inputs, output):
            changed = change(output[0] if isinstance(output, tuple) else output)
            return (changed, *output[1:]) if isinstance(output, tuple) else changed

        stack.callback(module.register_forward_hook(after).remove)
        return
    place = heads.index(number)

    def before(module, inputs):
        merged = inputs[0].unflatten(-1, (len(heads), -1)).clone()
        merged[..., place, :] = change(merged[..., place, :])
        return (merged.flatten(-2),)

    stack.callback(module.register_forward_pre_hook(before).remove)
