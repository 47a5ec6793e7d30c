"""The cells of a length study: which model is trained with which seed, and the names by which users ask for them.

A variant is an encoding and what changes beside it, `rotary+window`, `none+causal+log_n`; or one that the recipe
names, `no-jitter`; or a recipe as it stands. With a pooling, where the architecture pools, and a seed it is a cell: a
recipe, values set in it, and a folder name.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ...configuration.choices import NORMALIZERS, POOLERS, POSITION_ENCODINGS, POSITION_SCHEMES
from ...configuration.configuration_headcount import EFFECTIVE_WHEN, HeadcountConfig
from ...configuration.rules import nearest
from ...data_builders.tasks import LengthStudy, Task
from ...trainers.recipe import Recipe, load_recipe, load_variants
from ...trainers.training_data import style_of


# What may follow an encoding's name after a plus sign, in the order in which names are written.
MODIFIERS: dict[str, dict[str, Any]] = {
    "causal": {"attention_direction": "causal"},
    "window": {"attention_window": 4},
    "randomized": {"position_scheme": "randomized", "max_position_embeddings": 1024},
    "log_n": {"attention_normalizer": "log_n"},
    "untrained": {"max_position_embeddings": 4096, "position_overflow": "error"},
    "table": {"embedding_type": "table"},
}

DEFAULT_ENCODINGS = (
    "sinusoidal",
    "learned",
    "none",
    "rotary",
    "rotary+window",
    "alibi",
    "alibi_directional",
    "t5_bias",
    "fire",
    "none+causal",
    "none+causal+log_n",
    "sinusoidal+causal+randomized",
)
DEFAULT_POOLINGS, QUICK_POOLINGS = ("max", "mean", "violation"), ("max",)
DEFAULT_SEEDS, QUICK_SEEDS = (0, 1, 2), (0,)
AS_IT_STANDS = "a recipe as it stands"

# Option -> the names that it knows, and the one that adds nothing to an encoding.
AXES = {"schemes": (POSITION_SCHEMES, "sequential"), "normalizers": (NORMALIZERS, "softmax")}


@dataclass(frozen=True)
class Cell:
    """One model of the study. `name` is its folder; `variant` and `pooling` are what its rows are grouped by."""

    recipe: str
    seed: int
    variant: str
    says: str  # what the variant is, in words
    pooling: str | None = None  # None: the recipe's own, if any
    settings: tuple[str, ...] = ()  # KEY=VALUE, as for headcount train --set

    @property
    def name(self) -> str:
        return "-".join(part for part in (self.variant, self.pooling, str(self.seed)) if part is not None)

    def load_recipe(self) -> Recipe:
        return load_recipe(self.recipe, [*self.settings, f"training.seed={self.seed}"])


@dataclass(frozen=True)
class _Variant:
    recipe: str
    name: str
    says: str
    settings: tuple[str, ...] = ()


def make_cells(
    task: Task,
    *,
    variants: Sequence[str] | None = None,
    encodings: Sequence[str] | None = None,
    poolings: Sequence[str] | None = None,
    schemes: Sequence[str] | None = None,
    normalizers: Sequence[str] | None = None,
    recipes: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    settings: Sequence[str] = (),
    quick: bool = False,
) -> list[Cell]:
    """Every variant with every pooling and seed. What is None is chosen by the task; an idle option is an error.

    Args:
        task: whose recipe for length studies is varied.
        variants: names from that recipe; all of them if nothing is said and it has any.
        encodings: `rotary`, `none+causal+log_n`, ...: the grid of any recipe without named variants.
        poolings: multiply the variants, where the architecture pools.
        schemes, normalizers: multiply the encodings.
        recipes: recipes as they stand, instead of variants of one.
        seeds: of training.
        settings: KEY=VALUE for every cell, as for `headcount train --set`.
        quick: few variants, one seed, short training.

    Returns:
        The cells in the order of work: a study that was stopped early has all variants, with fewer poolings and seeds.

    >>> from headcount.data_builders.registry import TASKS
    >>> [cell.name for cell in make_cells(TASKS["sortedness"], encodings=["rotary"], poolings=["max"], seeds=[0])]
    ['rotary-max-0']
    """
    given = {"--variants": variants, "--encodings": encodings, "--poolings": poolings}
    given |= {"--schemes": schemes, "--normalizers": normalizers}
    seeds = tuple(seeds or (QUICK_SEEDS if quick else DEFAULT_SEEDS))
    if recipes is not None:
        _refuse({**given, "--quick": quick or None}, "--recipes")
        return _multiply(_whole_recipes(recipes), (None,), seeds, settings)
    study = length_study_of(task)
    recipe, named = load_recipe(study.recipe), load_variants(study.recipe)
    pools = style_of(recipe) in EFFECTIVE_WHEN["pooling_type"]["architecture"]
    grid = {"--encodings": encodings, "--schemes": schemes, "--normalizers": normalizers}
    if variants is not None and not named:
        raise ValueError(
            f"--variants has no effect with --task {task.name}, whose recipe {study.recipe} names none; expected "
            "--encodings."
        )
    if poolings is not None and not pools:
        raise ValueError(f"--poolings has no effect with --task {task.name}, whose models do not pool; leave it out.")
    if variants is not None:
        _refuse(grid, "--variants")
    if variants is not None or (named and all(value is None for value in grid.values())):
        chosen = _named_variants(study.recipe, named, variants or (quick and study.quick_variants) or tuple(named))
        usual: Sequence[str | None] = (None,)
    else:
        names = _grid_names(task, study, encodings, schemes, normalizers, quick)
        chosen = _encoding_variants(study.recipe, recipe, names)
        usual = (QUICK_POOLINGS if quick else DEFAULT_POOLINGS) if pools else (None,)
    for pooling in poolings or ():
        check_name("pooling", pooling, POOLERS)
    return _multiply(chosen, poolings or usual, seeds, (*(study.quick_settings if quick else ()), *settings))


def length_study_of(task: Task) -> LengthStudy:
    if task.length_study is None:
        raise ValueError(f"the task {task.name} names no recipe for a study of lengths; expected --recipes.")
    return task.length_study


def _refuse(idle: dict[str, Any], beside: str) -> None:
    for name, value in idle.items():
        if value is not None and name != beside:
            raise ValueError(f"{name} has no effect with {beside}; expected one of the two.")


def _multiply(
    variants: list[_Variant], poolings: Sequence[str | None], seeds: Sequence[int], settings: Iterable[str]
) -> list[Cell]:
    return [
        Cell(
            variant.recipe,
            seed,
            variant.name,
            variant.says,
            pooling,
            (*variant.settings, *([f"model.pooling_type={pooling}"] if pooling else []), *settings),
        )
        for seed in seeds
        for pooling in poolings
        for variant in variants
    ]


def _whole_recipes(recipes: Sequence[str]) -> list[_Variant]:
    """A file of one's own goes by its name without folder and ending, which names the folder of a cell."""
    names = [Path(recipe).stem if Path(recipe).suffix in (".yaml", ".yml", ".py") else recipe for recipe in recipes]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"--recipes names {twice!r} twice; expected recipes of different names.")
    return [_Variant(recipe, name, AS_IT_STANDS) for recipe, name in zip(recipes, names, strict=True)]


