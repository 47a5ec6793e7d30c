"""Gates of own and stock models: which values they take, and where they end."""

import asyncio
import contextlib
import copy
import gc
import io
import math
import pickle
import subprocess
import sys

import pytest
import torch
from small_models import make_inputs, make_model
from stock_models import ARCHITECTURES, float_outputs, make_stock

import headcount
from headcount.modeling.heads import check_gates


HEAD = {"encoder-decoder": "decoder.1.cross.0", "BERT": "encoder.0.self.1", "T5": "decoder.1.cross.0"}
WRONG = [math.nan, math.inf, -math.inf, 2.0, -1.0, 1.001]


def subject(name):
    """A model, its inputs and a head."""
    if name == "encoder-decoder":
        return make_model(name), make_inputs(name), HEAD[name]
    return make_stock(name), ARCHITECTURES[name].inputs(3), HEAD[name]


def outputs(model, inputs):
    with torch.no_grad():
        return float_outputs(model(**inputs))[-1] if "labels" not in inputs else model(**inputs).logits


@pytest.mark.parametrize("gate", WRONG)
@pytest.mark.parametrize("name", HEAD)
def test_a_gate_that_is_none_is_an_error_that_names_it(name, gate):
    model, _, head = subject(name)
    heads = headcount.list_heads(model)
    table = torch.ones(len(heads))
    table[heads.index(head)] = gate
    for gates in ({head: gate}, {head: torch.tensor([1.0, gate, 1.0])}, table, table.expand(3, -1)):
        refused = pytest.raises(ValueError, match=f"has the gate {gate:g}; expected numbers from 0")
        with refused, headcount.mask_heads(model, gates):
            raise AssertionError("entered")


@pytest.mark.parametrize("gate", WRONG)
def test_the_mask_arguments_of_own_models_take_gates_from_0_to_1_only(gate):
    for architecture in ("encoder-decoder", "encoder"):
        model, inputs = make_model(architecture), make_inputs(architecture)
        for argument, layers in model._masks().items():
            mask = torch.ones(layers, 4)
            mask[1, 2] = gate
            with pytest.raises(ValueError, match=f"{argument} has the gate {gate:g}; expected numbers from 0"):
                model(**inputs, **{argument: mask})
    model = make_model("encoder-decoder")
    with pytest.raises(ValueError, match="has the gate"):
        model.generate(torch.tensor([[5, 6]]), max_new_tokens=2, decoder_head_mask=torch.full((4,), gate))


@pytest.mark.parametrize("name", HEAD)
def test_other_finite_gates_are_there_for_who_asks(name):
    model, inputs, head = subject(name)
    plain = outputs(model, inputs)
    with headcount.mask_heads(model, {head: 2.0}, allow_any_gate=True):
        double = outputs(model, inputs)
        with headcount.mask_heads(model, {head: 0.5}):
            torch.testing.assert_close(outputs(model, inputs), plain)
    assert (double - plain).abs().max() > 1e-4
    for gate in (math.nan, math.inf, -math.inf):
        refused = pytest.raises(ValueError, match="has the gate")
        with refused, headcount.mask_heads(model, {head: gate}, allow_any_gate=True):
            raise AssertionError("entered")


def test_the_check_leaves_gradients_and_odd_tensors_alone():
    gates = torch.ones(2, 4, requires_grad=True)
    check_gates(gates, "head_mask")
    assert gates.grad is None and gates.grad_fn is None
    for fine in (torch.ones(4).bool(), torch.ones(4, dtype=torch.int64), torch.ones(4).bfloat16(), torch.ones(0)):
        check_gates(fine, "head_mask")
    check_gates(torch.full((4,), 5.0, device="meta"), "head_mask")
    doubled = torch.vmap(lambda mask: (check_gates(mask, "head_mask"), 2 * mask)[1])(torch.ones(3, 4))
    assert torch.equal(doubled, torch.full((3, 4), 2.0))


