"""The command line `headcount`: puts the verbs together; a user's mistake is one sentence and exit code 2."""

import functools
import os
import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Annotated, Any

import typer

from .. import __version__
from ..records.memory import keep_freed_memory
from ..records.stopping import INTERRUPTED, end_with_parent, stoppable, was_interrupted
from . import (
    board,
    data,
    env,
    evaluate,
    explain,
    extrapolate,
    heads,
    ls,
    new,
    patch,
    prune,
    push,
    report,
    study,
    train,
    trust,
)
from .system_errors import is_of_the_system, sentence_for


app = typer.Typer(
    name="headcount",
    help="Attention heads that count, and which heads count: small transformers that really compute.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
MODULES = (
    board,
    data,
    env,
    evaluate,
    explain,
    extrapolate,
    heads,
    ls,
    patch,
    prune,
    push,
    report,
    study,
    train,
    trust,
)


def saying_how_to_go_on(module: ModuleType) -> Callable[..., None]:
    """The verb, which after Ctrl-C or SIGTERM says what becomes of its work; typer would end it without a word."""

    @functools.wraps(module.main)
    def main(*arguments: Any, **options: Any) -> None:
        try:
            module.main(*arguments, **options)
        except (KeyboardInterrupt, Exception) as error:
            if not isinstance(error, KeyboardInterrupt) and not was_interrupted():
                raise
            how = getattr(module, "GOES_ON", "the same command can be given again")
            print(f"\nheadcount: interrupted; {how}", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None

    return main


for module in MODULES:
    name, settings = module.__name__.rsplit(".", 1)[1], getattr(module, "CONTEXT", None)
    app.command(name, context_settings=settings)(saying_how_to_go_on(module))


app.add_typer(new.app, name="new")


def print_version(wanted: bool) -> None:
    if wanted:
        print(f"headcount {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


# typer carries its own copy of click, whose base class for a user's mistake has no public name of its own.
UserError: Any = next(parent for parent in typer.BadParameter.__mro__ if parent.__name__ == "ClickException")


def one_line(text: str) -> str:
    """A sentence on one line; of a word without end, such as a value of a broken file, the beginning."""
    return re.sub(r"\S{1000,}", lambda word: f"{word[0][:100]}...", " ".join(text.split()))


def run(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns its exit code: 0, or 2 after one sentence on standard error.

    130 after Ctrl-C and SIGTERM alike.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    if not sys.stderr.isatty():  # bars only on a terminal: transformers, datasets and huggingface_hub read this
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    keep_freed_memory()
    end_with_parent()
    with stoppable():
        try:
            check_words(arguments)
            check_working_directory()
            code = app(arguments or ["--help"], prog_name="headcount", standalone_mode=False) or 0
            sys.stdout.flush()
            return code
        except UserError as error:
            print(f"headcount: {one_line(error.format_message().removeprefix('Invalid value: '))}", file=sys.stderr)
            return 2
        except (typer.Abort, KeyboardInterrupt):
            print("headcount: interrupted", file=sys.stderr)
            return INTERRUPTED
        except BrokenPipeError:  # whoever read the output has seen enough
            discard_output()
            return 1
        except Exception as error:
            if not is_of_the_system(error):
                raise
            print(f"headcount: {sentence_for(error)}", file=sys.stderr)
            discard_output()
            return 2


def check_words(words: list[str]) -> None:
    """Raises for names that are no text: they could be neither printed nor noted in a file."""
    for word in words:
        try:
            word.encode("utf-8")
        except UnicodeEncodeError as error:
            raise typer.BadParameter(f"{word!r:.100} is not UTF-8; expected words and names that are.") from error


def check_working_directory() -> None:
    try:
        os.getcwd()
    except OSError as error:
        raise typer.BadParameter(
            f"the working directory is gone ({error.strerror}); expected to be in one that exists."
        ) from error


def discard_output() -> None:
    """What could not be written is not tried again when Python ends."""
    own = sys.__stdout__
    if own is not None and sys.stdout is own:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), own.fileno())
