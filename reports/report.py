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
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from . import charts, tables
from .findings import collect_findings
from .head_view import head_view
from .study_folder import Study, read_study
from .wording import counted


GENERATOR = "headcount report"
SCRIPTS = ("charts.js", "heads.js", "page.js")
MOST_BYTES = 3_000_000  # of the page; figures that do not fit any more are linked
MIME = {".svg": "image/svg+xml", ".png": "image/png"}

# Part -> figures that are shown as they are, with their captions.
FIGURES = {
    "heads": {
        "carry_atlas": "Carry atlas: what every head is, and the evidence.",
        "specialization": "What every head attends to; in brackets, a head without preference.",
        "subsets": "All subsets of heads: how far each ranking is from the best.",
    },
    "pruning": {},
    "length": {
        "position_tables": "Position embeddings: tables and cosines; the line marks the last trained position.",
        "dilution": "Dilution: attention and pooled signal by length.",
        "margins": "Logits of sorted and of one-swap sequences by length.",
        "neighbour_head": "The head that looks at the neighbour, by length.",
        "scores_by_distance": "What each encoding adds to the scores, by distance.",
        "shifted_positions": "The same sequences at shifted positions.",
    },
    "adding": {
        "accuracy_by_digits": "Exact match by digits, every class of problems.",
        "margin_and_entropy": "The smallest logit margin of an answer, and how attention spreads, by digits.",
        "what_heads_read": "What every head reads while a column is written; the bias that makes it so.",
    },
}  # fmt: skip


@dataclass
class Figure:
    caption: str
    paths: list[str]
    data: str = ""


@dataclass
class Section:
    key: str
    title: str
    lead: str = ""
    hint: str = ""  # how to use the page
    charts: list[dict] = field(default_factory=list)
    tables: list = field(default_factory=list)
    more_tables: list = field(default_factory=list)
    more_title: str = ""
    figures: list[Figure] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    has_heads: bool = False

    @property
    def is_empty(self) -> bool:
        return not (self.charts or self.tables or self.figures or self.has_heads)


def write_report(folder: Path, overwrite: bool = False) -> list[Path]:
    """Writes report.html and report.md into a study or run folder; a file that is not a report is left alone."""
    study = read_study(folder)
    targets = {folder / "report.html": render_html, folder / "report.md": render_markdown}
    for path in targets:
        if path.exists() and not overwrite and GENERATOR not in path.read_text(encoding="utf-8", errors="replace"):
            raise ValueError(f"{path} was not written by headcount report; expected --overwrite to replace it.")
    for path, render in targets.items():
        partial = path.with_name(f".{path.name}.partial")
        try:
            partial.write_text(render(study), encoding="utf-8")
            partial.replace(path)
        except OSError as error:
            raise ValueError(f"{path} cannot be written ({error.strerror}); expected a writable folder.") from error
    return list(targets)


def render_html(study: Study) -> str:
    heads = head_view(study)
    sections = make_sections(study, heads)
    data = {"charts": [chart for section in sections for chart in section.charts], "heads": heads}
    script = "\n" + "\n".join(["'use strict';", *(template_text(name) for name in SCRIPTS)])
    embedded = embedded_json(data)
    embed_figures(study, sections, MOST_BYTES - len(embedded.encode()) - len(script.encode()) - 200_000)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment(autoescape=True).get_template("report.html").render(
        **texts_of(study), sections=sections, style=template_text("report.css"), script=script,
        script_hash=f"sha256-{digest}", data=embedded,
    )  # fmt: skip


def render_markdown(study: Study) -> str:
    sections = make_sections(study, head_view(study))
    text = environment(autoescape=False).get_template("report.md.jinja").render(**texts_of(study), sections=sections)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def environment(autoescape: bool) -> Environment:
    found = Environment(
        loader=PackageLoader(__package__, "templates"), autoescape=autoescape, undefined=StrictUndefined,
        keep_trailing_newline=True,
    )  # fmt: skip
    found.filters["inline"] = markdown_inline
    found.filters["unbroken"] = lambda text: text.replace(" %", "\u00a0%").replace("n = ", "n\u00a0=\u00a0")
    return found


def template_text(name: str) -> str:
    return (resources.files(__package__) / "templates" / name).read_text(encoding="utf-8")


def markdown_inline(text) -> str:
    """Text on one line in which nothing is markup."""
    return re.sub(r"([\\`*\[\]<|])", r"\\\1", re.sub(r"\s+", " ", str(text)))


