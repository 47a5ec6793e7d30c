"""Makes transformers' Auto classes and `pipeline()` know headcount, without importing transformers too early.

Whichever of `import headcount` and `import transformers` comes first: as soon as both are there and one of the Auto
modules is loaded, headcount's classes are registered with it. So is the pipeline `integer-addition`. In the same way
comes the check for head masks that a model would ignore.

The Auto modules are often loaded by a module of transformers that is only half imported itself (importing GPT-2 loads
`modeling_layers`, which loads `AutoModel` before it defines the layers that our models are made of). So nothing is
registered before the outermost import of transformers or headcount is done.
"""

import contextlib
import functools
import importlib.abc
import importlib.machinery
import sys
import threading
from collections.abc import Sequence
from types import ModuleType
from typing import Any


WATCHED = ("transformers", __package__)


def register_config() -> None:
    from transformers import AutoConfig

    from .configuration.configuration_headcount import HeadcountConfig

    AutoConfig.register("headcount", HeadcountConfig, exist_ok=True)


def read_notes_on_removed_heads() -> None:
    """`from_pretrained` makes a model smaller whose weights say that it lost heads, before it fills them in."""
    from transformers import PreTrainedModel

    load = PreTrainedModel._load_pretrained_model

    @functools.wraps(load)
    def load_smaller(model: Any, state_dict: Any, checkpoint_files: Any, *rest: Any, **options: Any) -> Any:
        if any(key.endswith("removed_heads") for key in saved_names(state_dict, checkpoint_files)):
            from .modeling.stock.pruned_model import make_smaller, notes_in

            make_smaller(model, notes_in(state_dict, checkpoint_files))
        return load(model, state_dict, checkpoint_files, *rest, **options)

    PreTrainedModel._load_pretrained_model = staticmethod(load_smaller)


def saved_names(state_dict: dict | None, files: list[str] | None) -> list[str]:
    """The names of all weights; files that cannot be read are for transformers to complain about."""
    from safetensors import SafetensorError, safe_open

    names = list(state_dict or ())
    for path in [] if state_dict else files or ():
        if str(path).endswith(".safetensors"):
            with contextlib.suppress(SafetensorError, OSError), safe_open(path, "pt") as weights:
                names += weights.keys()
    return names


def register_models() -> None:
    import transformers

    from .configuration.configuration_headcount import HeadcountConfig
    from .modeling import modeling_headcount as models

    for auto_name, model_class in {
        "AutoModel": models.HeadcountModel,
        "AutoModelForSeq2SeqLM": models.HeadcountForConditionalGeneration,
        "AutoModelForCausalLM": models.HeadcountForCausalLM,
        "AutoModelForSequenceClassification": models.HeadcountForSequenceClassification,
    }.items():
        getattr(transformers, auto_name).register(HeadcountConfig, model_class, exist_ok=True)


def register_tokenizer() -> None:
    from transformers import AutoTokenizer

    from .configuration.configuration_headcount import HeadcountConfig
    from .data_builders.tokenization import HeadcountTokenizer

    AutoTokenizer.register(HeadcountConfig, fast_tokenizer_class=HeadcountTokenizer, exist_ok=True)


def register_pipeline() -> None:
    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM
    from transformers.pipelines import PIPELINE_REGISTRY

    from .modeling.addition_pipeline import TASK, AdditionPipeline

    if TASK not in PIPELINE_REGISTRY.get_supported_tasks():
        models = (AutoModelForSeq2SeqLM, AutoModelForCausalLM)
        PIPELINE_REGISTRY.register_pipeline(TASK, AdditionPipeline, pt_model=models, type="text")


def prepare_models() -> None:
    read_notes_on_removed_heads()
    check_head_masks()


def check_head_masks() -> None:
    from .modeling.stock import ignored_masks

    ignored_masks.install()


# Module of transformers -> what is registered once it is loaded; the config comes first, the others refer to it.
REGISTER_AFTER = {
    "transformers.modeling_utils": prepare_models,
    "transformers.models.auto.configuration_auto": register_config,
    "transformers.models.auto.modeling_auto": register_models,
    "transformers.models.auto.tokenization_auto": register_tokenizer,
    "transformers.pipelines": register_pipeline,
}
registered: set[str] = set()


class Depth(threading.local):
    """How many imports of watched modules this thread is in the middle of, one inside the other."""

    value = 0


depth = Depth()


def register_what_is_due() -> None:
    """Registers with every module that has been loaded since; what that loads in turn is registered with as well."""
    depth.value += 1  # what is imported here must not come back here
    try:
        while due := [name for name in REGISTER_AFTER if name in sys.modules and name not in registered]:
            REGISTER_AFTER[due[0]]()
            registered.add(due[0])
    finally:
        depth.value -= 1


class AfterImport(importlib.abc.MetaPathFinder):
    """Lets the finders after it find a watched module; once the outermost of them has run, registers what is due."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] not in WATCHED:
            return None
        finders = sys.meta_path[sys.meta_path.index(self) + 1 :]
        spec = next(filter(None, (finder.find_spec(fullname, path, target) for finder in finders)), None)
        if spec is None or spec.loader is None:
            return spec
        run_module = spec.loader.exec_module

        def run_and_register(module: ModuleType) -> None:
            depth.value += 1
            try:
                run_module(module)
            finally:
                depth.value -= 1
            if depth.value == 0:
                register_what_is_due()

        spec.loader.exec_module = run_and_register  # type: ignore[method-assign]
        return spec


def install() -> None:
    """Registers with what is loaded already, and from now on with what will be."""
    if not any(isinstance(finder, AfterImport) for finder in sys.meta_path):
        sys.meta_path.insert(0, AfterImport())
    register_what_is_due()
