"""Evaluation rows in the two formats of the Hub: `model-index` in the card, and `.eval_results/*.yaml`."""

import yaml
from huggingface_hub import EvalResult, EvalResultEntry, eval_result_entries_to_yaml

from ..records.rows import Rows
from ..records.run_folder import Run
from ..reports.evaluation_rows import at_lengths, whole, whole_splits
from ..reports.study import task_of


METRICS = {
    "exact_match": "exact match, free-running greedy decoding",
    "token_accuracy": "token accuracy, teacher-forced",
    "accuracy": "accuracy",
}


def published_rows(run: Run) -> Rows:
    """The rows that stand for the model: whole splits, and every length and class of problems."""
    task, rows = task_of(run), run.evaluation
    measure = task.measure["metric"]
    metrics = [measure] if task.kind == "label" else [measure, "token_accuracy"]
    found = [whole(rows, metric, split) for split in whole_splits(rows, measure) for metric in metrics]
    return [row for row in found if row is not None] + at_lengths(rows, task)


def model_index(run: Run, pipeline_tag: str, data_command: str, dataset: str | None) -> list[EvalResult]:
    return [
        EvalResult(
            task_type=pipeline_tag,
            task_name=run.task,
            dataset_type=dataset or f"headcount-{run.task}",
            dataset_name=f"headcount {run.task}",
            dataset_config=row["kind"] or "default",
            dataset_split=row["split"],
            dataset_args={"command": data_command},
            metric_type=row["metric"],
            metric_name=METRICS[row["metric"]],
            metric_value=row["value"],
            metric_args={"n": row["n"], "interval_95": row["interval"]},
        )
        for row in published_rows(run)
    ]


def eval_results_yaml(run: Run, dataset: str, dataset_revision: str) -> str:
    """The text of `.eval_results/TASK.yaml`; its entries belong to a data set on the Hub."""
    entries = [
        EvalResultEntry(
            dataset_id=dataset,
            dataset_revision=dataset_revision,
            task_id=f"{row['kind'] or 'default'}.{row['split']}.{row['metric']}",
            value=row["value"],
            date=run.provenance["finished_at"],
            notes=f"{METRICS[row['metric']]}; n={row['n']}, 95 % interval "
            f"{row['interval'][0]:.4f} - {row['interval'][1]:.4f}; training seed {run.seed}",
        )
        for row in published_rows(run)
    ]
    return yaml.safe_dump(eval_result_entries_to_yaml(entries), sort_keys=False, allow_unicode=True)