def embedded_json(data) -> str:
    """JSON that can stand inside a script element: no character of it can end the element or start a comment."""
    text = json.dumps(_finite(data), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _finite(value):
    """What is not a number in JSON becomes null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, (list, tuple)) else value


def texts_of(study: Study) -> dict:
    """Title, what the study is, and the findings by part."""
    names = {
        "runs": "Trained models",
        "heads": f"Heads of {study.studied}" if study.studied else "Heads of one trained model",
        "pruning": "Removing heads for good, one trained model",
        "length": "Length",
        "adding": "Long addition",
    }
    about = [counted(len(study.runs), "run")] if study.runs else []
    about += ["a quick study"] if study.about.get("quick") else []
    seconds = sum(step["seconds"] for step in study.about.get("steps", {}).values())
    if seconds:
        about.append(f"{counted(max(1, round(seconds / 60)), 'minute')} of computing, summed over steps")
    if study.about.get("finished_at"):
        about.append(f"finished {study.about['finished_at']}")
    found = [{"title": names[part], "findings": own} for part, own in collect_findings(study).items()]
    return {
        "generator": GENERATOR,
        "title": study.folder.resolve().name or "study",
        "about": f"{', '.join(about) or 'Result files'}. Every rate stands with its n and 95 % interval.",
        "findings": found,
    }


def make_sections(study: Study, heads: dict | None) -> list[Section]:
    tasks = {run.task for run in study.runs}
    runs_title = {frozenset({"addition"}): "Addition", frozenset({"sortedness"}): "Sortedness"}
    whose = f"the run {study.studied}" if study.studied else "one trained model"
    orders = {run.name: run.recipe.get("data", {}).get("answer_order") for run in study.runs}
    backwards = " Its answers are written units first." if orders.get(study.studied) == "reversed" else ""
    by_kind, by_class = tables.length_summary(study), tables.addition_summary(study)
    sections = [
        Section(
            "runs", runs_title.get(frozenset(tasks), "Trained models"),
            charts=[*charts.addition_accuracy(study.runs), *charts.sortedness_accuracy(study.runs),
                    *charts.learning_curves(study.runs)],
            tables=[*tables.addition_runs(study.runs), *tables.long_addition_runs(study.runs),
                    *tables.sortedness_runs(study.runs),
                    *tables.wrong_answers(study.runs)],
        ),
        Section(
            "heads", "Heads",
            f"All figures of this part are of {whose}; another seed may share the work out otherwise.{backwards}",
            hint="Point at a head for its values and its map, click to lock it, Escape to unlock.",
            tables=tables.head_ranking(study), figures=figures_of(study, "heads"), has_heads=heads is not None,
        ),
        Section(
            "pruning", "Pruning",
            "Heads are removed one after the other, ranked anew after each, on validation data; the table is on test "
            "data.",
            charts=charts.pruning_curve(study), tables=tables.pruned_models(study),
        ),
        Section(
            "length", "Length",
            "Is a sequence sorted? Trained on short sequences, tested on far longer ones.",
            hint="Every seed is a line of its own.",
            charts=charts.extrapolation(study), tables=by_kind[:1],
            more_tables=[*by_kind[1:], *tables.mathematics(study)],
            more_title="Other negatives, and the checks of the mathematics", figures=figures_of(study, "length"),
        ),
        Section(
            "adding", "Long addition",
            "Adding two numbers: trained on short ones, tested on far longer ones. An answer is right if all of its "
            "digits and its end are. A variant that never fitted the training lengths says nothing about longer ones.",
            hint="Every seed is a line of its own.",
            charts=charts.long_addition(study), tables=[*by_class[:1], *tables.generated_sums(study)],
            more_tables=by_class[1:], more_title="Other classes of problems", figures=figures_of(study, "adding"),
        ),
        Section(
            "made", "How it was made", tables=[*tables.steps(study), *tables.made_by(study)], files=row_files(study),
        ),
    ]  # fmt: skip
    return [section for section in sections if not section.is_empty]


def figures_of(study: Study, part: str) -> list[Figure]:
    if part not in study.parts:
        return []
    there = study.parts[part].figures
    return [
        Figure(caption, [path.relative_to(study.folder).as_posix() for path in there[name]])
        for name, caption in FIGURES[part].items()
        if name in there
    ]


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


def row_files(study: Study) -> list[str]:
    """All JSON rows, relative to the report."""
    found = ["/".join(p for p in (run.path, "results/evaluation.json") if p) for run in study.runs if run.evaluation]
    return found + [part.source(name) for part in study.parts.values() for name in part.rows]
