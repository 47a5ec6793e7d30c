"""`headcount ls FAMILY`: what there is to choose from.

headcount ls encodings
headcount ls poolers --json
"""

import json
from typing import Annotated

import typer

from ..configuration import choices
from ..configuration.rules import nearest


# Family -> (config field or argument that takes the name, its choices)
FAMILIES: dict[str, tuple[str, dict[str, str]]] = {
    "encodings": ("position_embedding_type", choices.POSITION_ENCODINGS),
    "schemes": ("position_scheme", choices.POSITION_SCHEMES),
    "poolers": ("pooling_type", choices.POOLERS),
    "attention": ("attn_implementation", choices.ATTENTION_FUNCTIONS),
    "normalizers": ("attention_normalizer", choices.NORMALIZERS),
    "norms": ("norm_type", choices.NORMS),
    "feed-forward": ("feed_forward_type", choices.FEED_FORWARDS),
    "embeddings": ("embedding_type", choices.EMBEDDINGS),
    "architectures": ("architecture", choices.ARCHITECTURES),
    "recipes": ("recipe", {}),  # these and the next are read from files, tasks and constructions
    "tasks": ("task", {}),
    "options": ("option", {}),
    "constructions": ("construction", {}),
}


def choices_of(family: str) -> dict[str, str]:
    """Name -> one sentence."""
    if family == "recipes":
        from ..trainers.recipe import describe_recipes

        return describe_recipes()
    if family == "constructions":
        from ..analysis.circuits.constructions.catalogue import CONSTRUCTIONS

        return {name: construction.says for name, construction in CONSTRUCTIONS.items()}
    if family in ("tasks", "options"):
        from ..data_builders.registry import TASKS
        from .task_options import describe_options

        if family == "tasks":
            return {name: task.texts.description for name, task in TASKS.items()}
        return {
            f"{name} {flag}": default
            for name, task in TASKS.items()
            for flag, default in describe_options(task).items()
        }
    return FAMILIES[family][1]


def main(
    family: Annotated[str, typer.Argument(help="One of: " + ", ".join(FAMILIES) + ".", metavar="FAMILY")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """List the tasks, encodings, schemes, poolers, ... that there are."""
    if family not in FAMILIES:
        raise typer.BadParameter(
            f"there is no family {family!r}; expected one of {', '.join(FAMILIES)}.{nearest(family, FAMILIES)}"
        )
    field, names = FAMILIES[family][0], choices_of(family)
    if as_json:
        print(
            json.dumps([{"name": name, "field": field, "description": text} for name, text in names.items()], indent=2)
        )
        return
    width = max(map(len, names))
    for name, text in names.items():
        print(f"{name:{width}}  {text}")
