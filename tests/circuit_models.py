"""Small models of which it is known what counts: parts that are silenced add nothing, whatever replaces them."""

import torch
from small_models import make_model


COUNTING = {"decoder.0.self.1", "decoder.0.mlp", "decoder.1.self.2", "decoder.1.mlp"}


def silence(model, sites):
    """These heads and sublayers put out zeros."""
    width = model.config.hidden_size // model.config.num_attention_heads
    with torch.no_grad():
        for site in sites:
            stack, layer, kind, *number = site.split(".")
            own = getattr(model.base_model, stack).layers[int(layer)]
            if kind == "mlp":
                own.feed_forward.down_proj.weight.zero_()
                own.feed_forward.down_proj.bias.zero_()
            else:
                attention = own.self_attn if kind == "self" else own.cross_attn
                start = int(number[0]) * width
                attention.out_proj.weight[:, start : start + width] = 0.0


def counting_model(counting=COUNTING, seed=0, **options):
    """A decoder in which nothing but the counting nodes puts out anything, and these a lot."""
    model = make_model("decoder", seed=seed, **options)
    every = [f"decoder.{layer}.self.{head}" for layer in range(2) for head in range(4)]
    silence(model, [site for site in [*every, "decoder.0.mlp", "decoder.1.mlp"] if site not in counting])
    with torch.no_grad():
        for layer in model.model.decoder.layers:
            layer.self_attn.out_proj.weight.mul_(4.0)
            layer.feed_forward.down_proj.weight.mul_(4.0)
    return model


def solved(model, rows=40, length=9, seed=1):
    """Examples that the model gets right: prompts of three tokens, and what it writes itself after them."""
    generator = torch.Generator().manual_seed(seed)
    prompts = torch.randint(3, 20, (rows, 3), generator=generator)
    new = length - prompts.shape[1]
    ids = model.generate(prompts, max_new_tokens=new, min_new_tokens=new, do_sample=False)
    return {"input_ids": ids, "labels": ids.index_fill(1, torch.arange(3), -100)}
