"""A claim: every row that is there belongs to the settings beside it, whenever the work was stopped."""

import os

import pytest

from headcount.records.claims import Claim, hash_content
from headcount.records.rows import results_path, row, write_rows


NAMES = ("ablation", "maps")


def settings(rows, data="a"):
    return {"rows": rows, "data": hash_content(data)}


def finish(folder, claim, n):
    for name in NAMES:
        assert claim.finished(name) is None
        write_rows(folder, name, [row(name, "drop", {"value": 0.5, "n": n, "interval": None})])
    (folder / "figures").mkdir(exist_ok=True)
    for name in ("ablation.png", "maps_average.png"):
        (folder / "figures" / name).write_bytes(b"drawn")


def test_old_rows_and_figures_are_gone_before_the_new_claim_is_written(tmp_path, monkeypatch):
    finish(tmp_path, Claim(tmp_path, "heads", settings(200), NAMES), 200)
    write_rows(tmp_path, "evaluation", [])
    (tmp_path / "figures" / "pruning.png").write_bytes(b"of others")
    before = (tmp_path / "heads.json").read_text()
    seen = {}

    def watch(name, *arguments, **options):
        seen["rows"] = [name for name in NAMES if results_path(tmp_path, name).exists()]
        seen["claim"] = (tmp_path / "heads.json").read_text()
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", watch)
        patched.setattr("pathlib.Path.replace", watch)
        with pytest.raises(ValueError, match="cannot be written"):
            Claim(tmp_path, "heads", settings(50), NAMES, overwrite=True)
    assert seen == {"rows": [], "claim": before}
    assert [path.name for path in (tmp_path / "figures").iterdir()] == ["pruning.png"]
    assert results_path(tmp_path, "evaluation").exists()


def test_work_that_was_stopped_after_overwriting_goes_on_with_none_of_the_old_rows(tmp_path):
    finish(tmp_path, Claim(tmp_path, "heads", settings(200), NAMES), 200)
    Claim(tmp_path, "heads", settings(50), NAMES, overwrite=True)
    finish(tmp_path, Claim(tmp_path, "heads", settings(50), NAMES), 50)
    again = Claim(tmp_path, "heads", settings(50), NAMES).finished("ablation")
    assert again is not None and again[0]["n"] == 50


def test_other_settings_other_content_and_rows_without_a_claim_are_refused(tmp_path):
    finish(tmp_path, Claim(tmp_path, "heads", settings(200), NAMES), 200)
    with pytest.raises(ValueError, match="holds results for rows=200, now asked for 50; expected the same"):
        Claim(tmp_path, "heads", settings(50), NAMES)
    with pytest.raises(ValueError, match="holds results for other data; expected the same"):
        Claim(tmp_path, "heads", settings(200, data="b"), NAMES)
    (tmp_path / "heads.json").unlink()
    with pytest.raises(ValueError, match=r"holds results of ablation without heads\.json"):
        Claim(tmp_path, "heads", settings(200), NAMES)
