"""Makes transformers' Auto classes and `pipeline()` know headcount, without importing transformers too early.

Whichever of `import headcount` and `import transformers` comes first: as soon as both are there and one of the Auto
modules is loaded, headcount's classes are registered with it. So is the pipeline `integer-addition`.
"""

import importlib.abc
import importlib.machinery
import sys


def register_config() -> None:
    from transformers import AutoConfig

    from .configuration.configuration_headcount import HeadcountConfig

    AutoConfig.register("headcount", HeadcountConfig, exist_ok=True)


def register_models() -> None:
    if is_being_imported(OUR_MODELS):
        return
    import transformers

    from .configuration.configuration_headcount import HeadcountConfig
    from .modeling import modeling_headcount as models

    register_config()
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

    register_config()
    AutoTokenizer.register(HeadcountConfig, fast_tokenizer_class=HeadcountTokenizer, exist_ok=True)


def register_pipeline() -> None:
    if is_being_imported(OUR_PIPELINE):
        return
    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM
    from transformers.pipelines import PIPELINE_REGISTRY

    from .modeling.addition_pipeline import TASK, AdditionPipeline

    if TASK not in PIPELINE_REGISTRY.get_supported_tasks():
        models = (AutoModelForSeq2SeqLM, AutoModelForCausalLM)
        PIPELINE_REGISTRY.register_pipeline(TASK, AdditionPipeline, pt_model=models, type="text")


OUR_MODELS = f"{__package__}.modeling.modeling_headcount"
OUR_PIPELINE = f"{__package__}.modeling.addition_pipeline"
REGISTER_AFTER = {
    "transformers.models.auto.configuration_auto": register_config,
    "transformers.models.auto.modeling_auto": register_models,
    "transformers.models.auto.tokenization_auto": register_tokenizer,
    "transformers.pipelines": register_pipeline,
    OUR_MODELS: register_models,
    OUR_PIPELINE: register_pipeline,
}
finished: set[str] = set()


def is_being_imported(module: str) -> bool:
    """Whether a file of ours is just importing what it is registered with; its own turn comes when it is done."""
    return module in sys.modules and module not in finished


class AfterImport(importlib.abc.MetaPathFinder):
    """Lets the normal import find the module, and calls a function once the module has run."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname not in REGISTER_AFTER:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is None or spec.loader is None:
            return spec
        run_module = spec.loader.exec_module

        def run_and_register(module):
            run_module(module)
            finished.add(fullname)
            REGISTER_AFTER[fullname]()

        spec.loader.exec_module = run_and_register
        return spec


def install() -> None:
    for module, register in REGISTER_AFTER.items():
        if module in sys.modules:
            register()
    if not any(isinstance(finder, AfterImport) for finder in sys.meta_path):
        sys.meta_path.insert(0, AfterImport())
