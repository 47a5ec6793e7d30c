"""Recipes as files: whatever stands in one, a reader gets texts and sections, or a sentence."""

import pytest

from headcount.records.recipe_file import read_recipe
from headcount.records.run_folder import read_run


@pytest.mark.parametrize(
    "content", ["task: [addition]", "name: 5", "extends: {}", "data: [1]", "training: {1: 2}", "[]"]
)
def test_a_recipe_of_the_wrong_kinds_is_one_sentence(content, tmp_path):
    path = tmp_path / "recipe.yaml"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"recipe\.yaml .*expected"):
        read_recipe(path)
    with pytest.raises(ValueError, match=r"recipe\.yaml .*expected"):
        read_run(tmp_path)


def test_sections_may_be_missing_or_empty(tmp_path):
    path = tmp_path / "recipe.yaml"
    path.write_text("task: addition\ndata:\n")
    assert read_recipe(path) == {"task": "addition", "data": None}
