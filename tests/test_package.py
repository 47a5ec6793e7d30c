"""The package as a whole: what it imports, what it installs, how the folders may depend on each other."""

import ast
import configparser
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest


ROOT = Path(__file__).parent.parent

# Folder -> the sibling folders it may import (DESIGN section 1), and third-party packages it must do without.
MAY_IMPORT = {
    "configuration": set(),
    "modeling": {"configuration"},
    "data_builders": set(),
    "metrics": set(),
    "trainers": {"configuration", "modeling", "data_builders", "metrics"},
    "analysis": {"configuration", "modeling", "data_builders"},
    "reports": set(),
}
THIRD_PARTY = {
    "configuration": {"transformers"},
    "modeling": {"torch", "transformers"},
    "reports": {"matplotlib", "jinja2", "numpy", "huggingface_hub", "yaml"},
}


def imports_of(path: Path) -> list[tuple[int, str]]:
    """(level, dotted module) of every import in a file."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [(0, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [(node.level, node.module or alias.name) for alias in node.names]
    return found


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_folders_import_only_what_the_design_allows(folder):
    for path in (ROOT / folder).rglob("*.py"):
        depth = len(path.relative_to(ROOT).parts) - 1
        for level, module in imports_of(path):
            top = module.lstrip(".").split(".")[0]
            if level == 0:
                assert top not in MAY_IMPORT, f"{path}: import headcount.{top}, not the bare folder {top}"
                sibling = module.split(".")[1] if top == "headcount" and "." in module else None
            else:
                sibling = top if level == depth + 1 else None
            if sibling in MAY_IMPORT and sibling != folder:
                assert sibling in MAY_IMPORT[folder], f"{path} imports {sibling}"
            if level == 0 and folder in THIRD_PARTY and top not in sys.stdlib_module_names:
                assert top in THIRD_PARTY[folder], f"{path} imports {top}"


def test_every_folder_with_code_is_installed():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    packages = config["options"]["packages"].split()
    for folder in ("headcount", "scripts", *MAY_IMPORT):
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
    folders = ("configuration", "modeling", "data_builders", "metrics", "trainers", "analysis", "reports", "scripts")
    forgotten = {name for name in tracked if name.startswith(tuple(f"{folder}/" for folder in folders))} - installed
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
