"""What a push that fails says and leaves behind: one sentence, and nothing."""

import shutil

import pytest
from huggingface_hub import constants
from huggingface_hub.utils import _http

from headcount.publishing.hub_upload import PushFailed, push
from headcount.publishing.repository import Repository
from headcount.scripts.cli import run as headcount


def pushes(hub) -> int:
    return sum(len(repo.commits) - 1 for repo in hub.repos.values())


# Which request fails, and how; a push sends several files before its commit.
FAILURES = {
    "first upload": (lambda method, path, seen: method == "PUT", 403),
    "second upload": (lambda method, path, seen: method == "PUT" and seen > 1, 403),
    "upload is cut": (lambda method, path, seen: method == "PUT" and seen > 1, "cut"),
    "verification": (lambda method, path, seen: "lfs-verify" in path, 400),
    "commit": (lambda method, path, seen: "/commit/" in path, 413),
    "card is refused": (lambda method, path, seen: "validate-yaml" in path, 400),
}


@pytest.mark.parametrize("what", FAILURES)
@pytest.mark.parametrize("exists", [False, True])
def test_a_push_that_fails_half_way_leaves_nothing(what, exists, hub, staged, token, monkeypatch):
    monkeypatch.setattr(_http.time, "sleep", lambda seconds: None)  # the client tries a broken upload again, slowly
    before = None
    if exists:
        push(staged)
        before = dict(hub.repos["dataset", "alice/sums"].commits)
        hub.blobs.clear()
        staged.files["README.md"].write_text(staged.card + "\nmore\n")
        changed = staged.files["README.md"].parent / "new.parquet"
        changed.write_bytes(b"new")
        staged.files["default/new.parquet"] = changed
        second = changed.with_name("newer.parquet")
        second.write_bytes(b"newer")
        staged.files["default/newer.parquet"] = second
    wanted, status = FAILURES[what]
    seen = []

    def fail(method, path):
        seen.extend([path] if method == "PUT" else [])
        return status if wanted(method, path, len(set(seen))) else None

    hub.fail = fail
    with pytest.raises(PushFailed, match="nothing was pushed to alice/sums: ") as error:
        push(staged)
    assert token not in str(error.value) and "\n" not in str(error.value)
    if exists:
        assert hub.repos["dataset", "alice/sums"].commits == before
    else:
        assert hub.repos == {}


