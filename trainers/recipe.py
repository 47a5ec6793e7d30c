"""Recipes: YAML files that say everything about a run. `load_recipe("addition", ["training.epochs=1"])`.

That of a task of your own is the `RECIPE` of its Python file, a dict with the same content.

A recipe has a task and three sections: `data` (the options of the task's corpus), `model` (fields of HeadcountConfig)
and `training` (below, and what the task lets one choose for problems that are made while training). It may extend
another one and then names only what differs. Unknown keys are errors. `variants` are changes of it that a study
of lengths can compare with it; a run has none.
"""

import copy
import difflib
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from ..configuration.rules import Rule, flag, fraction, nearest, number_above, one_of, optional, share, whole_number
from ..data_builders.registry import find_task, load_task
from ..data_builders.tasks import NoOptions, Task, options_of
from ..records.files import parse_yaml
from ..records.recipe_file import SECTIONS, check_recipe, read_recipe


RECIPE_FOLDER = Path(__file__).parent / "recipes"
MOST, MOST_ROWS = 10**12, 10**7  # of steps, seeds; of rows in a batch: more is a slip of the keyboard

TRAINING_RULES: dict[str, Rule] = {
    "seed": whole_number(0, MOST),
    "optimizer": one_of(("adamw", "muon")),
    "learning_rate": number_above(0),
    "muon_learning_rate": number_above(0),
    "muon_momentum": fraction(),
    "muon_per_head": flag(),
    "weight_decay": fraction(),
    "warmup": fraction(),
    "decay": one_of(("linear", "cosine", "constant")),
    "gradient_clip": optional(number_above(0)),
    "batch_size": whole_number(1, MOST_ROWS),
    "gradient_accumulation": whole_number(1, MOST_ROWS),
    "steps": optional(whole_number(1, MOST)),
    "epochs": optional(number_above(0)),
    "fresh_data": flag(),
    "precision": one_of(("float32", "bfloat16")),
    "compile": flag(),
    "log_every": whole_number(1),
    "evaluate_every": whole_number(1),
    "checkpoint_every": whole_number(1),
    "target": optional(share()),
}


@dataclass(frozen=True)
class TrainingOptions:
    """- `steps` or `epochs`, one of them. `fresh_data`: every batch is made anew, so only `steps` makes sense.
    - `muon_per_head`: every head's part of a projection is a matrix of its own for Muon; it costs less, and the update
      of one head does not depend on the other heads.
    - `warmup`: share of the steps in which the learning rate rises; `decay`: how it falls after that.
    - `gradient_accumulation`: the batch is worked through in so many parts; the result is the same.
    - `target`: stop as soon as the validation metric reaches it.
    """

    seed: int = 0
    optimizer: str = "adamw"
    learning_rate: float = 1e-3
    muon_learning_rate: float = 0.02
    muon_momentum: float = 0.95
    muon_per_head: bool = False
    betas: tuple[float, float] = (0.9, 0.98)
    weight_decay: float = 0.0
    warmup: float = 0.1
    decay: str = "linear"
    gradient_clip: float | None = 1.0
    batch_size: int = 64
    gradient_accumulation: int = 1
    steps: int | None = None
    epochs: float | None = None
    fresh_data: bool = False
    precision: str = "float32"
    compile: bool = False
    log_every: int = 10
    evaluate_every: int = 100
    checkpoint_every: int = 100
    target: float | None = None

    def __post_init__(self) -> None:
        for name, rule in TRAINING_RULES.items():
            value = getattr(self, name)
            if not rule.accepts(value):
                hint = nearest(value, rule.names) if isinstance(value, str) else ""
                raise ValueError(f"training.{name}={value!r} is not allowed; expected {rule.allowed}.{hint}")
        fits = (
            isinstance(self.betas, (list, tuple)) and len(self.betas) == 2 and all(map(fraction().accepts, self.betas))
        )
        if not fits:
            raise ValueError(f"training.betas={self.betas!r} is not allowed; expected two numbers from 0 up to 1.")
        object.__setattr__(self, "betas", tuple(self.betas))
        if (self.steps is None) == (self.epochs is None):
            raise ValueError(
                f"training.steps={self.steps} and training.epochs={self.epochs} are not allowed together; "
                "expected exactly one of them."
            )
        if self.fresh_data and self.steps is None:
            raise ValueError("training.epochs means nothing with fresh_data=true; expected training.steps.")
        if self.batch_size % self.gradient_accumulation:
            raise ValueError(
                f"training.gradient_accumulation={self.gradient_accumulation} is not allowed; expected a divisor of "
                f"batch_size={self.batch_size}."
            )