def _named_variants(recipe: str, named: dict, wanted: Sequence[str]) -> list[_Variant]:
    for name in wanted:
        check_name("variant", name, named)
    return [_Variant(recipe, name, named[name].says, named[name].settings) for name in dict.fromkeys(wanted)]


def _grid_names(
    task: Task,
    study: LengthStudy,
    encodings: Sequence[str] | None,
    schemes: Sequence[str] | None,
    normalizers: Sequence[str] | None,
    quick: bool,
) -> list[str]:
    """The names of a grid's variants, each once; `schemes` and `normalizers`, where given, multiply the encodings."""
    known = [name for name in study.quick_variants if name.split("+")[0] in POSITION_ENCODINGS]
    names = [parse_encoding(text) for text in encodings or (quick and known) or DEFAULT_ENCODINGS]
    for axis, wanted in (("schemes", schemes), ("normalizers", normalizers)):
        if wanted is not None:
            names = _cross(names, axis, wanted, task)
    return list(dict.fromkeys(names))


def _cross(encodings: list[str], axis: str, names: Sequence[str], task: Task) -> list[str]:
    known, plain = AXES[axis]
    what = axis.removesuffix("s")
    for name in names:
        check_name(what, name, known)
        if name != plain and name not in MODIFIERS:
            allowed = [plain, *(modifier for modifier in MODIFIERS if modifier in known)]
            raise ValueError(
                f"{what} {name!r} does not apply to the grid of {task.name}; expected one of {', '.join(allowed)}."
            )
    return [text if name == plain else parse_encoding(f"{text}+{name}") for text in encodings for name in names]


