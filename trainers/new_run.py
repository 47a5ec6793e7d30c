"""The folder of a new run, or of one that goes on."""

import os
import shutil
from pathlib import Path

from ..data_builders.registry import check_kept, keep_task
from ..records.files import write_text
from ..records.litter import is_empty
from ..records.run_folder import METRICS, PROVENANCE, RECIPE
from .recipe import Recipe, load_recipe


def prepare_folder(folder: Path, recipe: Recipe, resume: bool, overwrite: bool, bytes_needed: int) -> None:
    """Makes the folder, or says in one sentence why the run cannot live there."""
    finished, started = folder / PROVENANCE, folder / RECIPE
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; expected a folder for the run.")
    if started.exists() and overwrite:
        remove_run(folder)
    elif started.exists() and resume:
        check_kept(recipe.the_task, folder)
        if load_recipe(str(started)) != recipe:  # as values: an older file may not name every option
            raise ValueError(
                f"{folder} was started with other settings than now asked for; expected the same recipe, seed and "
                f"--set as in {started}."
            )
    elif started.exists():
        state = "holds a finished run" if finished.exists() else "holds an unfinished run"
        raise ValueError(
            f"{folder} {state}; expected --resume to go on, --overwrite to start anew, or another folder."
        )
    elif not is_empty(folder):
        raise ValueError(f"{folder} is not empty and holds no run of headcount; expected a new folder.")
    elif resume and not folder.exists():  # an empty one is of a run that was stopped in its first moments
        raise ValueError(f"{folder} holds no run to resume; expected the folder of an earlier run.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}"
        probe.write_bytes(b"headcount")
        probe.unlink()
    except OSError as error:
        raise ValueError(
            f"{folder} cannot be written ({error.strerror}); expected a folder with write permission."
        ) from error
    free = shutil.disk_usage(folder).free
    if free < bytes_needed:
        raise ValueError(
            f"{folder} is on a disk with {free / 1e6:.0f} MB left, but this run needs about "
            f"{bytes_needed / 1e6:.0f} MB; expected more space, or a smaller --keep."
        )
    if overwrite or not started.exists():
        keep_task(recipe.the_task, folder)
        write_text(started, recipe.to_yaml())


def remove_run(folder: Path) -> None:
    """Removes what makes a run but its recipe, and nothing else; first the file that calls it finished.

    The recipe stays until there is another, so that the folder is a run at every moment.
    """
    for name in (PROVENANCE, METRICS):
        (folder / name).unlink(missing_ok=True)
    for name in ("results", "figures", "model", "checkpoints"):
        if (folder / name).is_dir():
            shutil.rmtree(folder / name)
