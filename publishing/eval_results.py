"""Evaluation rows in the two formats of the Hub: `model-index` in the card, and `.eval_results/*.yaml`."""

import yaml
from huggingface_hub import EvalResult, EvalResultEntry, eval_result_entries_to_yaml

from .card_tables import overall, within_training
from .run_record import RunRecord


METRICS = {
    ("addition", "exact_match"): "exact match, free-running greedy decoding",
    ("addition", "token_accuracy"): "token accuracy, teacher-forced",
    ("sortedness", "accuracy"): "accuracy",
}


def published_rows(run: RunRecord) -> list[dict]:
    """The rows that stand for the model: whole splits and every longer length and class of problems for addition,
    every length and kind for sortedness.
    """
    rows = run.rows["evaluation"]
    if run.task == "sortedness":
        return rows
    splits = dict.fromkeys(row["split"] for row in within_training(rows))
    found = [overall(rows, metric, split) for split in splits for metric in ("exact_match", "token_accuracy")]
    return [row for row in found if row is not None] + [row for row in rows if "length" in row]


def model_index(run: RunRecord, pipeline_tag: str, data_command: str, dataset: str | None) -> list[EvalResult]:
    return [
        EvalResult(
            task_type=pipeline_tag,
            task_name=run.task,
            dataset_type=dataset or f"headcount-{run.task}",
            dataset_name=f"headcount {run.task}",
            dataset_config=row.get("kind", "default"),
            dataset_split=row["split"],
            dataset_args={"command": data_command},
            metric_type=row["metric"],
            metric_name=METRICS[run.task, row["metric"]],
            metric_value=row["value"],
            metric_args={"n": row["n"], "interval_95": row["interval"]},
        )
        for row in published_rows(run)
    ]


def eval_results_yaml(run: RunRecord, dataset: str, dataset_revision: str) -> str:
    """The text of `.eval_results/TASK.yaml`; its entries belong to a data set on the Hub."""
    entries = [
        EvalResultEntry(
            dataset_id=dataset,
            dataset_revision=dataset_revision,
            task_id=f"{row.get('kind', 'default')}.{row['split']}.{row['metric']}",
            value=row["value"],
            date=run.provenance["finished_at"],
            notes=f"{METRICS[run.task, row['metric']]}; n={row['n']}, 95 % interval "
            f"{row['interval'][0]:.4f} - {row['interval'][1]:.4f}; training seed {run.seed}",
        )
        for row in published_rows(run)
    ]
    return yaml.safe_dump(eval_result_entries_to_yaml(entries), sort_keys=False, allow_unicode=True)
