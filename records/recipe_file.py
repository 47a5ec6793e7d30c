"""A recipe as a file: what its readers may rely on, whoever wrote it. Its values are the trainers' business."""

from pathlib import Path
from typing import Any

from .files import read_yaml


SECTIONS = ("data", "model", "training")
TEXTS = ("extends", "name", "task", "description")


def read_recipe(path: Path) -> dict[str, Any]:
    """The content of a YAML file, checked."""
    return check_recipe(read_yaml(path), path)


def check_recipe(content: dict[str, Any], path: Any) -> dict[str, Any]:
    """The content itself: texts are texts, and every section that is there has names with values."""
    for key in TEXTS:
        if not isinstance(content.get(key, ""), str):
            raise ValueError(f"{path} has {key}={content[key]!r}; expected a text.")
    for section in SECTIONS:
        found = content.get(section) or {}
        if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
            raise ValueError(f"{path} has {section}={found!r}; expected names with values.")
    return content
