"""headcount: attention heads that count, and which heads count.

>>> import headcount
>>> model = headcount.HeadcountForConditionalGeneration(headcount.HeadcountConfig())
>>> model.list_heads()[0]
'encoder.0.self.0'

After `import headcount`, transformers' Auto classes know headcount's models. Importing this package is quick: torch
and transformers are loaded when a name that needs them is first used.
"""

import importlib
from typing import TYPE_CHECKING

from . import auto_registration


__version__ = "0.1.0"

# Public name -> the module that defines it.
_PUBLIC = {
    "HeadcountConfig": "configuration.configuration_headcount",
    "HeadcountForCausalLM": "modeling.modeling_headcount",
    "HeadcountForConditionalGeneration": "modeling.modeling_headcount",
    "HeadcountForSequenceClassification": "modeling.modeling_headcount",
    "HeadcountModel": "modeling.modeling_headcount",
    "HeadcountPreTrainedModel": "modeling.modeling_headcount",
    "ATTENTION_FUNCTIONS": "modeling.attention",
    "EMBEDDINGS": "modeling.embeddings",
    "NORMALIZERS": "modeling.normalizers",
    "POOLERS": "modeling.pooling",
    "POSITION_ENCODINGS": "modeling.position_encodings",
    "POSITION_SCHEMES": "modeling.position_schemes",
    "ablate": "analysis.stock_ablation",
    "attention_maps": "analysis.stock_maps",
    "extrapolate": "analysis.lengths.study",
    "gradient_importance": "analysis.stock_gradient",
    "list_heads": "modeling.stock.finding",
    "mask_heads": "modeling.stock.gates",
    "prune_heads": "modeling.stock.pruning",
    "save_pruned": "modeling.stock.pruning",
    "load_pruned": "modeling.stock.pruning",
    "TASKS": "data_builders.tasks",
    "AdditionCorpus": "data_builders.addition",
    "AdditionOptions": "data_builders.addition_options",
    "SortednessCorpus": "data_builders.sortedness_corpus",
    "SortednessOptions": "data_builders.sortedness_corpus",
    "AdditionBuilder": "data_builders.builders",
    "SortednessBuilder": "data_builders.builders",
    "AdditionCollator": "data_builders.collators",
    "SortednessCollator": "data_builders.collators",
    "HeadcountTokenizer": "data_builders.tokenization",
    "addition_tokenizer": "data_builders.tokenization",
    "sortedness_tokenizer": "data_builders.tokenization",
    "sample_addition": "data_builders.carry_groups",
    "sample_sortedness": "data_builders.sortedness",
    "write_folder": "data_builders.folder",
    "check_folder": "data_builders.folder",
    "load_folder": "data_builders.folder",
}

__all__ = ["__version__", *_PUBLIC]

if TYPE_CHECKING:
    from .analysis.lengths.study import extrapolate
    from .analysis.stock_ablation import ablate
    from .analysis.stock_gradient import gradient_importance
    from .analysis.stock_maps import attention_maps
    from .configuration.configuration_headcount import HeadcountConfig
    from .data_builders.addition import AdditionCorpus
    from .data_builders.addition_options import AdditionOptions
    from .data_builders.builders import AdditionBuilder, SortednessBuilder
    from .data_builders.carry_groups import sample_addition
    from .data_builders.collators import AdditionCollator, SortednessCollator
    from .data_builders.folder import check_folder, load_folder, write_folder
    from .data_builders.sortedness import sample_sortedness
    from .data_builders.sortedness_corpus import SortednessCorpus, SortednessOptions
    from .data_builders.tasks import TASKS
    from .data_builders.tokenization import HeadcountTokenizer, addition_tokenizer, sortedness_tokenizer
    from .modeling.attention import ATTENTION_FUNCTIONS
    from .modeling.embeddings import EMBEDDINGS
    from .modeling.modeling_headcount import (
        HeadcountForCausalLM,
        HeadcountForConditionalGeneration,
        HeadcountForSequenceClassification,
        HeadcountModel,
        HeadcountPreTrainedModel,
    )
    from .modeling.normalizers import NORMALIZERS
    from .modeling.pooling import POOLERS
    from .modeling.position_encodings import POSITION_ENCODINGS
    from .modeling.position_schemes import POSITION_SCHEMES
    from .modeling.stock.finding import list_heads
    from .modeling.stock.gates import mask_heads
    from .modeling.stock.pruning import load_pruned, prune_heads, save_pruned


def __getattr__(name: str):
    if name not in _PUBLIC:
        raise AttributeError(f"module 'headcount' has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_PUBLIC[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


auto_registration.install()
