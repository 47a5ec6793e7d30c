"""What a repository on the Hub is made of: a run or a data folder becomes a list of files with a card.

    model      model.safetensors, config.json, generation_config.json, tokenizer; the code of the model, flattened;
               README.md; recipe.yaml, provenance.json, results/; .eval_results/, figures/, report.html if there
    data set   README.md, manifest.json, parquet files, figures

Nothing is sent here; see hub_upload.py.
"""

import shutil
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from ..data_builders.registry import KEPT
from ..data_builders.tasks import plain_options
from ..records.files import files_inside, kept_inside, read_json, read_text, write_json, write_text
from ..records.provenance import model_hashes
from ..records.run_folder import PROVENANCE, Run, read_run


VERSION = metadata.version("headcount")
RUN_FILES = ("recipe.yaml", "provenance.json", "report.html", *KEPT)
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

    Args:
        folder: a finished and evaluated run.
        repo_id: name of the repository, for the card.
        work: an empty folder, which must stay as long as the repository is needed.
        data: the data set on the Hub that the run was trained on.
        beside: runs of the same recipe with other seeds, for the card.

    Returns:
        The files by their path in the repository; nothing is sent.
    """
    from ..modeling.remote_code import name_code
    from ..trainers.model_building import tokenizer_of
    from ..trainers.trained_run import load_run
    from .card import CardFacts, model_card
    from .card_examples import published_model, run_examples
    from .eval_results import eval_results_yaml

    record = read_run(folder, whole=True)
    others = tuple(read_run(other, whole=True) for other in beside)
    check_same_recipe(record, others)
    run = load_run(folder)
    task, options, model = run.recipe.the_task, run.corpus.options, run.model
    if data is not None:
        check_data(data, task.name, options)

    name_code(model.config)
    model.save_pretrained(work)
    tokenizer_of(run.recipe).save_pretrained(work)  # from the recipe: the folder may hold other texts beside it
    hashes = model_hashes(work)
    for path in run_files(folder):
        target = work / path.relative_to(folder)
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(path, target)
    write_json(work / PROVENANCE, {**record.provenance, "model": hashes})
    if data is not None:
        text = eval_results_yaml(record, data.repo_id, data.revision)
        write_text(work / ".eval_results" / f"{task.name}.yaml", text)

    record = replace(record, config={**record.config, **read_json(work / "config.json")})
    examples = task.card_examples(published_model(record, repo_id, model.list_heads(), options))
    facts = CardFacts(
        repo_id=repo_id,
        version=VERSION,
        data_command=task.data_command(options).replace("--output DIR", f"--output {task.name}-data"),
        data_options=asdict(options),
        examples=run_examples(examples, repo_id, work),
        dataset=None if data is None else data.repo_id,
        other_seeds=others,
    )
    model_card(record, facts).save(work / "README.md")
    files = {path.relative_to(work).as_posix(): path for path in sorted(work.rglob("*")) if path.is_file()}
    return Repository("model", repo_id, files)


def run_files(folder: Path) -> list[Path]:
    """What is published of a run as it is."""
    found = [kept_inside(folder, folder / name) for name in RUN_FILES if (folder / name).is_file()]
    return found + [path for pattern in RUN_PATTERNS for path in files_inside(folder, pattern)]


def check_same_recipe(record: Run, others: tuple[Run, ...]) -> None:
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


def check_data(data: PublishedData, task: str, options: Any) -> None:
    """Raises unless the data set was made with the options of the run, so that its rows are those of the run."""
    from ..data_builders.builders import CORPUS_VERSION

    wanted: dict[str, Any] = {"task": task, "corpus_version": CORPUS_VERSION, "options": plain_options(options)}
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
    from ..data_builders.folder import check_folder
    from .card import citation

    manifest = check_folder(folder)
    card = read_text(folder / "README.md")
    card = card.replace("load_dataset(DIR,", f'load_dataset("{repo_id}",')
    card = card.replace("--output DIR", f"--output {repo_id.split('/')[-1]}")
    card = f"{card.rstrip()}\n\n## Citation\n\n```bibtex\n{citation(VERSION)}\n```\n"
    (work / "README.md").write_text(card, encoding="utf-8")
    names = [*manifest["files"], *(name for name in KEPT if (folder / name).is_file())]
    names += (path.relative_to(folder).as_posix() for path in files_inside(folder, "figures/*"))
    files = {"README.md": work / "README.md", "manifest.json": folder / "manifest.json"}
    return Repository("dataset", repo_id, files | {name: folder / name for name in sorted(names)})
