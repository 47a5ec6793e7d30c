"""`headcount heads` on a transformers model that is not headcount's own: data, batches, ablation, gradient, maps."""

import codecs
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..records.files import BYTES_PER_READ
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
    from ..analysis.heads.ablation import ablate
    from ..analysis.heads.importance import agreement, gradient_importance
    from ..analysis.heads.maps import text_map_rows
    from ..analysis.heads.stock_data import STOCK_TASKS
    from ..analysis.heads.study import ANALYSES
    from ..analysis.interventions.finished_batches import weights_hash
    from ..records.claims import Claim, hash_content
    from ..records.rows import write_rows

    if task not in STOCK_TASKS:
        known = "; ".join(f"{name} ({own.description})" for name, own in STOCK_TASKS.items())
        raise ValueError(f"--task {task!r} is not known; expected one of {known}.")
    own = STOCK_TASKS[task]
    columns = read_columns(data, own.columns, rows)
    tokenizer, loaded = load(own.auto_class, model)
    content = {"data": hash_content(columns), "weights": weights_hash(loaded)}
    claim = Claim(output, "heads", {"rows": rows, "modes": modes, "task": task, **content}, tuple(ANALYSES), overwrite)
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


def load(auto_class: str, model: str) -> "tuple[Any, PreTrainedModel]":
    """Tokenizer and model of a folder, which may have lost heads, or of a Hub name; code is never run."""
    import transformers

    from ..data_builders.hub import fetch, reason
    from ..modeling.stock.pruning_notes import saved_without
    from ..modeling.stock.saving import load_pruned
    from ..trainers.model_loading import first_line

    def both() -> "tuple[Any, PreTrainedModel]":
        tokenizer = transformers.AutoTokenizer.from_pretrained(model, trust_remote_code=False)
        if Path(model).is_dir() and saved_without(Path(model)):
            return tokenizer, load_pruned(model)
        return tokenizer, getattr(transformers, auto_class).from_pretrained(model, trust_remote_code=False)

    is_folder = Path(model).exists()
    try:
        return both() if is_folder else fetch(both, model)
    except Exception as error:
        why = first_line(error) if is_folder else reason(error)
        raise ValueError(f"{model} cannot be loaded ({why}); expected a model of transformers.") from error


def read_columns(data: str, wanted: dict[str, tuple[str, ...]], rows: int) -> dict[str, list]:
    """At most `rows` rows of a file, or of a dataset's test split, else validation, else its first."""
    found = read_table(data)
    found = found.select(range(min(rows, len(found))))
    columns = {}
    for name, choices in wanted.items():
        column = next((choice for choice in choices if choice in found.column_names), None)
        if column is None:
            raise ValueError(
                f"{data} has the columns {', '.join(found.column_names)}; expected one of {', '.join(choices)}."
            )
        columns[name] = list(found[column])
        kinds = str if name == "text" else (str, int, float)
        if not all(isinstance(value, kinds) for value in columns[name]):
            what = "a text" if name == "text" else "a value"
            raise ValueError(
                f"{data} has an empty or strange cell in the column {column}; expected {what} in every row."
            )
    if not columns["text"]:
        raise ValueError(f"{data} has no rows; expected at least one.")
    return columns


def read_table(data: str) -> Any:
    """A dataset from a file, from a folder with tables, or by its name on the Hub; a sentence if there is none."""
    import datasets

    from ..data_builders.hub import fetch, reason
    from ..trainers.model_loading import first_line

    path = Path(data)
    if path.exists() and not path.is_dir() and path.suffix not in READERS:
        raise ValueError(f"{path} is not a table; expected a name ending in one of {', '.join(READERS)}.")
    described = (path / "README.md").is_file()
    is_root = path.resolve() == path.resolve().parent  # in which `datasets` would search the whole disk
    if is_root or (path.is_dir() and not described and not any(part.suffix in READERS for part in path.iterdir())):
        raise ValueError(f"{path} holds no table; expected files ending in one of {', '.join(READERS)}.")
    if path.is_file() and path.suffix != ".parquet":
        check_text(path)
    try:
        if path.is_file():
            options: dict[str, Any] = {"sep": "\t"} if path.suffix == ".tsv" else {}
            options |= {"encoding": "utf-8-sig"} if READERS[path.suffix] in ("csv", "text") else {}
            return datasets.load_dataset(READERS[path.suffix], data_files=str(path), split="train", **options)
        splits = (
            datasets.load_dataset(data)
            if path.is_dir()
            else fetch(lambda: datasets.load_dataset(data), data, repo_type="dataset")
        )
    except Exception as error:
        if not path.exists():
            raise ValueError(f"{data} is no file here, and the Hub does not give it ({reason(error)}).") from error
        cause = error.__cause__ or error
        raise ValueError(
            f"{path} cannot be read as a table ({first_line(cause)}); expected rows and columns."
        ) from error
    return splits[next((name for name in ("test", "validation") if name in splits), next(iter(splits)))]


def check_text(path: Path) -> None:
    """Raises unless a table is UTF-8 without NUL characters, which its readers take for anything."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with path.open("rb") as file:
        while True:
            part = file.read(BYTES_PER_READ)
            if b"\0" in part:
                raise ValueError(f"{path} holds a NUL character; expected a table in UTF-8.")
            try:
                decoder.decode(part, final=not part)
            except UnicodeDecodeError as error:
                raise ValueError(f"{path} is not text in UTF-8; expected a table in UTF-8.") from error
            if not part:
                return


def token_names(tokenizer: Any, batch: dict) -> dict[str, list[list[str]]]:
    """The tokens of every row without padding."""
    pairs = zip(batch["input_ids"], batch["attention_mask"], strict=True)
    found = {"input_ids": [tokenizer.convert_ids_to_tokens(ids[mask.bool()].tolist()) for ids, mask in pairs]}
    labels = batch.get("labels")
    if labels is not None and labels.ndim == 2 and not labels.is_floating_point():
        found["labels"] = [tokenizer.convert_ids_to_tokens(row[row >= 0].tolist()) for row in labels]
    return found