@dataclass(frozen=True)
class Recipe:
    name: str
    task: str
    description: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    training: TrainingOptions = field(default_factory=lambda: TrainingOptions(steps=1))
    stream: Any = field(default_factory=NoOptions)  # the task's choices for problems that are made while training

    @cached_property
    def options(self) -> Any:
        """The options of the task, checked."""
        return options_of(self.the_task, self.data)

    @property
    def the_task(self) -> Task:
        return find_task(self.task)

    def with_seed(self, seed: int) -> "Recipe":
        return replace(self, training=replace(self.training, seed=seed))

    def to_yaml(self) -> str:
        plain = asdict(self)
        plain["training"] |= plain.pop("stream")
        plain["training"] = {n: list(v) if isinstance(v, tuple) else v for n, v in plain["training"].items()}
        return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True)


@dataclass(frozen=True)
class Variant:
    """A change of a recipe, for comparison: `settings` are KEY=VALUE as for --set."""

    says: str
    settings: tuple[str, ...] = ()
    baseline: bool = False  # another way to do the same, not the recipe without a part


def recipe_names() -> list[str]:
    return sorted(path.stem for path in RECIPE_FOLDER.glob("*.yaml"))


def describe_recipes() -> dict[str, str]:
    """Name -> one sentence, for `headcount ls recipes`."""
    return {name: _read(name).get("description", "") for name in recipe_names()}


def load_variants(name_or_path: str) -> dict[str, Variant]:
    """The variants that a recipe names, in order; none is an empty dict."""
    variants = _read(name_or_path).get("variants") or {}
    for found in variants.values() if isinstance(variants, dict) else [variants]:
        facts = found if isinstance(found, dict) else {}
        if not isinstance(facts.get("settings") or [], list) or not isinstance(facts.get("says"), str):
            raise ValueError(f"{name_or_path} has a variant {found!r}; expected `says` and a list of `settings`.")
    return {
        name: Variant(found["says"], tuple(map(str, found.get("settings") or ())), bool(found.get("baseline", False)))
        for name, found in variants.items()
    }


def load_recipe(name_or_path: str, overrides: list[str] | None = None) -> Recipe:
    """A recipe by name or by the path of a file, with `key=value` overrides applied and everything checked.

    A Python file with a task is run; the recipe of a run's folder may bring such a task along (see own_tasks.py).
    """
    content = _read(name_or_path)
    path = Path(name_or_path)
    find_task(str(content.get("task")), None if path.suffix == ".py" else path.parent)
    return make_recipe(content, overrides)


def make_recipe(content: dict[str, Any], overrides: list[str] | None = None) -> Recipe:
    """A recipe of what a file of one holds, with `key=value` overrides applied and everything checked."""
    changed = [_override(content, override) for override in overrides or []]
    recipe = _build(content)
    for name in changed:
        if name.startswith("muon_") and recipe.training.optimizer != "muon":
            raise ValueError(
                f"--set {name} has no effect with training.optimizer={recipe.training.optimizer!r}; expected "
                "training.optimizer=muon."
            )
    return recipe


def _read(name_or_path: str, extending: tuple[Path, ...] = ()) -> dict[str, Any]:
    """The content of a recipe over that of the one it extends; `extending`: the files that led here."""
    path = Path(name_or_path)
    if path.suffix == ".py":
        content = _own_recipe(path, named=not extending)
    else:
        path, content = _recipe_file(path)
    if path.absolute() in extending:
        raise ValueError(f"{path} extends itself, directly or by way of others; expected recipes that end somewhere.")
    base = _read(content.pop("extends"), (*extending, path.absolute())) if "extends" in content else {}
    merged = {**base, **content}
    for section in SECTIONS:
        merged[section] = {**(base.get(section) or {}), **(content.get(section) or {})}
    merged["name"] = content.get("name", path.stem)
    return merged