def parse_encoding(text: str) -> str:
    """The variant under its one name, modifiers in order; a wrong name raises with what is expected.

    >>> parse_encoding("none+log_n+causal")
    'none+causal+log_n'
    """
    encoding, *modifiers = text.split("+")
    if encoding not in POSITION_ENCODINGS:
        raise ValueError(
            f"encoding {encoding!r} is not known; expected one of {', '.join(POSITION_ENCODINGS)}."
            f"{nearest(encoding, POSITION_ENCODINGS)}"
        )
    for modifier in modifiers:
        if modifier not in MODIFIERS:
            raise ValueError(
                f"{text!r} has the unknown part {modifier!r}; expected ENCODING+PART with parts from "
                f"{', '.join(MODIFIERS)}.{nearest(modifier, MODIFIERS)}"
            )
    return "+".join([encoding, *(name for name in MODIFIERS if name in modifiers)])


def _encoding_variants(source: str, recipe: Recipe, names: list[str]) -> list[_Variant]:
    variants = []
    for name in names:
        changes = encoding_settings(name, recipe)
        says = ", ".join(f"{key}={value}" for key, value in changes.items())
        whole = idle_fields({**recipe.model, **changes}) | changes
        settings = tuple(f"model.{key}={json.dumps(value)}" for key, value in whole.items())
        variants.append(_Variant(source, name, says, settings))
    return variants


def encoding_settings(name: str, recipe: Recipe) -> dict[str, Any]:
    """Fields of HeadcountConfig, by name. A learned table ends where training ends, and is clamped beyond."""
    encoding, *modifiers = name.split("+")
    settings: dict[str, Any] = {"position_embedding_type": encoding}
    if encoding == "learned":
        longest = recipe.the_task.trained_lengths(recipe.options)[1]
        places = recipe.the_task.tokens_at(longest, style_of(recipe))
        settings |= {"max_position_embeddings": places, "position_overflow": "clamp"}
    for modifier in modifiers:
        settings |= MODIFIERS[modifier]
    return settings


def idle_fields(model: dict[str, Any]) -> dict[str, Any]:
    """Defaults for what belongs to the recipe's own encoding and has no effect, which is an error, under another."""
    defaults = {field.name: field.default for field in fields(HeadcountConfig)}
    whole = defaults | model
    positions = {
        name: owners
        for name, owners in EFFECTIVE_WHEN.items()
        if owners.keys() <= {"position_embedding_type", "position_scheme"}
    }
    return {
        name: defaults[name]
        for name, owners in positions.items()
        if whole[name] != defaults[name] and not any(whole[owner] in values for owner, values in owners.items())
    }


def check_name(what: str, name: str, known: Iterable[str]) -> None:
    if name not in known:
        raise ValueError(f"{what} {name!r} is not known; expected one of {', '.join(known)}.{nearest(name, known)}")
