"""The package as a whole: what it imports, what it installs, how the folders may depend on each other."""

import ast
import configparser
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from headcount.data_builders.registry import TASKS


ROOT = Path(__file__).parent.parent

# The rooms, from the floor up (DESIGN section 1): each may import those before it.
ROOMS = (
    "configuration",
    "records",
    "modeling",
    "data_builders",
    "metrics",
    "trainers",
    "analysis",
    "reports",
    "publishing",
    "scripts",
)
# What is drawn and written from rows alone sees no model and no trainer.
NOT_SEEN = {"reports": {"modeling", "trainers", "analysis"}}
THIRD_PARTY = {
    "configuration": {"transformers"},
    "records": {"filelock", "numpy", "psutil", "scipy", "tqdm", "yaml", "torch"},
    "reports": {"matplotlib", "jinja2", "numpy"},
}
HUB_FILES = {"torch", "transformers"}  # what files that go to the Hub may import


def imports_of(path: Path) -> list[tuple[int, str]]:
    """(level, dotted module) of every import in a file."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [(0, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [(node.level, node.module or alias.name) for alias in node.names]
    return found


def named_in_strings(path: Path) -> list[str]:
    """Modules of headcount that a file names in a string, such as "headcount.scripts.train"."""
    strings = (node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant))
    return [found for text in strings if isinstance(text, str) for found in re.findall(r"headcount\.([a-z_]+)", text)]


def third_party(path: Path) -> set[str]:
    tops = {module.split(".")[0] for level, module in imports_of(path) if level == 0}
    return tops - set(sys.stdlib_module_names) - {"headcount"}


@pytest.mark.parametrize("room", ROOMS)
def test_arrows_point_downwards_only(room):
    allowed = set(ROOMS[: ROOMS.index(room) + 1]) - NOT_SEEN.get(room, set())
    for path in (ROOT / room).rglob("*.py"):
        depth = len(path.relative_to(ROOT).parts) - 1
        for level, module in imports_of(path):
            top = module.split(".")[0]
            assert level > 0 or top not in ROOMS, f"{path}: import headcount.{top}, not the bare folder {top}"
            if level == 0:
                other = module.split(".")[1] if top == "headcount" and "." in module else None
            else:
                other = top if level == depth + 1 else None
            assert other not in ROOMS or other in allowed, f"{path} imports {other}"
        for other in named_in_strings(path):
            assert other not in ROOMS or other in allowed, f"{path} names headcount.{other} in a string"
        assert third_party(path) <= THIRD_PARTY.get(room, third_party(path)), path


def test_files_that_go_to_the_hub_import_only_what_is_there():
    for path in (*(ROOT / "modeling").glob("*.py"), *(ROOT / "configuration").glob("*.py")):
        assert third_party(path) <= HUB_FILES, path
        assert {m.split(".")[0] for level, m in imports_of(path) if level == 2} <= {"configuration"}, path


def code_of(room: str) -> list[Path]:
    return sorted((ROOT / room).rglob("*.py"))


@pytest.mark.parametrize("room", [room for room in (*ROOMS, "headcount") if room != "data_builders"])
def test_nobody_outside_of_data_builders_knows_a_task_by_its_name(room):
    """No comparison with a task's name and no dict keyed by one: what is particular to a task is asked of it."""
    names = set(TASKS)
    for path in code_of(room):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
            elif isinstance(node, ast.Dict):
                sides = [key for key in node.keys if key is not None]
            elif isinstance(node, ast.MatchValue):
                sides = [node.value]
            else:
                continue
            constants = [part.value for side in sides for part in ast.walk(side) if isinstance(part, ast.Constant)]
            known = [value for value in constants if isinstance(value, str) and value in names]
            assert not known, f"{path}:{node.lineno} knows {known[0]!r}"


@pytest.mark.parametrize("room", [*ROOMS, "headcount"])
def test_code_is_formatted_throughout_and_hides_nothing(room):
    for path in code_of(room):
        text = path.read_text()
        assert "# fmt:" not in text and "locals()" not in text, path
        assert not re.search(r"except( Exception)?:\s*\n\s*pass\b", text), path


def test_every_folder_with_code_is_installed():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    packages = config["options"]["packages"].split()
    for folder in ("headcount", *ROOMS):
        for init in (ROOT / folder).rglob("__init__.py"):
            parts = init.parent.relative_to(ROOT).parts
            assert ".".join(("headcount", *parts) if parts != ("headcount",) else parts) in packages


def test_public_names_exist_and_unknown_ones_raise():
    import headcount

    for name in headcount.__all__:
        assert getattr(headcount, name) is not None
    assert set(headcount.__all__) <= set(dir(headcount))
    with pytest.raises(AttributeError, match="has no attribute 'HeadcountModle'"):
        _ = headcount.HeadcountModle


@pytest.mark.slow
def test_wheel_installs_one_top_level_module_and_imports_in_an_empty_environment(tmp_path):
    """Dependencies are taken from the running environment; headcount itself only from the wheel."""
    source = tmp_path / "source"
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    for name in tracked:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes((ROOT / name).read_bytes())
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(source)]
    subprocess.run(build, check=True, timeout=300)
    (wheel,) = tmp_path.glob("headcount-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"headcount", wheel.name.rsplit("-", 3)[0] + ".dist-info"}
    installed = {name.removeprefix("headcount/") for name in names}
    forgotten = {name for name in tracked if name.startswith(tuple(f"{room}/" for room in ROOMS))} - installed
    assert forgotten == set()

    site = tmp_path / "site"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel)]
    subprocess.run(install, check=True, timeout=300)
    code = (
        f"import sys; sys.path.insert(0, {str(site)!r})\n"
        "import headcount; print(headcount.__file__); headcount.HeadcountModel"
    )
    answer = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert answer.stdout.startswith(str(site)), answer.stderr
    assert answer.returncode == 0, answer.stderr
