"""The code that a published model carries, so that transformers loads it where headcount is not installed.

transformers runs the code of a repository from one flat folder and looks only for `from .name import`. So the files of
`modeling/` and `configuration/` go there side by side, as they are but for such imports:

    from ..configuration.rules import nearest       becomes       from .rules import nearest

This file travels with them: a model that was loaded from a repository is saved with the whole code again, whichever
environment it was loaded in.
"""

import os
import re
from pathlib import Path

from ..configuration.configuration_headcount import HeadcountConfig


AUTO_CLASSES = {
    "AutoConfig": "configuration_headcount.HeadcountConfig",
    "AutoModel": "modeling_headcount.HeadcountModel",
    "AutoModelForSeq2SeqLM": "modeling_headcount.HeadcountForConditionalGeneration",
    "AutoModelForCausalLM": "modeling_headcount.HeadcountForCausalLM",
    "AutoModelForSequenceClassification": "modeling_headcount.HeadcountForSequenceClassification",
}
DECIMAL = 10  # digits of numbers; other tasks may count letters or bits as digits
# Which Auto class the pipeline loads its model with.
ADDITION_MODELS = {"encoder-decoder": "AutoModelForSeq2SeqLM", "decoder": "AutoModelForCausalLM"}


def carries_code(config: HeadcountConfig) -> bool:
    """Whether a model with this config is saved with its code."""
    return bool(getattr(config, "auto_map", None))


def name_code(config: HeadcountConfig) -> None:
    """Notes in the config which class of the carried code is what, as transformers wants it."""
    # Here rather than above: the pipeline needs half of transformers. That it is imported at all is what makes
    # transformers fetch its file along with the others.
    from .addition_pipeline import TASK, AdditionPipeline

    config.auto_map = dict(AUTO_CLASSES)
    if config.architecture in ADDITION_MODELS and len(config.digit_token_ids or ()) == DECIMAL:
        place = f"{AdditionPipeline.__module__.rsplit('.', 1)[-1]}.{AdditionPipeline.__name__}"
        config.custom_pipelines = {TASK: {"impl": place, "pt": [ADDITION_MODELS[config.architecture]]}}


def flat_sources() -> dict[str, str]:
    """File name -> text of every file that a model needs, with the imports of a flat folder."""
    here = Path(__file__).parent
    is_flat = (here / "configuration_headcount.py").exists()
    folders = [here] if is_flat else [here.parent / "configuration", here]
    sources: dict[str, str] = {}
    for path in (path for folder in folders for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"):
        if path.name in sources:
            raise ValueError(f"{path.name} is in two folders; expected file names that differ, for one flat folder.")
        sources[path.name] = flatten_imports(path.read_text(encoding="utf-8"))
    return sources


def flatten_imports(source: str) -> str:
    return re.sub(r"^(\s*from )\.\.\w+(\.\w+ import\b)", r"\1\2", source, flags=re.MULTILINE)


def write_code(folder: str | os.PathLike) -> list[Path]:
    """Writes the flat files into a folder and returns their paths."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, text in flat_sources().items():
        partial = folder / f".{name}.partial"
        partial.write_text(text, encoding="utf-8")
        paths.append(partial.replace(folder / name))
    return paths