@pytest.mark.parametrize("make_copy", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
@pytest.mark.parametrize("name", HEAD)
def test_a_copy_made_inside_is_plain_inside_and_for_good(name, make_copy):
    model, inputs, head = subject(name)
    plain = outputs(model, inputs)
    own = model.config._attn_implementation
    with headcount.mask_heads(model, [head]):
        masked = outputs(model, inputs)
        twin = make_copy(model)
        assert torch.equal(outputs(twin, inputs), plain)
        assert torch.equal(outputs(model, inputs), masked)
    assert torch.equal(outputs(twin, inputs), plain) and torch.equal(outputs(model, inputs), plain)
    assert twin.config._attn_implementation == own
    with headcount.mask_heads(model, [head]):
        assert torch.equal(outputs(twin, inputs), plain)
    hooks = [hook for module in twin.modules() for hook in (*module._forward_hooks, *module._forward_pre_hooks)]
    assert not hooks
    with headcount.mask_heads(twin, [head]):
        assert torch.equal(outputs(twin, inputs), masked) and torch.equal(outputs(model, inputs), plain)


def test_a_copy_made_while_maps_are_recorded_has_the_models_own_attention():
    model = make_stock("BERT", "sdpa")
    copies = []
    model.bert.encoder.layer[0].register_forward_hook(lambda *_: copies.append(copy.deepcopy(model.config)))
    headcount.attention_maps(model, ARCHITECTURES["BERT"].inputs(2))
    with headcount.mask_heads(model, ["encoder.0.self.1"]):
        headcount.attention_maps(model, ARCHITECTURES["BERT"].inputs(2))
    assert len(copies) == 2 and {config._attn_implementation for config in copies} == {"sdpa"}
    assert model.config._attn_implementation == "sdpa"


def test_what_is_saved_inside_loads_where_headcount_is_not(tmp_path):
    model, _, head = subject("BERT")
    with headcount.mask_heads(model, [head]):
        model.save_pretrained(tmp_path / "model")
    assert "headcount" not in (tmp_path / "model" / "config.json").read_text()
    program = (
        "import sys; from transformers import AutoModelForMaskedLM\n"
        f"AutoModelForMaskedLM.from_pretrained({str(tmp_path / 'model')!r})\n"
        "assert 'headcount' not in sys.modules"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr


@pytest.mark.parametrize("name", HEAD)
def test_the_mask_of_a_suspended_generator_does_not_hold_outside_of_it(name):
    model, inputs, head = subject(name)
    plain = outputs(model, inputs)
    with headcount.mask_heads(model, [head]):
        masked = outputs(model, inputs)

    def predictions():
        with headcount.mask_heads(model, [head]):
            for _ in range(2):
                yield outputs(model, inputs)

    steps = 0
    for found in predictions():
        assert torch.equal(found, masked) and torch.equal(outputs(model, inputs), plain)
        steps += 1
    assert steps == 2
    left_behind = predictions()
    next(left_behind)
    assert torch.equal(outputs(model, inputs), plain)
    del left_behind
    gc.collect()
    assert torch.equal(outputs(model, inputs), plain)


def test_blocks_that_are_left_in_another_order_take_away_themselves_only():
    model, inputs, head = subject("BERT")
    plain = outputs(model, inputs)

    def generator():
        with headcount.mask_heads(model, ["encoder.1.self.0"]):
            yield

    first = generator()
    next(first)
    with headcount.mask_heads(model, [head]):
        masked = outputs(model, inputs)
        first.close()
        assert torch.equal(outputs(model, inputs), masked) and not torch.equal(masked, plain)
    assert torch.equal(outputs(model, inputs), plain)
    assert model.config._attn_implementation == "sdpa"


def test_a_context_manager_around_a_mask_holds_where_it_is_entered():
    model, inputs, head = subject("BERT")
    with headcount.mask_heads(model, [head]):
        masked = outputs(model, inputs)

    @contextlib.contextmanager
    def without():
        with contextlib.ExitStack() as stack:
            stack.enter_context(headcount.mask_heads(model, [head]))
            yield

    with without():
        assert torch.equal(outputs(model, inputs), masked)

    @headcount.mask_heads(model, [head])
    def decorated():
        return outputs(model, inputs)

    assert torch.equal(decorated(), masked)


def test_where_nobody_can_tell_whether_a_mask_is_meant_to_hold_it_is_an_error():
    """As in a fixture of pytest: whoever began the generator is gone, and it is still suspended."""
    model, inputs, head = subject("BERT")

    def fixture():
        with headcount.mask_heads(model, [head]):
            yield

    def begin():
        generator = fixture()
        next(generator)
        return generator

    generator = begin()
    with pytest.raises(RuntimeError, match=r"entered in the generator .*fixture, which is suspended"):
        outputs(model, inputs)
    generator.close()
    outputs(model, inputs)


def test_a_task_that_goes_on_after_the_block_is_plain():
    model, inputs, head = subject("BERT")
    plain = outputs(model, inputs)

    async def later(left):
        await left.wait()
        return outputs(model, inputs)

    async def main():
        left = asyncio.Event()
        with headcount.mask_heads(model, [head]):
            task = asyncio.create_task(later(left))
            await asyncio.sleep(0)
        left.set()
        return await task

    assert torch.equal(asyncio.run(main()), plain)


def test_torch_save_inside_works():
    model, inputs, head = subject("BERT")
    file = io.BytesIO()
    with headcount.mask_heads(model, [head]):
        torch.save(model, file)
    file.seek(0)
    assert torch.equal(outputs(torch.load(file, weights_only=False), inputs), outputs(model, inputs))
