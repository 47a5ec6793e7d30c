"""A published model loads where headcount is not installed, computes the same bits, and stays complete."""

import ast
import re
import sys
from pathlib import Path

import pytest
import torch
from small_models import make_inputs, make_model
from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoTokenizer, pipeline
from transformers.dynamic_module_utils import get_relative_import_files
from without_headcount import run_without_headcount

import headcount
from headcount.data_builders.tokenization import HeadcountTokenizer, make_tokenizer
from headcount.modeling import modeling_headcount
from headcount.modeling.remote_code import AUTO_CLASSES, flat_sources, flatten_imports, name_code, write_code


ROOT = Path(__file__).parent.parent.parent
PROJECT_FILES = {
    path.name: path
    for folder in ("configuration", "modeling")
    for path in (ROOT / folder).glob("*.py")
    if path.name != "__init__.py"
}


def publish(model, folder) -> Path:
    name_code(model.config)
    model.save_pretrained(folder)
    return Path(folder)


def test_every_file_of_the_model_is_exported_and_reached(tmp_path):
    """transformers fetches only what it sees imported; a new file that nobody imports would be lost on the way."""
    assert flat_sources().keys() == PROJECT_FILES.keys()
    write_code(tmp_path)
    reached = {Path(path).name for path in get_relative_import_files(tmp_path / "modeling_headcount.py")}
    assert reached | {"modeling_headcount.py"} == PROJECT_FILES.keys()


@pytest.mark.parametrize("name", PROJECT_FILES)
def test_exported_code_is_the_projects_own_with_flat_imports(name):
    source, exported = PROJECT_FILES[name].read_text(), flat_sources()[name]
    pairs = zip(source.splitlines(), exported.splitlines(), strict=True)
    assert all(old == new or re.match(r"\s*from \.\.", old) for old, new in pairs)
    for node in ast.walk(ast.parse(exported)):
        if isinstance(node, ast.ImportFrom) and node.level:
            assert node.level == 1 and f"{node.module}.py" in PROJECT_FILES, node.module
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [node.module] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            tops = {each.split(".")[0] for each in names}
            assert tops - set(sys.stdlib_module_names) <= {"torch", "transformers"}, tops


def test_imports_are_flattened_wherever_they_stand():
    source = "from ..configuration.rules import nearest\n    from ..modeling.heads import x  # why\nfrom .a import b\n"
    assert flatten_imports(source) == "from .rules import nearest\n    from .heads import x  # why\nfrom .a import b\n"


def test_auto_map_names_the_classes_that_are_registered():
    for auto_name, place in AUTO_CLASSES.items():
        module, name = place.split(".")
        assert f"{module}.py" in PROJECT_FILES
        assert getattr(headcount, name) is not None and name in (*modeling_headcount.__all__, "HeadcountConfig")
        if auto_name != "AutoConfig":
            auto_class = getattr(__import__("transformers"), auto_name)
            assert auto_class._model_mapping[headcount.HeadcountConfig] is getattr(headcount, name)


# What happens in the other environment, for each architecture. Prints what the test then compares.
ELSEWHERE = """
import sys
from pathlib import Path
from transformers import AutoConfig, AutoModel, {auto_class}

inputs, masks, expected, base = torch.load({folder!r} + ".pt")
for folder in ({folder!r}, {folder!r} + "-again"):
    if folder.endswith("-again"):
        model.save_pretrained(folder)  # what was loaded is saved, and loaded again
    config = AutoConfig.from_pretrained(folder, trust_remote_code=True)
    model = {auto_class}.from_pretrained(folder, trust_remote_code=True)
    assert type(model).__module__.startswith("transformers_modules."), type(model)
    assert torch.equal(model(**inputs).logits, expected[0])
    assert torch.equal(model(**inputs, **masks).logits, expected[1])
    inner = AutoModel.from_pretrained(folder, trust_remote_code=True)
    assert torch.equal(inner.state_dict()[base[0]], base[1])
again = Path({folder!r} + "-again")
files = sorted(Path({folder!r}).iterdir())
same = [path.name for path in files if path.read_bytes() == (again / path.name).read_bytes()]
model.prune_heads(model.list_heads()[:2])
model.save_pretrained({folder!r} + "-pruned")
pruned = {auto_class}.from_pretrained({folder!r} + "-pruned", trust_remote_code=True)
assert torch.equal(pruned(**inputs).logits, model(**inputs).logits)
assert not torch.equal(pruned(**inputs).logits, expected[0])
print(sorted(same), pruned.config.pruned_heads, "headcount" in sys.modules)
"""


@pytest.mark.parametrize(
    "architecture, auto_class, options",
    [
        ("encoder-decoder", "AutoModelForSeq2SeqLM", {}),
        (
            "decoder",
            "AutoModelForCausalLM",
            {"num_key_value_heads": 2, "feed_forward_type": "gated", "norm_type": "rms"},
        ),
        ("encoder", "AutoModelForSequenceClassification", {}),
    ],
)
def test_bit_identical_without_headcount_and_complete_after_saving_again(architecture, auto_class, options, tmp_path):
    model = make_model(architecture, attention="sdpa", **options)
    model.prune_heads(model.list_heads()[-1:])  # a pruned model is published like any other
    folder = publish(model, tmp_path / "repo")
    inputs = make_inputs(architecture)
    masks = model.head_mask_for(model.list_heads()[:3])
    with torch.no_grad():
        expected = model(**inputs).logits, model(**inputs, **masks).logits
    name, weight = next(iter(model.model.state_dict().items()))
    torch.save((inputs, masks, expected, (name, weight)), f"{folder}.pt")
    printed = run_without_headcount(ELSEWHERE.format(auto_class=auto_class, folder=str(folder)), tmp_path)
    pruned = model.config.pruned_heads
    everything = sorted(path.name for path in folder.iterdir())
    same, _, rest = printed.partition("] ")
    assert same + "]" == str(everything) and rest.endswith("False\n")
    assert all(layer in rest for layer in pruned)


def test_with_headcount_the_installed_code_is_used_and_saving_again_keeps_the_repository_complete(tmp_path):
    folder = publish(make_model("encoder-decoder"), tmp_path / "repo")
    make_tokenizer(headcount.TASKS["addition"]).save_pretrained(folder)
    model = AutoModelForSeq2SeqLM.from_pretrained(folder)
    assert type(model) is headcount.HeadcountForConditionalGeneration
    assert type(AutoConfig.from_pretrained(folder)) is headcount.HeadcountConfig
    assert type(AutoTokenizer.from_pretrained(folder)) is HeadcountTokenizer
    assert type(pipeline("integer-addition", model=str(folder))).__module__ == "headcount.modeling.addition_pipeline"
    model.save_pretrained(tmp_path / "again")
    for path in folder.iterdir():
        if not path.name.startswith("tokenizer"):
            assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes(), path.name


def test_a_model_of_ones_own_is_saved_without_code(tmp_path):
    make_model("encoder-decoder").save_pretrained(tmp_path)
    assert not list(tmp_path.glob("*.py")) and "auto_map" not in (tmp_path / "config.json").read_text()
