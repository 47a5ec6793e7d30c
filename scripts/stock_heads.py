"""`headcount heads` on a transformers model that is not headcount's own: data, batches, ablation, gradient, maps."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..records.progress import progress_bar, say


if TYPE_CHECKING:
    from transformers import PreTrainedModel


BATCH = 16
SHOWN = 2
READERS = {".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json", ".parquet": "parquet", ".txt": "text"}


def study_stock_heads(
    model: str, output: Path, rows: int, modes: tuple[str, ...], data: str, task: str, overwrite: bool
) -> dict[str, list[dict]]:
    """The rows of every analysis by name; what is finished is read instead of computed."""
    import transformers

    from ..analysis.heads.ablation import ablate
    from ..analysis.heads.importance import agreement, gradient_importance
    from ..analysis.heads.maps import text_map_rows
    from ..analysis.heads.stock_data import STOCK_TASKS
    from ..analysis.interventions.finished_batches import weights_hash
    from ..records.claims import Claim
    from ..records.rows import write_rows

    if task not in STOCK_TASKS:
        known = "; ".join(f"{name} ({own.description})" for name, own in STOCK_TASKS.items())
        raise ValueError(f"--task {task!r} is not known; expected one of {known}.")
    own = STOCK_TASKS[task]
    columns = read_columns(data, own.columns, rows)
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    loaded = load(own.auto_class, model)
    settings = {"rows": rows, "modes": modes, "data": data, "task": task, "weights": weights_hash(loaded)}
    claim = Claim(output, "heads", settings, overwrite)
    batches = [
        own.make_batch(loaded, tokenizer, {name: values[i : i + BATCH] for name, values in columns.items()})
        for i in range(0, len(columns["text"]), BATCH)
    ]
    results: dict[str, list[dict]] = {}

    def ablation() -> list[dict]:
        every = (
            ablate(loaded, batches, own.metric, mode, progress=progress_bar(f"ablation, {mode}")) for mode in modes
        )
        return [row for found in every for row in found]

    def gradient() -> list[dict]:
        found = gradient_importance(loaded, batches, own.loss)
        return found + agreement(results["ablation"], found)

    def maps() -> list[dict]:
        batch = {key: value[:SHOWN] for key, value in batches[0].items()}
        return text_map_rows(loaded, batch, token_names(tokenizer, batch), columns["text"][:SHOWN])

    for analysis in (ablation, gradient, maps):
        found = claim.finished(analysis.__name__)
        if found is None:
            say(f"{analysis.__name__} ...")
            found = analysis()
            write_rows(output, analysis.__name__, found)
        results[analysis.__name__] = found
    return results


def load(auto_class: str, model: str) -> "PreTrainedModel":
    """A model folder, a Hub name, or a folder that `save_pruned` wrote."""
    import transformers

    from ..modeling.stock.pruning import load_pruned

    if (Path(model) / "pruned_heads.json").exists():
        return load_pruned(model)
    return getattr(transformers, auto_class).from_pretrained(model)


def read_columns(data: str, wanted: dict[str, tuple[str, ...]], rows: int) -> dict[str, list]:
    """At most `rows` rows of a file, or of a dataset's test split, else validation, else its first."""
    import datasets

    path = Path(data)
    if path.is_file():
        if path.suffix not in READERS:
            raise ValueError(f"{path} is not a table; expected a name ending in one of {', '.join(READERS)}.")
        options = {"sep": "\t"} if path.suffix == ".tsv" else {}
        found = datasets.load_dataset(READERS[path.suffix], data_files=str(path), split="train", **options)
    else:
        splits = datasets.load_dataset(data)
        found = splits[next((name for name in ("test", "validation") if name in splits), next(iter(splits)))]
    found = found.select(range(min(rows, len(found))))
    columns = {}
    for name, choices in wanted.items():
        column = next((choice for choice in choices if choice in found.column_names), None)
        if column is None:
            raise ValueError(
                f"{data} has the columns {', '.join(found.column_names)}; expected one of {', '.join(choices)}."
            )
        columns[name] = list(found[column])
    if not columns["text"]:
        raise ValueError(f"{data} has no rows; expected at least one.")
    return columns


def token_names(tokenizer: Any, batch: dict) -> dict[str, list[list[str]]]:
    """The tokens of every row without padding."""
    pairs = zip(batch["input_ids"], batch["attention_mask"], strict=True)
    found = {"input_ids": [tokenizer.convert_ids_to_tokens(ids[mask.bool()].tolist()) for ids, mask in pairs]}
    labels = batch.get("labels")
    if labels is not None and labels.ndim == 2 and not labels.is_floating_point():
        found["labels"] = [tokenizer.convert_ids_to_tokens(row[row >= 0].tolist()) for row in labels]
    return found
