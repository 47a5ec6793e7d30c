"""What a repository on the Hub is made of: a run or a data folder becomes a list of files with a card.

    model      model.safetensors, config.json, generation_config.json, tokenizer; the code of the model, flattened;
               README.md; recipe.yaml, provenance.json, results/; .eval_results/, figures/, report.html if there
    data set   README.md, manifest.json, parquet files, figures

Nothing is sent here; see hub_upload.py.
"""

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from . import __version__


RUN_FILES = ("recipe.yaml", "provenance.json", "report.html")
RUN_PATTERNS = ("results/*.json", "figures/*.png", "figures/*.svg")


@dataclass(frozen=True)
class PublishedData:
    """A data set on the Hub, as its repository describes it."""

    repo_id: str
    revision: str  # the commit
    manifest: dict


@dataclass(frozen=True)
class Repository:
    repo_type: str  # "model" or "dataset"
    repo_id: str
    files: dict[str, Path]  # path in the repository -> file

    @property
    def card(self) -> str:
        return self.files["README.md"].read_text(encoding="utf-8")

    @property
    def size(self) -> int:
        return sum(path.stat().st_size for path in self.files.values())


def repo_type_of(folder: Path) -> str:
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder; expected one of headcount train or headcount data.")
    if (folder / "recipe.yaml").exists():
        return "model"
    if (folder / "manifest.json").exists():
        return "dataset"
    raise ValueError(
        f"{folder} has neither recipe.yaml nor manifest.json; expected a folder of headcount train or headcount data."
    )


def stage_run(
    folder: Path, repo_id: str, work: Path, data: PublishedData | None = None, beside: tuple[Path, ...] = ()
) -> Repository:
    """The model repository of a run; files that differ from the run's own are written into the folder `work`.

    `data` is the data set on the Hub that the run was trained on; `beside` are runs of the same recipe with other
    seeds, for the card.
    """
    from .data_builders.card import command_of
    from .data_builders.tokenization import HeadcountTokenizer
    from .modeling.remote_code import name_code
    from .reports.card import CardFacts, model_card
    from .reports.card_examples import examples_for, run_examples
    from .reports.eval_results import eval_results_yaml
    from .reports.run_record import read_run
    from .trainers.model_building import MODEL_CLASSES, make_config, problem_format
    from .trainers.recipe import load_recipe
    from .trainers.training_data import make_corpus

    record = read_run(folder)
    others = tuple(read_run(other) for other in beside)
    check_same_recipe(record, others)
    recipe = load_recipe(str(folder / "recipe.yaml"))
    options = make_corpus(recipe).options
    if data is not None:
        check_data(data, recipe.task, options)

    model = MODEL_CLASSES[make_config(recipe).architecture].from_pretrained(folder / "model")
    if recipe.task == "addition":
        for name, value in problem_format(recipe).items():
            setattr(model.config, name, value)
    name_code(model.config)
    model.save_pretrained(work)
    HeadcountTokenizer.from_pretrained(folder / "model").save_pretrained(work)
    for name in RUN_FILES:
        if (folder / name).exists():
            shutil.copyfile(folder / name, work / name)
    for path in (path for pattern in RUN_PATTERNS for path in sorted(folder.glob(pattern))):
        target = work / path.relative_to(folder)
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(path, target)
    if data is not None:
        (work / ".eval_results").mkdir()
        text = eval_results_yaml(record, data.repo_id, data.revision)
        (work / ".eval_results" / f"{recipe.task}.yaml").write_text(text, encoding="utf-8")

    record.config.update(json.loads((work / "config.json").read_text()))
    facts = CardFacts(
        repo_id=repo_id,
        version=__version__,
        data_command=command_of(recipe.task, options).replace("--output DIR", f"--output {recipe.task}-data"),
        data_options=asdict(options),
        examples=run_examples(examples_for(record, repo_id), repo_id, work),
        dataset=None if data is None else data.repo_id,
        other_seeds=others,
    )
    model_card(record, facts).save(work / "README.md")
    files = {path.relative_to(work).as_posix(): path for path in sorted(work.rglob("*")) if path.is_file()}
    return Repository("model", repo_id, files)


def check_same_recipe(record, others) -> None:
    """Raises unless the other runs differ from this one in their training seed only."""
    seeds = {record.seed: record.folder}
    for other in others:
        mine, theirs = (
            {**run.recipe, "training": {**run.recipe["training"], "seed": None}} for run in (record, other)
        )
        if mine != theirs:
            raise ValueError(
                f"{other.folder} was not trained with the recipe of {record.folder}; expected the same recipe with "
                "another seed."
            )
        if other.seed in seeds:
            raise ValueError(
                f"{other.folder} has seed {other.seed}, as {seeds[other.seed]}; expected runs with different seeds."
            )
        seeds[other.seed] = other.folder


def check_data(data: PublishedData, task: str, options) -> None:
    """Raises unless the data set was made with the options of the run, so that its rows are those of the run."""
    from .data_builders.builders import CORPUS_VERSION

    wanted = {"task": task, "corpus_version": CORPUS_VERSION, "options": json.loads(json.dumps(asdict(options)))}
    for name, value in wanted.items():
        found = data.manifest.get(name)
        if found == value:
            continue
        if name == "options" and isinstance(found, dict):
            name = next(key for key in value | found if found.get(key) != value.get(key))
            found, value = found.get(name), value.get(name)
        raise ValueError(
            f"{data.repo_id} was made with {name}={found!r}, but this run was trained with {value!r}; expected the "
            "data set of the run."
        )


def stage_data(folder: Path, repo_id: str, work: Path) -> Repository:
    """The data set repository of a folder of `headcount data`, checked against its hashes."""
    from .data_builders.folder import check_folder
    from .reports.card import citation

    manifest = check_folder(folder)
    card = (folder / "README.md").read_text(encoding="utf-8")
    card = card.replace("load_dataset(DIR,", f'load_dataset("{repo_id}",')
    card = card.replace("--output DIR", f"--output {repo_id.split('/')[-1]}")
    card = f"{card.rstrip()}\n\n## Citation\n\n```bibtex\n{citation(__version__)}\n```\n"
    (work / "README.md").write_text(card, encoding="utf-8")
    names = [*manifest["files"], *(path.relative_to(folder).as_posix() for path in sorted(folder.glob("figures/*")))]
    files = {"README.md": work / "README.md", "manifest.json": folder / "manifest.json"}
    return Repository("dataset", repo_id, files | {name: folder / name for name in sorted(names)})
