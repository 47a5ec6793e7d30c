"""What is in a folder is known by the study and the task of its rows."""

from headcount.records.files import write_json
from headcount.records.rows import row, write_rows
from headcount.reports.study import built_in_names, read_study


def test_rows_of_several_parts_may_share_a_folder(tmp_path):
    about = {"head": "encoder.0.self.0", "mode": "zero"}
    write_rows(tmp_path, "ablation", [row("ablation", "loss_rise", {"value": 0.1, "n": 4}, **about)])
    write_rows(tmp_path, "pruning", [row("pruning", "harmless_one_at_a_time", {"value": 1, "n": 4}, heads=[])])
    two = [row("mathematics", "residual", {"value": 0.0}, task=task) for task in ("sortedness", "reverse")]
    write_rows(tmp_path, "mathematics", two)
    study = read_study(tmp_path)
    assert set(study.heads.rows) == {"ablation"} and set(study.pruning.rows) == {"pruning"}
    assert [(part.task, len(part.get("mathematics"))) for part in study.lengths] == [("sortedness", 1), ("reverse", 1)]
    assert study.heads.get("maps") == [] and study.heads.source("ablation") == "results/ablation.json"


def test_rows_of_another_study_are_no_part(tmp_path):
    write_rows(tmp_path / "mine", "notes", [row("weather", "rain", {"value": 1.0, "n": 1})])
    write_rows(tmp_path / "heads", "ablation", [row("ablation", "loss_rise", head="a", mode="zero")])
    study = read_study(tmp_path)
    assert [part.path for part in study.parts] == ["heads"] and study.runs == [] and study.studied is None


def test_what_is_built_in_is_asked_of_the_task(tmp_path):
    run = tmp_path / "runs" / "sortedness-0"
    write_json(run / "model" / "config.json", {"architecture": "encoder", "attention_window": 4})
    (run / "recipe.yaml").write_text("task: sortedness\n")
    (run / "metrics.jsonl").write_text('{"step": 1, "loss": 0.5}\n')
    (found,) = read_study(tmp_path).runs
    assert built_in_names(found) == ["window"]
