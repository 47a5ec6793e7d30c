"""headcount: attention heads that count, and which heads count.

>>> import headcount
>>> model = headcount.HeadcountForConditionalGeneration(headcount.HeadcountConfig())
>>> model.list_heads()[0]
'encoder.0.self.0'

After `import headcount`, transformers' Auto classes know headcount's models. Importing this package is quick: torch
and transformers are loaded when a name that needs them is first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

from . import auto_registration


__version__ = "0.1.0"

# Public name -> the module that defines it.
_PUBLIC = {
    # For headcount's own models and for any transformers model alike.
    "list_heads": "modeling.stock.finding",
    "sites": "analysis.interventions.sites",
    "mask_heads": "modeling.stock.gates",
    "prune_heads": "modeling.stock.pruning",
    "save_pruned": "modeling.stock.saving",
    "load_pruned": "modeling.stock.saving",
    "attention_maps": "analysis.heads.maps",
    "head_outputs": "analysis.heads.outputs",
    "ablate": "analysis.heads.ablation",
    "interchange": "analysis.circuits.interchange",
    "gradient_importance": "analysis.heads.importance",
    "explain": "analysis.circuits.explain",
    "find_circuit": "analysis.circuits.find_circuit",
    "Circuit": "analysis.circuits.circuit",
    "logit_lens": "analysis.circuits.logit_lens",
    "logit_attribution": "analysis.circuits.logit_attribution",
    "attribution_patching": "analysis.circuits.attribution_patching",
    "head_types": "analysis.heads.head_types",
    "warn_on_ignored_head_mask": "modeling.stock.ignored_masks",
    # Models, tasks and runs of one's own.
    "HeadcountConfig": "configuration.configuration_headcount",
    "HeadcountModel": "modeling.modeling_headcount",
    "HeadcountForConditionalGeneration": "modeling.modeling_headcount",
    "HeadcountForCausalLM": "modeling.modeling_headcount",
    "HeadcountForSequenceClassification": "modeling.modeling_headcount",
    "HeadcountPreTrainedModel": "modeling.modeling_headcount",
    "TASKS": "data_builders.registry",
    "Task": "data_builders.tasks",
    "write_folder": "data_builders.folder",
    "load_folder": "data_builders.folder",
    "train": "trainers.training",
    "load_run": "trainers.trained_run",
    "evaluate": "trainers.training",
    "prune": "analysis.heads.prune_run",
    "extrapolate": "analysis.lengths.study",
}

__all__ = ["__version__", *_PUBLIC]

if TYPE_CHECKING:
    from .analysis.circuits.attribution_patching import attribution_patching
    from .analysis.circuits.circuit import Circuit
    from .analysis.circuits.explain import explain
    from .analysis.circuits.find_circuit import find_circuit
    from .analysis.circuits.interchange import interchange
    from .analysis.circuits.logit_attribution import logit_attribution
    from .analysis.circuits.logit_lens import logit_lens
    from .analysis.heads.ablation import ablate
    from .analysis.heads.head_types import head_types
    from .analysis.heads.importance import gradient_importance
    from .analysis.heads.maps import attention_maps
    from .analysis.heads.outputs import head_outputs
    from .analysis.heads.prune_run import prune
    from .analysis.interventions.sites import sites
    from .analysis.lengths.study import extrapolate
    from .configuration.configuration_headcount import HeadcountConfig
    from .data_builders.folder import load_folder, write_folder
    from .data_builders.registry import TASKS
    from .data_builders.tasks import Task
    from .modeling.modeling_headcount import (
        HeadcountForCausalLM,
        HeadcountForConditionalGeneration,
        HeadcountForSequenceClassification,
        HeadcountModel,
        HeadcountPreTrainedModel,
    )
    from .modeling.stock.finding import list_heads
    from .modeling.stock.gates import mask_heads
    from .modeling.stock.ignored_masks import warn_on_ignored_head_mask
    from .modeling.stock.pruning import prune_heads
    from .modeling.stock.saving import load_pruned, save_pruned
    from .trainers.trained_run import load_run
    from .trainers.training import evaluate, train


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'headcount' has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_PUBLIC[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


auto_registration.install()
