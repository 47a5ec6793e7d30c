"""The dataset card of a corpus folder: README.md with the `configs:` that load_dataset reads, and one figure."""

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from string import Template
from typing import Any

from datasets import ClassLabel, Features
from huggingface_hub import DatasetCard, DatasetCardData

from .corpus import Corpus
from .tasks import DataCard


EXAMPLE_ROWS = 3
SHOWN_VALUES = 16

PAGE = Template("""\
# $title

$summary

Made by headcount with

```
$command
```

The same options give the same rows on every machine.

## Load

```python
from datasets import load_dataset

$example_load
```

headcount is not needed for that. With headcount, `headcount.load_folder` reads a local copy after it has checked every
parquet file against `manifest.json`.

## Splits

$splits

$balance_text

$balance

![$figure_text](figures/$figure)

*$figure_text*

## How the rows were made

$method

Options of this folder:

$options

## Columns

$columns

## Examples

$examples

## What to know before use

$limits

## Licence

Apache-2.0. The rows are generated; they contain no personal data and nothing from any other dataset.
""")


def write_card(
    corpus: Corpus,
    tallies: dict[tuple[str, str], dict[str, Counter]],
    examples: dict[tuple[str, str], list[dict]],
    folder: Path,
) -> None:
    """Writes README.md and its figure into a folder whose parquet files are already there."""
    task, options, text = corpus.task, corpus.options, corpus.task.texts.data
    (folder / "figures").mkdir()
    text.draw(tallies, folder / "figures" / text.figure)
    splits = corpus.sizes()
    page = PAGE.substitute(
        title=task.texts.title,
        summary=text.summary,
        command=task.data_command(options),
        example_load=example_load(splits),
        splits=table(
            ["config", "split", "rows", "what it is for"],
            [
                [f"`{config}`", f"`{split}`", f"{rows:,}", text.purpose(config, split)]
                for config, sizes in splits.items()
                for split, rows in sizes.items()
            ],
        ),
        balance_text=text.balance_text,
        balance=balance_table(text, tallies),
        figure=text.figure,
        figure_text=text.figure_text,
        method=text.method,
        options=table(
            ["option", "value"], [[f"`{name}`", f"`{shown(value)}`"] for name, value in asdict(options).items()]
        ),
        columns="\n\n".join(
            f"Config{'s' if len(configs) > 1 else ''} {', '.join(f'`{name}`' for name in configs)}:\n\n"
            + table(["column", "meaning"], [[f"`{name}`", meaning] for name, meaning in columns.items()])
            for configs, columns in columns_of(text, splits)
        ),
        examples="\n\n".join(
            f"`{config}`, split `{split}`:\n\n{example_rows(corpus.features(config), examples[config, split])}"
            for config, split in ((config, next(iter(sizes))) for config, sizes in splits.items())
        ),
        limits=text.limits,
    )
    data = DatasetCardData(
        pretty_name=task.texts.title,
        license="apache-2.0",
        task_categories=[text.category],
        tags=["headcount", "synthetic", "algorithmic", task.name],
        size_categories=[size_category(sum(sum(sizes.values()) for sizes in splits.values()))],
        configs=[
            {
                "config_name": config,
                **({"default": True} if number == 0 else {}),
                "data_files": [{"split": split, "path": file_names(folder, config, split)} for split in sizes],
            }
            for number, (config, sizes) in enumerate(splits.items())
        ],
    )
    DatasetCard(f"---\n{data.to_yaml()}\n---\n\n{page}").save(folder / "README.md")


def example_load(splits: dict[str, dict[str, int]]) -> str:
    """A line for the first two splits of every config."""
    return "\n".join(
        f'{split} = load_dataset(DIR, "{config}", split="{split}")'
        for config, sizes in splits.items()
        for split in list(sizes)[:2]
    )


def columns_of(text: DataCard, splits: dict) -> list[tuple[list[str], dict[str, str]]]:
    """(configs, their columns) for the configs that there are."""
    with_own = [([config], text.columns[config]) for config in splits if config in text.columns]
    others = [config for config in splits if config not in text.columns]
    return [*([(others, text.columns[""])] if others else []), *with_own]


def file_names(folder: Path, config: str, split: str) -> list[str]:
    """By name, not as a pattern: by these words alone load_dataset tells a rewritten corpus from its cached rows."""
    return [path.relative_to(folder).as_posix() for path in sorted((folder / config).glob(f"{split}-*.parquet"))]


def balance_table(text: DataCard, tallies: dict[tuple[str, str], dict[str, Counter]]) -> str:
    rows = {place: tally[text.balance] for place, tally in tallies.items() if text.balance in tally}
    names = sorted({name for counts in rows.values() for name in counts}, key=text.balance_order)
    return table(
        ["config", "split", *map(str, names)],
        [
            [f"`{config}`", f"`{split}`", *(f"{counts[name]:,}" for name in names)]
            for (config, split), counts in rows.items()
        ],
    )


def command_of(task: str, options: Any) -> str:
    """The command line that makes this corpus: what differs from the defaults, and the seed."""
    defaults, words = asdict(type(options)()), [f"headcount data {task} --output DIR --seed {options.seed}"]
    for name, value in asdict(options).items():
        flag = "--" + name.replace("_", "-")
        if name == "seed" or value == defaults[name]:
            continue
        if isinstance(value, bool):
            words.append(flag if value else "--no-" + name.replace("_", "-"))
        else:
            words.append(f"{flag} {shown(value)}")
    return " ".join(words)


def shown(value: Any) -> str:
    """A value as the command line takes it."""
    if isinstance(value, dict):
        return ",".join(f"{name}={share:g}" for name, share in value.items())
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value)


def example_rows(features: Features, rows: list[dict]) -> str:
    return table(
        [f"`{name}`" for name in rows[0]],
        [[shorten(with_names(features[name], value)) for name, value in row.items()] for row in rows],
    )


def with_names(feature: Any, value: Any) -> Any:
    """The name of a class instead of its number, also within lists."""
    if isinstance(value, list):
        return [with_names(feature.feature, item) for item in value]
    return feature.int2str(value) if isinstance(feature, ClassLabel) else value


def shorten(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value[:SHOWN_VALUES])) + (" ..." if len(value) > SHOWN_VALUES else "")
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def size_category(rows: int) -> str:
    """The Hub's name for so many rows: `10K<n<100K`."""
    bounds = [
        (1_000, "n<1K"),
        (10_000, "1K<n<10K"),
        (100_000, "10K<n<100K"),
        (10**6, "100K<n<1M"),
        (10**7, "1M<n<10M"),
    ]
    bounds += [(10**8, "10M<n<100M"), (10**9, "100M<n<1B")]
    return next((name for bound, name in bounds if rows < bound), "1B<n<10B")