def _own_recipe(path: Path, named: bool) -> dict[str, Any]:
    """The recipe in a Python file with a task, and that task's; `named`: by the user, not by another recipe."""
    task = load_task(path, named)
    if task.recipe is None:
        raise ValueError(f"{path} has no RECIPE; expected a dict with model and training, to train its TASK.")
    content = check_recipe(copy.deepcopy(dict(task.recipe)), f"RECIPE of {path}")
    return {**content, "task": task.name, "name": task.name}


def _recipe_file(path: Path) -> tuple[Path, dict[str, Any]]:
    """The YAML file that a name or path stands for, and what is in it."""
    if path.suffix not in (".yaml", ".yml"):
        name, known = str(path), recipe_names()
        if name not in known:
            raise ValueError(
                f"there is no recipe {name!r}; expected a YAML file, a Python file with a task, or one of "
                f"{', '.join(known)}.{nearest(name, known)}"
            )
        path = RECIPE_FOLDER / f"{name}.yaml"
    if not path.exists():
        raise ValueError(f"there is no file {path}; expected the path of a recipe in YAML.")
    return path, read_recipe(path)


def _known_keys(task: str) -> dict[str, list[str]]:
    from ..configuration.configuration_headcount import HeadcountConfig

    found = find_task(task)
    return {
        "data": [f.name for f in fields(found.options)],
        # Not those of transformers itself: they are about how a model is used.
        "model": [f.name for f in fields(HeadcountConfig) if f.name in HeadcountConfig.__annotations__],
        "training": [f.name for f in (*fields(TrainingOptions), *fields(found.stream))],
    }


def _override(content: dict[str, Any], override: str) -> str:
    """Writes the value into its section, and gives back the name of the key."""
    key, separator, text = override.partition("=")
    if not separator:
        raise ValueError(f"--set {override!r} has no '='; expected KEY=VALUE, such as training.batch_size=128.")
    known = _known_keys(str(content.get("task")))
    section, _, name = key.rpartition(".")
    if not section:
        homes = [section for section in SECTIONS if name in known[section]]
        if len(homes) != 1:
            everything = [f"{home}.{option}" for home in SECTIONS for option in known[home]]
            found = difflib.get_close_matches(key, [e.split(".")[1] for e in everything] + everything, n=1)
            reason = f"is in {' and '.join(homes)}" if homes else "is not a key of the recipe"
            hint = f" Did you mean {found[0]!r}?" if found and not homes else ""
            raise ValueError(
                f"--set {key!r} {reason}; expected SECTION.KEY with SECTION one of data, model, training.{hint}"
            )
        section = homes[0]
    if section not in SECTIONS:
        raise ValueError(f"--set {key!r} names no section of a recipe; expected data, model or training.")
    value = parse_yaml(text, f"the value of --set {key}", "KEY=VALUE")
    if isinstance(value, str):
        value = _number(value)
    content[section][name] = value
    other = {"steps": "epochs", "epochs": "steps"}.get(name) if section == "training" else None
    if other and value is not None:
        content[section].pop(other, None)  # the two exclude each other; the one asked for wins
    return name


def _number(text: str) -> float | str:
    """YAML 1.1 reads 1e-3 as text."""
    try:
        return float(text)
    except ValueError:
        return text


def _build(content: dict[str, Any]) -> Recipe:
    top = [f.name for f in fields(Recipe) if f.name != "stream"]
    content = {key: value for key, value in content.items() if key != "variants"}
    for key in content:
        if key not in top:
            raise ValueError(f"{key!r} is not a key of a recipe.{nearest(key, top)}")
    task = find_task(str(content.get("task")))
    for section, known in _known_keys(task.name).items():
        for key in content[section]:
            if key not in known:
                raise ValueError(f"{section}.{key} is not a key of a recipe of {task.name}.{nearest(key, known)}")
    values: dict[str, Any] = {key: _number(v) if isinstance(v, str) else v for key, v in content["training"].items()}
    choices = [f.name for f in fields(task.stream)]
    training = TrainingOptions(**{key: value for key, value in values.items() if key not in choices})
    stream = task.stream(**{key: value for key, value in values.items() if key in choices})
    for name in choices if not training.fresh_data else ():
        if getattr(stream, name) != getattr(task.stream(), name):
            raise ValueError(f"training.{name} has no effect with fresh_data=false; expected fresh_data=true.")
    return Recipe(**{**content, "training": training, "stream": stream})
