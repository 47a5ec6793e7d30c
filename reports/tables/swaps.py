"""What swaps of sites move, as plain text for standard output."""

from collections.abc import Mapping

from ...records.rows import Rows, only, select, values_of


WORDS = {
    "{}_flip": "both",
    "{}_moved": "shown",
    "{}_kept_own": "own kept",
    "{}_recovered": "logits",
    "whole_answer_flip": "whole",
    "{}_false_flip": "false flip",
    "own_place_moved": "own moved",
    "answer_kept": "kept",
}
EXPLAINED = (
    "both: the labels that show the {0} change as expected, and the one at its own place stays; shown, own kept: each "
    "half of that; logits: how far they go from the base's (0) to the source's (100); whole: the whole answer is as "
    "expected; false flip: the label that would show the {0} changes though it does not differ; own moved: the label "
    "at the place becomes the source's; kept: the answer stays the base's; none: nothing is swapped."
)


def swap_text(rows: Rows, kinds: Mapping[str, str]) -> str:
    """A table for each kind of pairs: a line for every set, shares in percent."""
    (variable,) = values_of(rows, "variable")
    names = {metric.format(variable): words for metric, words in WORDS.items()}
    width = max(len(name) for name in values_of(rows, "site"))
    lines = []
    for kind in values_of(rows, "pairs"):
        own = select(rows, scope={}, pairs=kind)
        metrics = [metric for metric in names if select(own, metric=metric)]
        lines.append(f"{kind} pairs: {kinds[kind]}; n = {own[0]['n']:,}")
        lines.append(f"  {'sites':{width}} {'size':>4}" + "".join(f"{names[metric]:>11}" for metric in metrics))
        for site in values_of(own, "site"):
            found = select(own, site=site)
            figures = [only(found, metric=metric) for metric in metrics]
            shown = "".join(f"{100 * each['value']:>11.1f}" if each else f"{'-':>11}" for each in figures)
            lines.append(f"  {site:{width}} {found[0]['size']:>4}{shown}")
    return "\n".join([*lines, EXPLAINED.format(variable)])
