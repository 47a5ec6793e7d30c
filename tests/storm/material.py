"""What the storm works on: a small run, data, results and models, and what every verb gives undisturbed."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from headcount.records.files import write_json, write_text
from headcount.records.rows import write_rows

from .launch import run


TESTS = Path(__file__).parent.parent
COPYING = str(TESTS / "own_task" / "copying.py")
SECONDS = 240.0  # for any one command of the preparation

FEW_STEPS = ("training.steps=12", "training.evaluate_every=3", "training.checkpoint_every=3", "training.batch_size=16")
FEW_PROBLEMS = {"train": 300, "validation": 40, "test": 40, "hard": 20, "pairs": 20}
SMALL = ("model.num_attention_heads=2", "model.hidden_size=16", "model.intermediate_size=16")
SETTINGS = (*FEW_STEPS, *SMALL, *(f"data.{name}={rows}" for name, rows in FEW_PROBLEMS.items()))
TRAIN = ("train", "addition-tiny", *(word for value in SETTINGS for word in ("--set", value)))
DATA = ("data", "addition", "--recipe", "addition-tiny")
DATA += tuple(word for name, rows in FEW_PROBLEMS.items() for word in (f"--{name}", str(rows)))
WORDS = ("[PAD]", "[UNK]", *(f"w{i}" for i in range(30)))


@dataclass(frozen=True)
class Verb:
    """A command that writes `out` in its folder; `needs` are folders of the material that it reads, as copies."""

    name: str
    arguments: tuple[str, ...]
    needs: tuple[str, ...] = ()
    out: str = "out"
    goes_on: tuple[str, ...] = ()  # further words with which it goes on, where there is something to go on with
    before: tuple[str, ...] = ()  # a command whose result this one replaces
    kills: tuple[int, int] = (1, 3)
    weight: int = 1  # in how many cases of a whole storm it is killed
    cold: bool = False
    limit: float = 120.0


VERBS = (
    Verb("train", (*TRAIN, "--output", "out"), goes_on=("--resume",), weight=16),
    Verb("train, from nothing", (*TRAIN, "--output", "out"), goes_on=("--resume",), weight=2, cold=True),
    Verb("heads", ("heads", "run", "--output", "out", "--rows", "20"), ("run",), weight=8),
    Verb(
        "prune",
        ("prune", "run", "--output", "out", "--rows", "20", "--keep", "2", "--finetune", "2", "--control"),
        ("run",),
        weight=8,
    ),
    Verb("data", (*DATA, "--output", "out"), weight=8),
    Verb(
        "data --overwrite",
        (*DATA, "--output", "out", "--overwrite"),
        before=("data", "reverse", "--train", "50", "--validation", "20", "--test", "20", "--output", "out"),
        weight=10,
    ),
    Verb("evaluate", ("evaluate", "run"), ("run",), out="run", weight=4),
    Verb("report", ("report", "study"), ("study",), out="study", weight=12),
    Verb("push --local", ("push", "run", "--repo-id", "alice/sums", "--local", "out"), ("run",), weight=4),
    Verb("push --local, data", ("push", "data", "--repo-id", "alice/sums", "--local", "out"), ("data",), weight=8),
    Verb(
        "extrapolate",
        ("extrapolate", "--task", COPYING, "--output", "out", "--quick", "--rows", "10", "--workers", "1"),
        weight=3,
        kills=(2, 3),
        limit=240.0,
    ),
    Verb("study", ("study", COPYING, "--output", "out", "--quick", "--workers", "2"), kills=(8, 10), limit=400.0),
)


@dataclass
class Material:
    """`undisturbed` are the folders that verbs leave by themselves, `usual` the seconds that they take."""

    work: Path
    usual: dict[str, float] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.work / "material"

    def undisturbed(self, verb: Verb) -> Path:
        return self.work / "undisturbed" / verb.name.replace(" ", "-").replace(",", "")

    def copy(self, name: str, place: Path) -> Path:
        """A copy in the folder of a case."""
        target = place / name
        if (self.folder / name).is_dir():
            shutil.copytree(self.folder / name, target, symlinks=True)
        else:
            shutil.copyfile(self.folder / name, target)
        return target


def environment() -> dict[str, str]:
    """Of this process and all that it starts: one thread each, and nothing goes out of the machine."""
    closed = "http://127.0.0.1:9"
    return {
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",  # as without a terminal; a fork has read it already
        "HF_ENDPOINT": closed,
        "HTTP_PROXY": closed,
        "HTTPS_PROXY": closed,
        "NO_PROXY": "127.0.0.1,localhost",
    }


def places(work: Path) -> dict[str, str]:
    """Where libraries keep what they download and remember: not at home."""
    kept = {"HF_HOME": "hf", "MPLCONFIGDIR": "matplotlib", "TMPDIR": "tmp", "XDG_STATE_HOME": "state"}
    return {name: str(work / folder) for name, folder in kept.items()}


def prepare(work: Path, verbs: tuple[Verb, ...], say: Callable[[str], None]) -> Material:
    """Makes the material, and runs every verb once undisturbed."""
    material = Material(work)
    for path in (work, material.folder, *map(Path, places(work).values())):
        path.mkdir(parents=True, exist_ok=True)
    log, here = work / "logs", material.folder
    for name, arguments in {
        "run": (*TRAIN, "--output", "run"),
        "data": (*DATA, "--output", "data"),
        "heads": ("heads", "run", "--output", "heads", "--rows", "20"),
        "pruned": ("prune", "run", "--output", "pruned", "--rows", "20", "--keep", "2"),
    }.items():
        must(arguments, here, log / name)
    make_study(here)
    make_tables(here)
    must((), here, log / "stock", before=make_stock_model)
    for verb in verbs:
        folder = material.undisturbed(verb)
        folder.mkdir(parents=True)
        for name in verb.needs:
            material.copy(name, folder)
        seconds = must(verb.arguments, folder, log / verb.name, cold=verb.cold)
        material.usual[verb.name] = seconds
        say(f"undisturbed: {verb.name} takes {seconds:.1f} s")
    return material


def must(arguments: tuple[str, ...], place: Path, log: Path, **options: object) -> float:
    answer = run(arguments, place, log, SECONDS, **options)
    if answer.code != 0:
        raise RuntimeError(f"{arguments} ended with {answer.code}: {answer.stderr[-2000:]}")
    return answer.seconds


def make_study(here: Path) -> None:
    """A study as `headcount report` reads it: a run, its heads, a pruned model, and length rows made by hand."""
    from small_study import addition_study, length_rows, summary_rows

    study = here / "study"
    shutil.copytree(here / "run", study / "runs" / "addition-tiny-0")
    shutil.copytree(here / "heads", study / "heads")
    shutil.copytree(here / "pruned", study / "pruned")
    write_rows(study / "length", "lengths", length_rows())
    write_rows(study / "length", "summary", summary_rows())
    for name, rows in addition_study().items():
        write_rows(study / "adding", name, rows)
    steps = {"train": {"command": "headcount train addition-tiny", "seconds": 90.0}}
    write_json(study / "study.json", {"quick": True, "seconds": 0, "finished_at": None, "steps": steps})


def make_tables(here: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    texts = [f"w{i} w{i + 3} w1" for i in range(12)]
    write_text(here / "texts.csv", "text\n" + "\n".join(texts) + "\n")
    write_text(here / "texts.txt", "\n".join(texts) + "\n")
    write_text(here / "texts.jsonl", "".join(f'{{"text": "{text}"}}\n' for text in texts))
    pyarrow.parquet.write_table(pyarrow.table({"text": texts}), here / "texts.parquet")


def make_stock_model() -> None:
    """A model of transformers with its tokenizer, in the folder `stock`; ends the process, which computed tensors."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    sizes = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    BertModel(BertConfig(**sizes, intermediate_size=16, max_position_embeddings=40)).save_pretrained("stock")
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    tokens = {"pad_token": "[PAD]", "unk_token": "[UNK]", "model_max_length": 30}
    PreTrainedTokenizerFast(tokenizer_object=words, **tokens).save_pretrained("stock")
    os._exit(0)
