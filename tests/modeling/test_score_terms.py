"""Attention in blocks of queries: the same results as all at once, with memory that does not grow with the square."""

import subprocess
import sys

import pytest
import torch
from small_models import make_inputs, make_model, serves

from headcount.modeling import score_terms
from headcount.modeling.attention import ATTENTION_FUNCTIONS
from headcount.modeling.normalizers import NORMALIZERS
from headcount.modeling.position_encodings import POSITION_ENCODINGS
from headcount.modeling.score_terms import QueryBlocks


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of two or three queries in the tiny models; gives the sizes of those that were gone through."""
    sizes, through = [], QueryBlocks.__iter__

    def counted(blocks):
        sizes.append(blocks.size)
        return through(blocks)

    monkeypatch.setattr(QueryBlocks, "__iter__", counted)
    monkeypatch.setattr(score_terms, "MOST_CELLS", 3 * 4 * 9 * 2)  # rows, heads, keys, queries
    return sizes


def both_ways(model, inputs, sizes, **options):
    """The logits without blocks, which gradients forbid, and with them."""
    whole = model(**inputs, **options).logits.detach()
    assert not sizes
    with torch.no_grad():
        divided = model(**inputs, **options).logits
    return whole, divided


@pytest.mark.parametrize("normalizer", NORMALIZERS)
@pytest.mark.parametrize("attention", ATTENTION_FUNCTIONS)
@pytest.mark.parametrize("padding", [None, "left"])
@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder", "encoder"])
@pytest.mark.parametrize("encoding", POSITION_ENCODINGS)
def test_blocks_give_the_same_as_all_queries_at_once(
    encoding, architecture, padding, attention, normalizer, small_blocks
):
    if not serves(encoding, architecture):
        pytest.skip("refused at construction; see the config's tests")
    options = {"position_embedding_type": encoding, "attention_normalizer": normalizer}
    model = make_model(architecture, attention=attention, **options)
    inputs = make_inputs(architecture, padding=padding)
    gates = {name: torch.rand(3, layers, 4) for name, layers in model._masks().items()}
    whole, divided = both_ways(model, inputs, small_blocks, **gates)
    torch.testing.assert_close(divided, whole, atol=1e-5, rtol=1e-5)
    # torch's kernel takes no memory for plain attention, and is left alone.
    by_kernel = attention == "sdpa" and NORMALIZERS[normalizer].fused and not POSITION_ENCODINGS[encoding].uses_bias()
    assert bool(small_blocks) != (by_kernel and padding is None)
    assert all(size in (2, 3) for size in small_blocks)


@pytest.mark.parametrize("architecture", ["decoder", "encoder"])
@pytest.mark.parametrize("encoding", ["rotary", "relative_bias", "relative_key"])
def test_windows_pruned_heads_and_masks_of_four_axes_work_in_blocks(encoding, architecture, small_blocks):
    model = make_model(architecture, position_embedding_type=encoding, attention_window=2)
    stack = "decoder" if architecture == "decoder" else "encoder"
    model.prune_heads([f"{stack}.0.self.1"])
    inputs = make_inputs(architecture)
    torch.testing.assert_close(*both_ways(model, inputs, small_blocks), atol=1e-5, rtol=1e-5)
    assert small_blocks
    small_blocks.clear()
    inputs["attention_mask"] = torch.rand(3, 4, 9, 9) < 0.7
    torch.testing.assert_close(*both_ways(model, inputs, small_blocks), atol=1e-5, rtol=1e-5)
    assert small_blocks


LONG_PASS = """
import torch
from headcount import HeadcountConfig, HeadcountForCausalLM

config = HeadcountConfig(architecture="decoder", hidden_size=16, num_hidden_layers=1, num_attention_heads=4,
    intermediate_size=16, position_embedding_type="relative_bias", relative_position_range=6)
model = HeadcountForCausalLM(config).eval()
model.set_attn_implementation("{attention}")

def peak():  # not getrusage, in which the peak of the parent is counted too
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024

tokens = torch.randint(3, 13, (1, {tokens}))
before = peak()
with torch.no_grad():
    past = model(tokens).past_key_values
    assert model(tokens[:, :1], past_key_values=past).logits.isfinite().all()
print(peak() - before)
"""


@pytest.mark.parametrize("attention", ATTENTION_FUNCTIONS)
def test_a_prompt_that_was_too_long_for_4_gb_takes_300_mb(attention):
    """The prompt of two numbers of 4,800 digits: whole, its bias alone would take 1.5 GB."""
    script = LONG_PASS.format(attention=attention, tokens=2 * 4800 + 3)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 300
