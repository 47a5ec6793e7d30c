"""Publish a run or a data folder on the Hugging Face Hub, in one commit.

headcount push runs/addition --repo-id alice/addition --dry-run
headcount push runs/addition --repo-id alice/addition --local published/addition
headcount push addition-data --repo-id alice/addition-data
headcount push runs/addition --repo-id alice/addition --dataset alice/addition-data --beside runs/addition-1
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .as_written import as_written


if TYPE_CHECKING:
    from ..publishing.repository import Repository


def main(
    folder: Annotated[Path, typer.Argument(help="Folder of headcount train or headcount data.", metavar="DIR")],
    repo_id: Annotated[str, typer.Option(help="NAME or NAMESPACE/NAME of the repository.")],
    private: Annotated[bool, typer.Option("--private", help="Make a new repository private.")] = False,
    revision: Annotated[str | None, typer.Option(help="Branch to push to; default: main.")] = None,
    dataset: Annotated[
        str | None, typer.Option(help="Runs: the published data set that the run was trained on.")
    ] = None,
    beside: Annotated[
        list[Path] | None, typer.Option(help="Runs: another seed of the same recipe, for the card; may be repeated.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the files and show the card; send nothing.")
    ] = False,
    local: Annotated[
        Path | None, typer.Option(help="Write the repository into this folder instead; send nothing.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Publish a run or a data folder on the Hub: everything in one commit, or nothing."""
    from headcount.publishing.hub_upload import check_repo_id, full_name, published_data, push
    from headcount.publishing.repository import repo_type_of, stage_data, stage_run
    from headcount.records.litter import is_empty

    if not sys.stderr.isatty():
        hide_bars()
    if local is not None:
        for name, value in {"--dry-run": dry_run, "--private": private, "--revision": revision}.items():
            if value:
                raise typer.BadParameter(f"{name} has no effect with --local; expected one of the two.")
        if local.exists() and (not local.is_dir() or not is_empty(local)):
            raise typer.BadParameter(f"{local} is there already and not empty; expected a new folder.")
    try:
        check_repo_id(repo_id)
        is_data = repo_type_of(folder) == "dataset"
        if is_data and (dataset is not None or beside):
            name = "--dataset" if dataset is not None else "--beside"
            raise ValueError(f"{name} has no effect on a data folder; expected the folder of a run.")
        if not dry_run and local is None:  # before any work: is there a token, and whose is it?
            repo_id = full_name(repo_id)
        with tempfile.TemporaryDirectory(prefix="headcount-push-") as work:
            if is_data:
                repository = stage_data(folder, repo_id, Path(work))
            else:
                data = None if dataset is None else published_data(dataset)
                note("writing the card, with examples that are really run")
                with as_written(folder):
                    repository = stage_run(folder, repo_id, Path(work), data, tuple(beside or ()))
            if local is not None:
                write_local(repository, local)
                print(local)
                return
            if dry_run:
                show(repository, as_json)
                return
            pushed = push(repository, private, revision, note)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    if as_json:
        print(json.dumps(vars(pushed)))
    elif not pushed.changed:
        print(f"nothing to push: {pushed.repo_id} holds these files already")
    else:
        print(f"pushed {len(repository.files)} files in one commit: {pushed.url}")


def write_local(repository: "Repository", folder: Path) -> None:
    """The files as they would be on the Hub; the folder appears when all of them are there."""
    import shutil

    from headcount.records.files import inside, new_folder
    from headcount.records.locks import alone_in

    with alone_in(folder), new_folder(folder) as partial:
        for name, path in repository.files.items():
            target = inside(partial, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


def hide_bars() -> None:
    from huggingface_hub.utils import disable_progress_bars
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bars()
    disable_progress_bar()


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def show(repository: "Repository", as_json: bool) -> None:
    sizes = {name: path.stat().st_size for name, path in repository.files.items()}
    if as_json:
        about = {"repo_id": repository.repo_id, "repo_type": repository.repo_type}
        files = [{"path": name, "bytes": size} for name, size in sizes.items()]
        print(json.dumps({**about, "files": files, "card": repository.card}, indent=1))
        return
    print(f"{repository.repo_type} {repository.repo_id}: {len(sizes)} files, {sum(sizes.values()):,} bytes")
    for name, size in sizes.items():
        print(f"{size:12,}  {name}")
    print(f"\n{repository.card}", end="")
