"""`headcount heads` on a transformers model that is not headcount's own: data, batches, ablation, gradient, maps."""

import json
import sys
from pathlib import Path

import typer


BATCH = 16
SHOWN = 2
READERS = {".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json", ".parquet": "parquet", ".txt": "text"}


def run(
    model: str, output: Path, rows: int, modes: tuple[str, ...], data: str, task: str, overwrite: bool, as_json: bool
):
    import transformers

    import headcount
    from headcount.analysis.importance import agreement
    from headcount.analysis.stock_maps import map_rows
    from headcount.analysis.stock_progress import weights_hash
    from headcount.analysis.stock_tasks import STOCK_TASKS
    from headcount.scripts.heads import draw_figures, progress_bar
    from headcount.scripts.study_inputs import Claim
    from headcount.trainers.run_folder import write_rows

    if task not in STOCK_TASKS:
        known = "; ".join(f"{name} ({own.description})" for name, own in STOCK_TASKS.items())
        raise typer.BadParameter(f"--task {task!r} is not known; expected one of {known}.")
    own = STOCK_TASKS[task]
    try:
        columns = read_columns(data, own.columns, rows)
        tokenizer = transformers.AutoTokenizer.from_pretrained(model)
        loaded = load(own.auto_class, model)
        heads = headcount.list_heads(loaded)
        settings = {"model": model, "rows": rows, "modes": modes, "data": data, "task": task}
        claim = Claim(output, "heads", settings, overwrite, weights_hash(loaded))
        count = len(columns["text"])
        batches = [
            own.make_batch(loaded, tokenizer, {name: values[i : i + BATCH] for name, values in columns.items()})
            for i in range(0, count, BATCH)
        ]
        results: dict[str, list[dict]] = {}
        for name in ("ablation", "gradient", "maps"):
            found = claim.finished(name)
            if found is None:
                print(f"{name} ...", file=sys.stderr, flush=True)
                if name == "ablation":
                    found = []
                    for mode in modes:
                        found += headcount.ablate(
                            loaded, batches, own.metric, mode, progress=progress_bar(f"ablation, {mode}")
                        )
                elif name == "gradient":
                    found = headcount.gradient_importance(loaded, batches, own.loss)
                    found += agreement([row for row in results["ablation"] if row["mode"] == "zero"], found)
                else:
                    batch = {key: value[:SHOWN] for key, value in batches[0].items()}
                    found = map_rows(loaded, batch, token_names(tokenizer, batch), columns["text"][:SHOWN])
                write_rows(output, name, found)
            results[name] = found
    except (ValueError, RuntimeError, OSError) as error:
        raise typer.BadParameter(str(error).splitlines()[0]) from error
    drawn = draw_figures(output, results)
    print(f"{len(drawn)} figures in {output / 'figures'}, rows in {output / 'results'}", file=sys.stderr)
    if as_json:
        print(json.dumps({name: found for name, found in results.items() if name != "maps"}))
    else:
        print(table(results, len(heads)))


def load(auto_class: str, model: str):
    """A model folder, a Hub name, or a folder that `save_pruned` wrote."""
    import transformers

    import headcount

    if (Path(model) / "pruned_heads.json").exists():
        return headcount.load_pruned(model)
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


def token_names(tokenizer, batch: dict) -> dict[str, list[list[str]]]:
    """The tokens of every row without padding."""
    found = {"input_ids": [
        tokenizer.convert_ids_to_tokens(ids[mask.bool()].tolist())
        for ids, mask in zip(batch["input_ids"], batch["attention_mask"], strict=True)
    ]}  # fmt: skip
    labels = batch.get("labels")
    if labels is not None and labels.ndim == 2 and not labels.is_floating_point():
        found["labels"] = [tokenizer.convert_ids_to_tokens(row[row >= 0].tolist()) for row in labels]
    return found


def table(results: dict[str, list[dict]], heads: int) -> str:
    """Heads by what they cost under zero ablation."""
    drops = [row for row in results["ablation"] if row["mode"] == "zero" and "rank" in row]
    gradient = {row["head"]: row["value"] for row in results["gradient"] if "head" in row}
    is_share = "class" in drops[0]
    scale, unit = (100, "points") if is_share else (1, drops[0]["metric"])
    lines = [f"{'head':20} {'drop':>9}  {'95 % interval':22} {'p (Holm)':>9} {'gradient':>9}"]
    for row in drops:
        low, high = row["interval"] or (float("nan"), float("nan"))
        lines.append(f"{row['head']:20} {scale * row['value']:9.4f}  {scale * low:9.4f} to {scale * high:9.4f} "
                     f"{row['p_holm']:10.2g} {gradient[row['head']]:9.3g}")  # fmt: skip
    first = drops[0]
    intact = first["intact"]["value"]
    lines.append(f"{heads} heads, intact {100 * intact:.2f} %" if is_share else f"{heads} heads, intact {intact:.4f}")
    lines[-1] += f", n = {first['n']:,}; drops in {unit}, zero ablation, run by {first['way']}"
    return "\n".join(lines)