def test_ctrl_c_leaves_nothing(hub, staged, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("huggingface_hub.lfs._upload_single_part", interrupted)
    with pytest.raises(KeyboardInterrupt):
        push(staged)
    assert hub.repos == {}


def test_what_cannot_be_removed_again_is_said(hub, staged):
    hub.fail = lambda method, path: 403 if method in ("PUT", "DELETE") else None
    sentence = (
        r"may not write there.*\. The repository alice/sums was made for it and could not be removed \(.*by hand"
    )
    with pytest.raises(PushFailed, match=sentence):
        push(staged)


def test_a_repository_of_headcount_that_belongs_to_somebody_else_stays_as_it_is(hub, staged):
    files = {name: path.read_bytes() for name, path in staged.files.items()}
    repo = hub.add_repo("dataset", "bob/sums", files=files)
    staged.files["README.md"].write_text(staged.card + "mine now\n")
    with pytest.raises(PushFailed, match="nothing was pushed to bob/sums: the token may not write there"):
        push(Repository("dataset", "bob/sums", staged.files))
    assert len(repo.commits) == 1


def test_a_failed_push_to_a_new_branch_removes_the_branch(hub, staged):
    push(staged)
    staged.files["README.md"].write_text(staged.card + "\nmore\n")
    hub.fail = lambda method, path: 400 if "/commit/" in path else None
    with pytest.raises(PushFailed):
        push(staged, revision="try")
    assert set(hub.repos["dataset", "alice/sums"].branches) == {"main"}


def test_branches_and_later_pushes(hub, staged, tmp_path):
    push(staged)
    repo = hub.repos["dataset", "alice/sums"]
    repo.commit("main", {**repo.files(), "NOTES.md": b"mine", "default/old-1.parquet": b"old"}, "by hand")
    before = repo.files()
    push(staged, revision="v2")
    assert repo.files() == before  # main is as it was
    assert "NOTES.md" in repo.files("v2") and "default/old-1.parquet" not in repo.files("v2")
    push(staged)
    assert repo.files().keys() == {*staged.files, "NOTES.md", ".gitattributes"}
    assert len(repo.commits) == 5


def test_the_same_again_makes_no_commit(hub, staged, data, capsys):
    assert push(staged).changed
    assert not push(staged).changed and len(hub.repos["dataset", "alice/sums"].commits) == 2
    assert headcount(["push", str(data), "--repo-id", "alice/sums"]) == 0
    assert capsys.readouterr().out == "nothing to push: alice/sums holds these files already\n"


def test_a_commit_whose_answer_was_lost_is_said(hub, staged):
    push(staged)
    staged.files["README.md"].write_text(staged.card + "\nmore\n")
    repo = hub.repos["dataset", "alice/sums"]

    def lose_the_answer(method, path):
        if "/commit/" in path:
            repo.commit("main", {**repo.files(), "README.md": b"more"}, "it arrived")
            return "cut"
        return None

    hub.fail = lose_the_answer
    with pytest.raises(PushFailed, match="But the branch has a new commit since then; look there before you push"):
        push(staged)


@pytest.mark.parametrize(
    "case, sentence",
    [
        (
            "no token",
            "there is no token for the Hub; expected one from `hf auth login` or in the environment variable",
        ),
        ("wrong token", "nothing was pushed to alice/sums: the Hub does not accept the token; log in again"),
        (
            "no network",
            "nothing was pushed to alice/sums: http://127.0.0.1:9 cannot be reached (is there a network?).",
        ),
        ("offline", "nothing was pushed to alice/sums: HF_HUB_OFFLINE is set"),
        (
            "of somebody else",
            "nothing was pushed to bob/sums: the token may not write there; expected a repository of",
        ),
        (
            "not by headcount",
            "alice/sums exists and was not made by headcount; nothing was pushed; expected a new name",
        ),
        ("public", "alice/sums exists and is public, where --private has no effect; nothing was pushed"),
        ("name", "--repo-id 'alice/my sums' is not a name that the Hub allows; expected NAME or NAMESPACE/NAME"),
        ("no folder", "nowhere is not a folder; expected one of headcount train or headcount data"),
        ("other folder", "has neither recipe.yaml nor manifest.json; expected a folder of headcount train or"),
        ("dead option", "--dataset has no effect on a data folder; expected the folder of a run"),
    ],
)
def test_mistakes_are_one_sentence_and_push_nothing(case, sentence, hub, data, token, capsys, monkeypatch, tmp_path):
    arguments, repo_id, options, present = str(data), "alice/sums", [], 0
    if case == "no token":
        monkeypatch.delenv("HF_TOKEN")
    elif case == "wrong token":
        monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    elif case == "no network":
        monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    elif case == "offline":
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    elif case == "of somebody else":
        repo_id = "bob/sums"
    elif case == "not by headcount":
        present = hub.add_repo("dataset", "alice/sums", files={"novel.txt": b"call me Ishmael"})
    elif case == "public":
        present, options = hub.add_repo("dataset", "alice/sums"), ["--private"]
    elif case == "name":
        repo_id = "alice/my sums"
    elif case == "no folder":
        arguments = "nowhere"
    elif case == "other folder":
        arguments = str(tmp_path)
    elif case == "dead option":
        options = ["--dataset", "alice/sums"]
    assert headcount(["push", arguments, "--repo-id", repo_id, *options]) == 2
    printed = capsys.readouterr()
    (line,) = [line for line in printed.err.splitlines() if line.startswith("headcount: ")]
    assert sentence in line and printed.out == "" and token not in printed.err and "Traceback" not in printed.err
    assert pushes(hub) == 0 and len(hub.repos) == (1 if present else 0)


def test_broken_folders_are_refused(hub, data, tmp_path, capsys):
    shutil.copytree(data, tmp_path / "data")
    next((tmp_path / "data").rglob("train-*.parquet")).write_bytes(b"torn")
    assert headcount(["push", str(tmp_path / "data"), "--repo-id", "alice/sums"]) == 2
    assert "is not what was written: the folder is broken" in capsys.readouterr().err
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "recipe.yaml").write_text("task: addition\n")
    assert headcount(["push", str(tmp_path / "run"), "--repo-id", "alice/m"]) == 2
    assert "has no provenance.json; expected the folder of a finished and evaluated run" in capsys.readouterr().err
    assert hub.repos == {}
