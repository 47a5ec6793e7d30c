"""The corpora as `datasets` builders: `make_builder("addition", digits=4).download_and_prepare()` and `.as_dataset()`.

>>> builder = make_builder("addition", "pairs", digits=4)
>>> builder.config.name
'pairs'

`write_folder` writes the same tables as a folder that `load_dataset` reads without headcount.
"""

from collections.abc import Iterator
from dataclasses import MISSING, field, fields, make_dataclass
from functools import cache
from typing import Any

import datasets
import pyarrow as pa

from .registry import find_task
from .tasks import Task


# Part of the cache path: goes up when the same options give other rows than before.
CORPUS_VERSION = "1.2.0"


def builder_config(task: Task) -> type[datasets.BuilderConfig]:
    """The options of a task as a builder config, whose own `name` says which part of the corpus is wanted."""
    columns = []
    for option in fields(task.options):
        has_default = option.default is not MISSING
        default = field(default=option.default) if has_default else field(default_factory=option.default_factory)
        columns.append((option.name, option.type, default))
    name = f"{task.name.capitalize()}BuilderConfig"
    return make_dataclass(name, columns, bases=(datasets.BuilderConfig,), namespace={"__module__": __name__})


class CorpusBuilder(datasets.ArrowBasedBuilder):
    """The corpus of the config's options, split by split."""

    VERSION = datasets.Version(CORPUS_VERSION)
    DEFAULT_CONFIG_NAME = "default"
    task: Task

    def _info(self) -> datasets.DatasetInfo:
        names = [option.name for option in fields(self.task.options)]
        self.corpus = self.task.splits(self.task.options(**{name: getattr(self.config, name) for name in names}))
        if self.config.name not in self.corpus.sizes():
            raise ValueError(
                f"these options give no config {self.config.name!r}; expected one of {', '.join(self.corpus.sizes())}."
            )
        return datasets.DatasetInfo(
            description=f"Exact {self.task.name} problems, made by headcount.",
            features=self.corpus.features(self.config.name),
            license="apache-2.0",
        )

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        return [
            datasets.SplitGenerator(name=split, gen_kwargs={"split": split})
            for split in self.corpus.sizes()[self.config.name]
        ]

    def _generate_tables(self, split: str) -> Iterator[tuple[tuple[int, int], pa.Table]]:
        for number, table in enumerate(self.corpus.tables(self.config.name, split)):
            yield (0, number), table


@cache
def builder_class(name: str) -> type[CorpusBuilder]:
    """The builder of a task."""
    task = find_task(name)
    config = builder_config(task)
    members = {"task": task, "BUILDER_CONFIG_CLASS": config, "__module__": __name__}
    return type(f"{name.capitalize()}Builder", (CorpusBuilder,), members)


def make_builder(
    task: str, config_name: str = "default", cache_dir: str | None = None, **options: Any
) -> CorpusBuilder:
    return builder_class(task)(cache_dir=cache_dir, config_name=config_name, **options)
