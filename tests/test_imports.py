"""Imports in every order, each in a process of its own: transformers stays whole, and its Auto classes know headcount.

transformers loads its parts on first use, so what breaks depends on which part a program asks for first.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

import headcount
from headcount.data_builders.tokenization import HeadcountTokenizer


ROOT = Path(__file__).parent.parent

# What a program begins with. After each of them, the checks below must hold.
ORDERS = {
    "headcount, then a model class": "import headcount; from transformers import GPT2LMHeadModel",
    "headcount, then one with both stacks": "import headcount; from transformers import T5ForConditionalGeneration",
    "headcount, then an attribute": "import headcount, transformers; transformers.BartForConditionalGeneration",
    "headcount, then an Auto class": "import headcount; from transformers import AutoModelForSeq2SeqLM",
    "headcount, then a tokenizer": "import headcount; from transformers import AutoTokenizer",
    "headcount, then pipelines": "import headcount; from transformers import pipeline",
    "our models first": "import headcount.modeling.modeling_headcount",
    "a part of our models first": "import headcount.modeling.layers",
    "our pipeline first": "import headcount.modeling.addition_pipeline",
    "transformers, then headcount": "import transformers; import headcount",
    "a model class, then headcount": "from transformers import GPT2LMHeadModel; import headcount",
    "an Auto class, then headcount": "from transformers import AutoModel; import headcount",
    "pipelines, then headcount": "from transformers import pipeline; import headcount",
    "a tokenizer, then headcount": "from transformers import AutoTokenizer; import headcount",
}

CHECKS = """
import sys
from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM, AutoTokenizer, BertModel, pipeline
folder = sys.argv[1]
found = [
    AutoConfig.for_model("headcount"),
    AutoModel.from_config(AutoConfig.from_pretrained(folder)),
    AutoModelForSeq2SeqLM.from_pretrained(folder),
    AutoTokenizer.from_pretrained(folder),
    pipeline("integer-addition", model=folder),
]
print(*(type(each).__name__ for each in found))
"""
EXPECTED = "HeadcountConfig HeadcountModel HeadcountForConditionalGeneration HeadcountTokenizer AdditionPipeline"


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    """A model of addition with random weights, saved with its tokenizer."""
    folder = tmp_path_factory.mktemp("saved") / "model"
    symbols = ["<pad>", "<bos>", "<eos>", *"0123456789+="]
    config = headcount.HeadcountConfig(vocab_size=len(symbols), digit_token_ids=list(range(3, 13)))
    headcount.HeadcountForConditionalGeneration(config).save_pretrained(folder)
    tokenizer = Tokenizer(models.WordLevel({symbol: index for index, symbol in enumerate(symbols)}, "<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    HeadcountTokenizer(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>").save_pretrained(folder)
    return folder


def answer_of(code: str, *arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


@pytest.mark.parametrize("first", ORDERS.values(), ids=ORDERS)
def test_every_order_of_imports_works_and_auto_classes_know_headcount(first, model_folder):
    answer = answer_of(f"{first}\n{CHECKS}", model_folder)
    assert answer.stdout.strip() == EXPECTED, answer.stderr


def test_import_is_quick_because_nothing_heavy_comes_along():
    code = "import sys, headcount; print([m for m in ('torch', 'transformers', 'numpy', 'typer') if m in sys.modules])"
    answer = answer_of(code)
    assert answer.stdout == "[]\n", answer.stderr


def test_configs_and_tokenizers_do_without_our_models():
    code = (
        "import sys, headcount; from transformers import AutoConfig; AutoConfig.for_model('headcount');"
        "print('headcount.modeling.modeling_headcount' in sys.modules)"
    )
    assert answer_of(code).stdout == "False\n"


def test_a_module_that_cannot_be_imported_says_so_itself():
    answer = answer_of("import headcount; import transformers.no_such_module")
    assert (
        answer.stderr.strip().splitlines()[-1] == "ModuleNotFoundError: No module named 'transformers.no_such_module'"
    )


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A copy of the checkout in a folder called headcount, as `git clone` makes it."""
    folder = tmp_path_factory.mktemp("parent") / "headcount"
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    for name in filter(lambda name: name.endswith((".py", ".yaml")), tracked):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


def test_from_the_parent_folder_of_a_clone_the_clone_is_the_package(clone, model_folder):
    code = (
        "import sys, headcount, headcount.records.rows as rows; from headcount.modeling import layers;"
        "from transformers import AutoModel;"
        "print(headcount.__version__, headcount.__file__, rows.__file__, layers.__file__,"
        " type(AutoModel.from_pretrained(sys.argv[1])).__module__)"
    )
    files = [clone / name for name in ("headcount/__init__.py", "records/rows.py", "modeling/layers.py")]
    answer = answer_of(code, model_folder, cwd=clone.parent)
    expected = [headcount.__version__, *map(str, files), "headcount.modeling.modeling_headcount"]
    assert answer.stdout.split() == expected, answer.stderr


def test_from_the_parent_folder_of_a_clone_the_command_line_is_there(clone):
    command = [sys.executable, "-m", "headcount", "--help"]
    answer = subprocess.run(command, cwd=clone.parent, capture_output=True, text=True, timeout=60)
    assert answer.returncode == 0 and "Usage" in answer.stdout, answer.stderr
