"""Sends a repository to the Hub: one commit, or nothing. Every failure is one sentence; a token is in none of them."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..data_builders.hub import ask_hub, reason, transfer_limit
from ..records.files import read_json as read_file
from .repository import VERSION, PublishedData, Repository


if TYPE_CHECKING:
    from huggingface_hub import HfApi


# Files that headcount itself puts into a repository under names that change; old ones go in the commit that replaces
# them. Anything else that an owner has added stays.
OWN_FILES = ("*.py", "*.safetensors", "*.parquet", "results/*.json", "figures/*", ".eval_results/*.yaml")
NEW_REPOSITORY = {".gitattributes"}  # what the Hub itself puts into a new one


class PushFailed(ValueError):
    """A push that left nothing behind; the message says why."""


@dataclass(frozen=True)
class Pushed:
    repo_id: str
    commit: str
    url: str
    changed: bool  # False if the repository held just these files already, so that there was nothing to commit


def check_repo_id(repo_id: str) -> None:
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(repo_id)
    except HFValidationError as error:
        raise PushFailed(
            f"--repo-id {repo_id!r} is not a name that the Hub allows; expected NAME or NAMESPACE/NAME of letters, "
            "digits, '-', '_' and '.', such as alice/addition."
        ) from error


def full_name(repo_id: str) -> str:
    """NAMESPACE/NAME; a bare name goes to the user's namespace. Raises if there is no token, or not a good one."""
    from huggingface_hub import HfApi, get_token

    check_repo_id(repo_id)
    if get_token() is None:
        raise PushFailed(
            "there is no token for the Hub; expected one from `hf auth login` or in the environment variable HF_TOKEN."
        )
    try:
        user = ask_hub(lambda: str(HfApi().whoami()["name"]))
    except Exception as error:
        raise PushFailed(f"nothing was pushed to {repo_id}: {reason(error)}.") from error
    return repo_id if "/" in repo_id else f"{user}/{repo_id}"


def published_data(repo_id: str) -> PublishedData:
    """The manifest of a data set that `headcount push` has published, at its newest commit."""
    from huggingface_hub import HfApi

    check_repo_id(repo_id)
    api = HfApi()
    try:
        revision = ask_hub(lambda: api.repo_info(repo_id, repo_type="dataset").sha)
        manifest = read_json(api, repo_id, "dataset", "manifest.json", revision)
    except Exception as error:
        raise PushFailed(f"the data set {repo_id} cannot be read: {reason(error)}.") from error
    if manifest is None or revision is None:
        raise PushFailed(f"{repo_id} has no manifest.json; expected a data set that headcount has published.")
    return PublishedData(repo_id, revision, manifest)


def push(
    repository: Repository,
    private: bool = False,
    revision: str | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Pushed:
    """Makes the repository on the Hub if need be, and puts all files there in one commit.

    If anything fails, or Ctrl-C is pressed, a repository or branch that was made for this push is removed again.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

    api, repo_id = HfApi(), full_name(repository.repo_id)
    place: dict[str, Any] = {"repo_id": repo_id, "repo_type": repository.repo_type}
    made = head = None  # what to remove if the push fails; the commit before it
    try:
        present = existing_files(api, place, private)
        if present is None:
            ask_hub(lambda: api.create_repo(**place, private=private))
            made = "repository"
        if revision is not None and revision not in branches(api, place):
            ask_hub(lambda: api.create_branch(**place, branch=str(revision)))
            made = made or "branch"
        if present is not None and revision is not None:
            present = set(ask_hub(lambda: api.list_repo_files(**place, revision=revision)))
        head = ask_hub(lambda: api.repo_info(**place, revision=revision).sha)
        say(f"sending {len(repository.files)} files, {repository.size / 1e6:.1f} MB, to {repo_id}")
        operations: list[CommitOperationAdd | CommitOperationDelete] = [
            CommitOperationAdd(name, path) for name, path in repository.files.items()
        ]
        stale = sorted(name for name in present or () if name not in repository.files and is_own(name))
        operations += [CommitOperationDelete(name) for name in stale]
        message = f"Upload {repository.repo_type} with headcount {VERSION}"
        done = ask_hub(
            lambda: api.create_commit(**place, operations=operations, commit_message=message, revision=revision),
            transfer_limit(repository.size),
        )
        return Pushed(repo_id, done.oid, done.commit_url, changed=done.oid != head)
    except PushFailed:
        raise
    except BaseException as error:
        left = undo(api, place, made, revision) if made else answer_lost(api, place, revision, head)
        if not isinstance(error, Exception):
            raise
        raise PushFailed(f"nothing was pushed to {repository.repo_id}: {reason(error)}.{left}") from error


def existing_files(api: "HfApi", place: dict[str, Any], private: bool) -> set[str] | None:
    """The files on the main branch, or None if there is no such repository; raises if it is not headcount's."""
    from huggingface_hub.errors import RepositoryNotFoundError

    try:
        info = ask_hub(lambda: api.repo_info(**place))
    except RepositoryNotFoundError:
        return None
    names = {sibling.rfilename for sibling in getattr(info, "siblings", None) or ()}
    if names - NEW_REPOSITORY:
        mark, field = {"model": ("config.json", "model_type"), "dataset": ("manifest.json", "corpus_version")}[
            place["repo_type"]
        ]
        found = read_json(api, place["repo_id"], place["repo_type"], mark, info.sha) if mark in names else None
        ours = found is not None and (found.get(field) == "headcount" if field == "model_type" else field in found)
        if not ours:
            raise PushFailed(
                f"{place['repo_id']} exists and was not made by headcount; nothing was pushed; expected a new name or "
                "a repository of headcount."
            )
    if private and not info.private:
        raise PushFailed(
            f"{place['repo_id']} exists and is public, where --private has no effect; nothing was pushed; expected a "
            "new name, or the push without --private."
        )
    return names


def branches(api: "HfApi", place: dict[str, Any]) -> set[str]:
    return {branch.name for branch in ask_hub(lambda: api.list_repo_refs(**place)).branches}


def read_json(api: "HfApi", repo_id: str, repo_type: str, name: str, revision: str | None) -> dict | None:
    from huggingface_hub.errors import RemoteEntryNotFoundError

    with tempfile.TemporaryDirectory() as cache:
        try:
            path = ask_hub(
                lambda: api.hf_hub_download(repo_id, name, repo_type=repo_type, revision=revision, cache_dir=cache)
            )
        except RemoteEntryNotFoundError:
            return None
        try:
            return read_file(Path(path))
        except ValueError:
            return None


def is_own(name: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in OWN_FILES)


def undo(api: "HfApi", place: dict[str, Any], made: str, revision: str | None) -> str:
    """Removes what was made for a push that failed; a sentence if that fails too."""
    try:
        if made == "repository":
            ask_hub(lambda: api.delete_repo(**place))
        elif revision is not None:
            ask_hub(lambda: api.delete_branch(**place, branch=revision))
    except Exception as error:
        what = f"repository {place['repo_id']}" if made == "repository" else f"branch {revision}"
        return f" The {what} was made for it and could not be removed ({reason(error)}); remove it by hand."
    return ""


def answer_lost(api: "HfApi", place: dict[str, Any], revision: str | None, head: str | None) -> str:
    """A sentence if the branch has moved on although the push failed: perhaps only the Hub's answer was lost."""
    try:
        moved = head is not None and ask_hub(lambda: api.repo_info(**place, revision=revision)).sha != head
    except Exception:
        return ""  # the reason of the failure is said already
    return " But the branch has a new commit since then; look there before you push again." if moved else ""
