"""Which Python files are run: those that their user named, in their very content, and no other."""

import shutil
from pathlib import Path

import pytest

from headcount.data_builders import own_tasks, registry
from headcount.data_builders.registry import find_task, kept_task, load_task, named_task
from headcount.trainers.recipe import load_recipe


COPYING = Path(__file__).parent.parent / "own_task" / "copying.py"
BOMB = "from pathlib import Path\nPath(__file__).with_suffix('.ran').touch()\n"


@pytest.fixture
def stranger(tmp_path, monkeypatch):
    """As if another user were here, who has named nothing yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(own_tasks, "_named_here", set())


def own_file(folder, text=None):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "mine.py"
    path.write_text(COPYING.read_text().replace('"copying"', '"mine"') if text is None else text)
    return path


def test_a_task_is_found_by_the_file_that_was_named_and_by_nothing_else(tmp_path):
    with pytest.raises(ValueError, match=r"there is no task 'mine'; expected one of addition, .*or a Python file"):
        find_task("mine")
    task = named_task(own_file(tmp_path))
    assert find_task("mine") is task and task.reference == str(tmp_path / "mine.py")
    assert load_recipe(str(tmp_path / "mine.py")).the_task is task


def test_a_copy_is_run_only_for_who_has_named_its_content(tmp_path, stranger):
    run, code = tmp_path / "run", BOMB + COPYING.read_text()
    own_file(run, code).rename(run / "own_task.py")
    (run / "recipe.yaml").write_text("task: copying\ntraining: {steps: 1}\n")
    with pytest.raises(ValueError, match=r"never named here and which is therefore not run; .*headcount trust"):
        find_task("copying", run)
    with pytest.raises(ValueError, match="headcount trust"):
        load_recipe(str(run / "recipe.yaml"))
    assert not (run / "own_task.ran").exists() and "copying" not in registry.TASKS

    load_task(own_file(tmp_path / "elsewhere", code))  # the same content, named at another place
    registry.TASKS.pop("copying")
    assert load_recipe(str(run / "recipe.yaml")).the_task.name == "copying"
    assert (run / "own_task.ran").exists()


def test_a_changed_copy_is_not_run_even_for_who_has_named_the_original(tmp_path, stranger):
    registry.keep_task(load_task(own_file(tmp_path)), tmp_path / "run")
    registry.TASKS.pop("mine")
    assert find_task("mine", tmp_path / "run").name == "mine"
    registry.TASKS.pop("mine")
    (tmp_path / "run" / "own_task.py").open("a").write("\n# one more line\n")
    with pytest.raises(ValueError, match="therefore not run"):
        find_task("mine", tmp_path / "run")


def test_a_recipe_that_extends_a_python_file_does_not_have_it_run(tmp_path, stranger):
    bomb = own_file(tmp_path, BOMB + COPYING.read_text())
    (tmp_path / "recipe.yaml").write_text(f"extends: {bomb}\n")
    with pytest.raises(ValueError, match="so it is not run"):
        load_recipe(str(tmp_path / "recipe.yaml"))
    assert not bomb.with_suffix(".ran").exists()
    load_task(bomb)
    assert load_recipe(str(tmp_path / "recipe.yaml")).task == "copying"


def test_a_copy_behind_a_link_is_refused(tmp_path, stranger):
    outside = own_file(tmp_path / "outside")
    load_task(outside)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "own_task.py").symlink_to(outside)
    with pytest.raises(ValueError, match="is a link that leaves"):
        find_task("other", tmp_path / "run")


def test_a_folder_cannot_bring_its_own_version_of_a_task_of_headcount(tmp_path, stranger):
    code = COPYING.read_text().replace('"copying"', '"reverse"')
    with pytest.raises(ValueError, match="there is a task 'reverse' already"):
        load_task(own_file(tmp_path, code))
    shutil.copy(tmp_path / "mine.py", tmp_path / "own_task.py")
    assert find_task("reverse", tmp_path) is registry.TASKS["reverse"]  # and the file is not even looked at


def test_two_versions_in_one_process_are_told_apart(tmp_path):
    first = own_file(tmp_path / "a")
    registry.keep_task(load_task(first), tmp_path / "run")
    second = load_task(own_file(tmp_path / "b", first.read_text() + "# changed\n"))
    with pytest.raises(ValueError, match=r"is of another version of the task 'mine' than .*b/mine.py"):
        kept_task(tmp_path / "run")
    with pytest.raises(ValueError, match=r"was begun with another version of .*own_task.py"):
        registry.check_kept(second, tmp_path / "run")


def test_without_a_place_to_remember_it_is_said_and_the_work_goes_on(tmp_path, stranger, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    registry.keep_task(load_task(own_file(tmp_path)), tmp_path / "run")
    assert "is not remembered" in capsys.readouterr().err
    registry.TASKS.pop("mine")
    assert kept_task(tmp_path / "run").name == "mine"  # this process still knows


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "has no TASK; expected an instance of headcount's Task"),
        ("TASK = 3", "has no TASK"),
        ("x = (", r"cannot be run: line 1: .* was never closed"),
        ("\nTASK = undefined", "cannot be run: line 2: NameError: name 'undefined' is not defined"),
        ("import no_such_module", "line 1: ModuleNotFoundError"),
        ("from headcount import Task\nTASK = Task()", "has no `name`; expected a text"),
        (COPYING.read_text().replace('"copying"', '"../x"', 1), "expected letters, digits, _ and -"),
        (COPYING.read_text().replace('kind = "sequence"', 'kind = "poem"'), "kind='poem'; expected sequence or"),
        (COPYING.read_text() + "\nRECIPE = 5\n", "RECIPE of .* is 5; expected a dict"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_sentence(tmp_path, text, message):
    with pytest.raises(ValueError, match=message) as found:
        load_task(own_file(tmp_path, text))
    assert "\n" not in str(found.value)


def test_a_file_without_a_recipe_cannot_be_trained_and_one_that_is_not_there_not_be_named(tmp_path):
    path = own_file(tmp_path, COPYING.read_text().split("\nRECIPE")[0])
    with pytest.raises(ValueError, match="has no RECIPE; expected a dict"):
        load_recipe(str(path))
    with pytest.raises(ValueError, match="is no Python file; expected one with a TASK"):
        load_task(tmp_path / "nowhere.py")
