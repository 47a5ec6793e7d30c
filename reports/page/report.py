"""`report.html` and `report.md` from result files alone: the same findings and tables, the page with charts as well.

The page is one file: style, script and data are inside it, and its security policy allows no request. What comes from
data is escaped by the template, and by `embedded_json` inside the script element; the script only makes text nodes.
The same rows give the same bytes.
"""

import base64
import hashlib
import json
import math
import re
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from ...records.files import write_text
from ..markdown import inline
from ..study import Study, read_study
from .head_view import head_view
from .sections import Section, make_sections, texts_of


GENERATOR = "headcount report"
SCRIPTS = ("charts.js", "heads.js", "page.js")
MOST_BYTES = 3_000_000  # of the page; figures that do not fit any more are linked
MIME = {".svg": "image/svg+xml", ".png": "image/png"}


def write_report(folder: Path, overwrite: bool = False) -> list[Path]:
    """Writes report.html and report.md into a study or run folder; a file that is not a report is left alone.

    Args:
        folder: a study, a run, or what `headcount heads`, `prune` or `extrapolate` wrote.
        overwrite: replace a file of that name that headcount did not write.

    Returns:
        The files written.

    >>> import headcount
    >>> tiny = ["training.steps=2", "model.num_hidden_layers=1", "model.num_attention_heads=2", "model.hidden_size=16"]
    >>> run = headcount.train("reverse", "runs/tiny", settings=tiny)
    >>> [path.name for path in write_report(run.folder)]
    ['report.html', 'report.md']
    """
    study = read_study(folder)
    if draw_seeds(study):
        study = read_study(folder)
    targets = {folder / "report.html": render_html, folder / "report.md": render_markdown}
    for path in targets:
        if path.exists() and not overwrite and GENERATOR not in path.read_text(encoding="utf-8", errors="replace"):
            raise ValueError(f"{path} was not written by headcount report; expected --overwrite to replace it.")
    for path, render in targets.items():
        try:
            write_text(path, render(study))
        except OSError as error:
            raise ValueError(f"{path} cannot be written ({error.strerror}); expected a writable folder.") from error
    return list(targets)


def draw_seeds(study: Study) -> list[Path]:
    """Draws the atlas of every seed into FOLDER/figures, where heads of several were studied; gives the files."""
    # Only here: a report of one seed needs no matplotlib, which takes longer to import than to write the report.
    from ..figures.atlas import draw_atlas_by_seed
    from ..figures.drawing import save_figure

    rows = {seed: part.get("atlas") for seed, part in study.heads_by_run.items() if part.get("atlas")}
    figure = draw_atlas_by_seed(rows) if len(rows) > 1 else None
    return [] if figure is None else save_figure(figure, study.folder / "figures", "atlas_by_seed", kinds=("png",))


def render_html(study: Study) -> str:
    heads = head_view(study)
    sections = make_sections(study, heads)
    data = {"charts": [chart for section in sections for chart in section.charts], "heads": heads}
    script = "\n" + "\n".join(["'use strict';", *(template_text(name) for name in SCRIPTS)])
    embedded = embedded_json(data)
    embed_figures(study, sections, MOST_BYTES - len(embedded.encode()) - len(script.encode()) - 200_000)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = environment(autoescape=True).get_template("report.html")
    return page.render(
        generator=GENERATOR,
        **texts_of(study),
        sections=sections,
        style=template_text("report.css"),
        script=script,
        script_hash=f"sha256-{digest}",
        data=embedded,
    )


def render_markdown(study: Study) -> str:
    sections = make_sections(study, head_view(study))
    page = environment(autoescape=False).get_template("report.md.jinja")
    text = page.render(generator=GENERATOR, **texts_of(study), sections=sections)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def environment(autoescape: bool) -> Environment:
    found = Environment(
        loader=PackageLoader(__package__, "templates"),
        autoescape=autoescape,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    found.filters["inline"] = inline
    found.filters["unbroken"] = lambda text: text.replace(" %", "\u00a0%").replace("n = ", "n\u00a0=\u00a0")
    return found


def template_text(name: str) -> str:
    return (resources.files(__package__) / "templates" / name).read_text(encoding="utf-8")


def embedded_json(data: Any) -> str:
    """JSON that can stand inside a script element: no character of it can end the element or start a comment."""
    text = json.dumps(_finite(data), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _finite(value: Any) -> Any:
    """What is not a number in JSON becomes null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, (list, tuple)) else value


def embed_figures(study: Study, sections: list[Section], room: int) -> None:
    """Puts figures into the page while there is room, each in its smaller format; the others stay links."""
    for figure in (figure for section in sections for figure in section.figures):
        path = min((study.folder / path for path in figure.paths), key=lambda path: path.stat().st_size)
        size = 4 * path.stat().st_size // 3
        if size <= room:
            room -= size
            figure.data = f"data:{MIME[path.suffix]};base64,{base64.b64encode(path.read_bytes()).decode()}"
        else:
            figure.caption += " (Too large to be inside this page.)"
