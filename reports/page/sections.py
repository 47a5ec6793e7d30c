"""The sections of the report, in their order: title, charts, tables, figures and files of each."""

from dataclasses import dataclass, field
from pathlib import Path

from ..findings.collect import collect_findings, length_key
from ..study import Study, task_of
from ..tables import heads as head_tables
from ..tables import lengths as length_tables
from ..tables import origin
from ..tables.runs import run_tables
from ..tables.table import Table
from ..wording import counted
from . import charts


# Figures that are shown as they are, with their captions.
HEAD_FIGURES = {
    "atlas": "Atlas: what every head and feed-forward sublayer is, tested alone, and the evidence.",
    "signature": "Error signature: how labels are wrong if a site, or a whole set, is resampled.",
    "sets": "Sets switched off together: what is still right without the set, and without all others.",
    "interchange": "Sets swapped together: what the set moves, and what all others move.",
    "selection": "How many sites it takes: the best set of each size on data it was not chosen on, and random sets.",
    "specialization": "What every head attends to; in brackets, a head without preference.",
    "subsets": "All subsets of heads: how far each ranking is from the best.",
    "fourier": "Fourier transform over the residues of the embedding and of what every head puts out; top five of the "
    "trained model, with residues shuffled, and before training.",
}
BY_SEED = {
    "atlas_by_seed": "The atlas of every seed. The number of a head within its layer means nothing across seeds."
}
LENGTH_FIGURES = {
    "position_tables": "Position embeddings: tables and cosines; the line marks the last trained position.",
    "dilution": "Dilution: attention and pooled signal by length.",
    "margins": "Logits of both classes by length.",
    "neighbour_head": "The head that looks at the neighbour, by length.",
    "scores_by_distance": "What each encoding adds to the scores, by distance.",
    "shifted_positions": "The same problems at shifted positions.",
    "accuracy_by_length": "Exact match by length, every class of problems.",
    "margin_and_entropy": "The smallest logit margin of an answer, and how attention spreads, by length.",
    "what_heads_read": "What every head reads while a place of the answer is written; the bias that makes it so.",
}


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
    tables: list[Table] = field(default_factory=list)
    more_tables: list[Table] = field(default_factory=list)
    more_title: str = ""
    figures: list[Figure] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    has_heads: bool = False

    @property
    def is_empty(self) -> bool:
        return not (self.charts or self.tables or self.figures or self.has_heads)


def make_sections(study: Study, heads: dict | None) -> list[Section]:
    """Those that have anything to show."""
    sections = [
        runs_section(study),
        heads_section(study, heads),
        Section(
            "pruning",
            "Pruning",
            "Heads are removed one after the other, ranked anew after each, on validation data; the table is on test "
            "data.",
            charts=charts.pruning_curve(study.pruning),
            tables=head_tables.pruned_models(study.pruning),
        ),
        *(length_section(study, number) for number in range(len(study.lengths))),
        Section(
            "made",
            "How it was made",
            tables=[*origin.steps(study), *origin.made_by(study)],
            files=row_files(study),
        ),
    ]
    return [section for section in sections if not section.is_empty]


def runs_section(study: Study) -> Section:
    titles = list(dict.fromkeys(task_of(run).texts.short_title for run in study.runs))
    return Section(
        "runs",
        titles[0] if len(titles) == 1 else "Trained models",
        charts=[*charts.run_accuracy(study.runs), *charts.learning_curves(study.runs)],
        tables=run_tables(study.runs),
    )


def heads_section(study: Study, heads: dict | None) -> Section:
    whose, note = "one trained model", ""
    if study.studied:
        whose = f"the run {study.studied.name}"
        note = task_of(study.studied).texts.answer_note(study.studied.data_options)
    lead = f"All figures of this part are of {whose}; another seed may share the work out otherwise."
    by_seed = figures_of(study, study.figures, BY_SEED)
    if by_seed:
        lead = f"Figures of this part are of {whose}, and the first of every seed, which share the work out otherwise."
    return Section(
        "heads",
        "Heads",
        f"{lead} Its answers are written {note}." if note else lead,
        hint="Point at a head for its values and its map, click to lock it, Escape to unlock.",
        tables=head_tables.head_ranking(study.heads),
        more_tables=[*head_tables.sets_together(study.heads), *head_tables.sets_swapped(study.heads)],
        more_title="Sets of sites, switched off and swapped together",
        figures=[*by_seed, *figures_of(study, study.heads.figures, HEAD_FIGURES)],
        has_heads=heads is not None,
    )


def length_section(study: Study, number: int) -> Section:
    part = study.lengths[number]
    task, key = task_of(part), length_key(study, number)
    by_kind = length_tables.length_summary(part)
    title = task.texts.title if task.texts.title.endswith("?") else f"{task.texts.title}."
    lead = f"{title} Trained on short {task.texts.problems}, tested on far longer ones."
    if task.kind != "label":
        lead += (
            " An answer is right if all of its tokens and its end are. A variant that never fitted the training "
            "lengths says nothing about longer ones."
        )
    return Section(
        key,
        length_title(study, number),
        lead,
        hint="Every seed is a line of its own.",
        charts=charts.extrapolation(part, key),
        tables=[*by_kind[:1], *length_tables.generated_answers(part)],
        more_tables=[*by_kind[1:], *length_tables.mathematics(part)],
        more_title=f"Other {task.texts.kind_noun}, and the checks of the mathematics"
        if part.get("mathematics")
        else f"Other classes of {task.texts.problems}",
        figures=figures_of(study, part.figures, LENGTH_FIGURES),
    )


def length_title(study: Study, number: int) -> str:
    """`Length: Addition`; the folder too, if there are several studies of the task."""
    part = study.lengths[number]
    title = f"Length: {task_of(part).texts.short_title}"
    return f"{title} ({part.path})" if sum(other.task == part.task for other in study.lengths) > 1 else title


def figures_of(study: Study, drawn: dict[str, list[Path]], captions: dict[str, str]) -> list[Figure]:
    return [
        Figure(caption, [path.relative_to(study.folder).as_posix() for path in drawn[name]])
        for name, caption in captions.items()
        if name in drawn
    ]


def texts_of(study: Study) -> dict:
    """Title, what the study is, and the findings by part."""
    names = {
        "runs": "Trained models",
        "heads": f"Heads of {study.studied.name}" if study.studied else "Heads of one trained model",
        "pruning": "Removing heads for good, one trained model",
    } | {length_key(study, number): length_title(study, number) for number in range(len(study.lengths))}
    about = [counted(len(study.runs), "run")] if study.runs else []
    about += ["a quick study"] if study.about.get("quick") else []
    seconds = sum(step["seconds"] for step in study.about.get("steps", {}).values())
    if seconds:
        about.append(f"{counted(max(1, round(seconds / 60)), 'minute')} of computing, summed over steps")
    if study.about.get("finished_at"):
        about.append(f"finished {study.about['finished_at']}")
    return {
        "title": study.folder.resolve().name or "study",
        "about": f"{', '.join(about) or 'Result files'}. Every rate stands with its n and 95 % interval.",
        "findings": [{"title": names[part], "findings": own} for part, own in collect_findings(study).items()],
    }


def row_files(study: Study) -> list[str]:
    """All JSON rows, relative to the report."""
    found = [study.source(run) for run in study.runs if run.evaluation]
    return list(dict.fromkeys([*found, *(part.source(name) for part in study.parts for name in part.rows)]))
