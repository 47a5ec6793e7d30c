"""The corpora as `datasets` builders: `AdditionBuilder(digits=4).download_and_prepare()` and `.as_dataset()`.

>>> builder = AdditionBuilder(config_name="pairs", digits=4)
>>> builder.download_and_prepare()
>>> builder.as_dataset(split="test")

`write_folder` writes the same tables as a folder that `load_dataset` reads without headcount.
"""

from dataclasses import MISSING, field, fields, make_dataclass

import datasets

from .addition import AdditionCorpus
from .addition_options import AdditionOptions
from .sortedness_corpus import SortednessCorpus, SortednessOptions


# Part of the cache path: goes up when the same options give other rows than before.
CORPUS_VERSION = "1.2.0"


def builder_config(name: str, options: type) -> type[datasets.BuilderConfig]:
    """The options of a corpus as a builder config, whose own `name` says which part of the corpus is wanted."""
    columns = [
        (
            option.name,
            option.type,
            field(default_factory=option.default_factory)
            if option.default is MISSING
            else field(default=option.default),
        )
        for option in fields(options)
    ]
    return make_dataclass(name, columns, bases=(datasets.BuilderConfig,), namespace={"__module__": __name__})


AdditionBuilderConfig = builder_config("AdditionBuilderConfig", AdditionOptions)
SortednessBuilderConfig = builder_config("SortednessBuilderConfig", SortednessOptions)


class CorpusBuilder(datasets.ArrowBasedBuilder):
    """What both builders share: the corpus of the config's options, split by split."""

    VERSION = datasets.Version(CORPUS_VERSION)
    DEFAULT_CONFIG_NAME = "default"
    options_class: type
    corpus_class: type

    def _info(self) -> datasets.DatasetInfo:
        names = [option.name for option in fields(self.options_class)]
        self.corpus = self.corpus_class(self.options_class(**{name: getattr(self.config, name) for name in names}))
        if self.config.name not in self.corpus.splits():
            raise ValueError(
                f"these options give no config {self.config.name!r}; "
                f"expected one of {', '.join(self.corpus.splits())}."
            )
        return datasets.DatasetInfo(
            description=f"Exact {self.corpus.name} problems, made by headcount.",
            features=self.corpus.features(self.config.name),
            license="apache-2.0",
        )

    def _split_generators(self, dl_manager) -> list[datasets.SplitGenerator]:
        return [
            datasets.SplitGenerator(name=split, gen_kwargs={"split": split})
            for split in self.corpus.splits()[self.config.name]
        ]

    def _generate_tables(self, split: str):
        for number, table in enumerate(self.corpus.tables(self.config.name, split)):
            yield (0, number), table


class AdditionBuilder(CorpusBuilder):
    BUILDER_CONFIG_CLASS = AdditionBuilderConfig
    BUILDER_CONFIGS = [
        AdditionBuilderConfig(name="default"),
        AdditionBuilderConfig(name="pairs"),
        AdditionBuilderConfig(name="exhaustive", exhaustive=True),
    ]
    options_class = AdditionOptions
    corpus_class = AdditionCorpus


class SortednessBuilder(CorpusBuilder):
    BUILDER_CONFIG_CLASS = SortednessBuilderConfig
    BUILDER_CONFIGS = [SortednessBuilderConfig(name=name) for name in ("default", "shuffle", "swap", "move")]
    options_class = SortednessOptions
    corpus_class = SortednessCorpus
