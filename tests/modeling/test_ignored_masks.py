"""A head mask that a transformers model would swallow is told; everything else is as without the check."""

import copy
import pickle
import subprocess
import sys
import warnings

import pytest
import torch
from small_models import make_inputs, make_model
from stock_models import ARCHITECTURES, make_stock
from transformers import BertModel, PreTrainedModel

import headcount
from headcount.modeling.stock import ignored_masks
from headcount.modeling.stock.ignored_masks import IgnoredHeadMaskWarning


@pytest.fixture(autouse=True)
def warned_again():
    yield
    headcount.warn_on_ignored_head_mask("warn")


def said_by(model, inputs, **masks):
    with warnings.catch_warnings(record=True) as caught, torch.no_grad():
        warnings.simplefilter("always")
        model(**inputs, **masks)
    return [str(each.message) for each in caught if each.category is IgnoredHeadMaskWarning]


@pytest.mark.parametrize("name", ["BERT", "GPT-2", "Llama", "T5"])
def test_a_swallowed_mask_warns_once_and_can_be_an_error_or_pass(name):
    model, inputs = make_stock(name), ARCHITECTURES[name].inputs(2)
    mask = "cross_attn_head_mask" if name == "T5" else "head_mask"
    expected = (
        f"{type(model).__name__} ignores {mask}; expected `with headcount.mask_heads(model, heads):` around the call."
    )
    assert said_by(model, inputs, **{mask: torch.zeros(4)}) == [expected], "once, though the model calls another"
    assert said_by(model, inputs, **{mask: None}) == said_by(model, inputs) == []
    headcount.warn_on_ignored_head_mask("error")
    with pytest.raises(TypeError) as error:
        model(**inputs, **{mask: torch.zeros(4)})
    assert str(error.value) == expected
    model(**inputs)
    headcount.warn_on_ignored_head_mask("off")
    assert said_by(model, inputs, **{mask: torch.zeros(4)}) == [] and "__call__" not in vars(PreTrainedModel)


def test_the_warning_points_at_the_call_and_the_masks_that_are_named_together():
    with pytest.warns(IgnoredHeadMaskWarning, match="ignores head_mask and decoder_head_mask;") as caught:
        inputs = ARCHITECTURES["T5"].inputs(1)
        make_stock("T5")(**inputs, head_mask=torch.zeros(4), decoder_head_mask=torch.zeros(4))
    assert caught[0].filename == __file__


def test_masks_that_are_honoured_are_left_alone():
    for architecture in ("encoder", "decoder", "encoder-decoder"):
        model, inputs = make_model(architecture), make_inputs(architecture)
        name = "decoder_head_mask" if architecture == "decoder" else "head_mask"
        name = name if name in ignored_masks._arguments(type(model)) else "head_mask"
        assert said_by(model, inputs, **{name: torch.ones(model.config.num_attention_heads)}) == []


class Named(BertModel):
    def forward(self, input_ids=None, attention_mask=None, head_mask=None, **kwargs):
        return super().forward(input_ids, attention_mask, **kwargs)


class Outer(BertModel):
    """Hands everything on to a part that names the mask."""

    def __init__(self, config):
        super().__init__(config)
        self.part = Named(config)

    def forward(self, input_ids=None, attention_mask=None, **kwargs):
        return self.part(input_ids, attention_mask, **kwargs)


@pytest.mark.parametrize("kind", [Named, Outer])
def test_a_model_that_names_the_mask_anywhere_is_left_alone(kind):
    model = kind(make_stock("BERT").config).eval()
    assert said_by(model, ARCHITECTURES["BERT"].inputs(2), head_mask=torch.zeros(4)) == []


def test_it_is_put_in_place_once_and_keeps_what_was_there(monkeypatch):
    there = vars(PreTrainedModel)["__call__"]
    headcount.warn_on_ignored_head_mask("warn")
    ignored_masks.install()
    assert vars(PreTrainedModel)["__call__"] is there
    headcount.warn_on_ignored_head_mask("off")
    calls = []

    def of_another(self, *arguments, **options):
        calls.append(type(self).__name__)
        return torch.nn.Module.__call__(self, *arguments, **options)

    PreTrainedModel.__call__ = of_another
    try:
        headcount.warn_on_ignored_head_mask("warn")
        model, inputs = make_stock("BERT"), ARCHITECTURES["BERT"].inputs(2)
        assert said_by(model, inputs, head_mask=torch.zeros(4)) and calls == ["BertForMaskedLM", "BertModel"]
        headcount.warn_on_ignored_head_mask("off")
        assert vars(PreTrainedModel)["__call__"] is of_another
    finally:
        del PreTrainedModel.__call__
    with pytest.raises(ValueError, match="action='loud' is not known; expected one of warn, error, off"):
        headcount.warn_on_ignored_head_mask("loud")


def test_copies_pickles_hooks_and_outputs_are_as_without_it():
    model, inputs = make_stock("GPT-2"), ARCHITECTURES["GPT-2"].inputs(2)
    with torch.no_grad():
        logits = model(**inputs).logits
        for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert torch.equal(twin(**inputs).logits, logits)
            assert said_by(twin, inputs, head_mask=torch.zeros(4))
        headcount.warn_on_ignored_head_mask("off")
        assert torch.equal(model(**inputs).logits, logits)
    assert b"headcount" not in pickle.dumps(model)
    assert not any(part._forward_pre_hooks or part._forward_hooks for part in model.modules())


def test_a_compiled_model_is_one_graph_and_is_told_too():
    model, inputs = make_stock("BERT"), {"input_ids": ARCHITECTURES["BERT"].inputs(2)["input_ids"]}
    graphs = []

    def count(graph, example):
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    with torch.no_grad():
        found = torch.compile(model, backend=count, fullgraph=True)(**inputs)
        torch.testing.assert_close(found.logits, model(**inputs).logits)
    assert len(graphs) == 1
    assert len(said_by(torch.compile(model, backend=count), inputs, head_mask=torch.zeros(4))) == 1
    torch._dynamo.reset()


ORDERS = {
    "headcount first": "import headcount; from transformers import BertConfig, BertModel",
    "transformers first": "from transformers import BertConfig, BertModel; import headcount",
    "a config first": "from transformers import BertConfig; import headcount; from transformers import BertModel",
    "asked for before": "import headcount, sys; headcount.warn_on_ignored_head_mask('error')\n"
    "assert 'torch' not in sys.modules and 'transformers' not in sys.modules\n"
    "from transformers import BertConfig, BertModel",
}


@pytest.mark.parametrize("order", ORDERS)
def test_it_works_in_every_order_of_imports(order):
    code = f"""{ORDERS[order]}
import torch, warnings
warnings.simplefilter("error", UserWarning)
model = BertModel(BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=2))
try:
    model(torch.tensor([[1, 2]]), head_mask=torch.zeros(2))
except (UserWarning, TypeError) as error:
    print(type(error).__name__)
"""
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    wanted = "TypeError" if order == "asked for before" else "IgnoredHeadMaskWarning"
    assert answer.stdout.strip() == wanted, answer.stderr
