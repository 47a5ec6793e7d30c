"""How far each variant goes, for tasks that answer with a sequence, in sentences.

Each function: rows of one analysis and their file -> findings. An answer is right or wrong as a whole, so a variant
must hold on every class of problems. One that never fitted its training lengths says nothing about longer ones, and is
never compared there.
"""

from ...records.rows import Row, Rows
from ..length_rows import (
    MOST,
    cell,
    cells_of,
    learned_at,
    longest_tested,
    task_of_rows,
    training_lengths,
    unit_of,
)
from ..wording import Finding, apart, counted, listed, percent, share
from .mathematics import mathematics_holds


WHOLE = "the recipe as it stands"  # what the variant says that the others are compared with


def reach(rows: Rows) -> list[int]:
    """By seed, the length up to which one variant holds on every class of problems; 0 where it is not known to fit."""
    return [min(row["holds_to"][str(seed)] or 0 for row in rows) for seed in rows[0]["seeds"]]


def problems_of(rows: Rows) -> str:
    return task_of_rows(rows).texts.problems


def is_fitted(rows: Rows) -> bool:
    return rows[0]["learned"] == len(rows[0]["seeds"])


def span(numbers: list[int], unit: str) -> str:
    low, high = min(numbers), max(numbers)
    return f"{high:,} {unit}" if low == high else f"{low:,} to {high:,} {unit} by seed"


def first_ones(texts: list[str]) -> str:
    more = [f"and {len(texts) - MOST} more"] if len(texts) > MOST else []
    return "; ".join([*texts[:MOST], *more])


def by_hand(rows: Rows) -> str:
    """A sentence on what is built into which variants."""
    variants: dict[str, list[str]] = {}
    for variant, own in cells_of(rows).items():
        variants.setdefault(listed(own[0]["built_in"]) if own[0]["built_in"] else "nothing", []).append(variant)
    return f" Built in by hand: {'; '.join(f'{what} ({listed(names, MOST)})' for what, names in variants.items())}."


def fitted_in_distribution(rows: Rows, source: str) -> list[Finding]:
    variants = cells_of(rows)
    measured = {name: own for name, own in variants.items() if own[0]["in_distribution"] is not None}
    always = [name for name, own in measured.items() if is_fitted(own)]
    never = [name for name, own in measured.items() if own[0]["learned"] == 0]
    text = (
        f"Before it can go far, a model must fit: {len(always)} of {counted(len(variants), 'variant')} "
        f"{'reaches' if len(always) == 1 else 'reach'} {learned_at(task_of_rows(rows))} exact match on held-out "
        f"{problems_of(rows)} {training_lengths(rows)} in every seed"
    )
    if always:
        text += f" ({listed(always, MOST)})"
    if never:
        text += f", {len(never)} in none ({listed(never, MOST)}: never fitted, which says nothing about longer ones)"
    if len(measured) < len(variants):
        text += f", {len(variants) - len(measured)} not measured there"
    return [Finding(f"{len(always)} of {len(variants)}", f"{text}.{by_hand(rows)}", source)]


def holds_to_the_longest(rows: Rows, source: str) -> list[Finding]:
    """Variants at 99 % or more on every class at every tested length, and in how many seeds."""
    variants, longest = cells_of(rows), longest_tested(rows)
    far = {name: own for name, own in variants.items() if longest and longest in reach(own)}
    if not far:
        return []
    each = []
    for name, own in far.items():
        count = len(own[0]["seeds"])
        seeds = f"{reach(own).count(longest)} of {counted(count, 'seed')}"
        seeds += "" if is_fitted(own) else f" ({count - own[0]['learned']} never fitted)"
        figures = {row["kind"]: row["accuracy"][str(longest)] for row in own if str(longest) in row["accuracy"]}
        kind = min(figures, key=lambda kind: figures[kind]["value"])
        each.append(f"{name}, {seeds}, with {share(figures[kind])} at {longest:,} on {kind}")
    text = (
        f"{len(far)} of {counted(len(variants), 'variant')} {'stays' if len(far) == 1 else 'stay'} at 99 % exact "
        f"match or more at every tested length up to {longest:,} {unit_of(rows)}, on every class of problems (here "
        f"the weakest, over the seeds measured there): {first_ones(each)}."
    )
    return [Finding(f"{longest:,}", text + by_hand([row for own in far.values() for row in own]), source)]


def holds_farthest(rows: Rows, source: str) -> list[Finding]:
    """Where none holds to the longest length: what goes farthest, by the worst seed among those that fitted."""
    longest = longest_tested(rows)
    reached = {name: [digits for digits in reach(own) if digits] for name, own in cells_of(rows).items()}
    fitted = {name: digits for name, digits in reached.items() if digits}
    if not fitted or any(longest in digits for digits in fitted.values()):
        return []
    farthest = max(min(digits) for digits in fitted.values())
    names = [name for name, digits in fitted.items() if min(digits) == farthest]
    text = (
        f"No variant stays at 99 % exact match on every class of problems up to {longest:,} {unit_of(rows)}; in the "
        f"worst seed of those that fitted, {listed(names, MOST)} {'holds' if len(names) == 1 else 'hold'} up to "
        f"{farthest:,}."
    )
    return [Finding(f"{farthest:,}", text + by_hand([row for row in rows if cell(row) in names]), source)]


def against_the_whole(rows: Rows, source: str) -> list[Finding]:
    """What a change does to the recipe: only of variants that fitted in every seed, where the intervals lie apart."""
    fitted = {name: own for name, own in cells_of(rows).items() if is_fitted(own)}
    names = [name for name, own in fitted.items() if own[0]["says"] == WHOLE]
    if not names:
        return []
    whole = fitted.pop(names[0])
    found, unit = [], unit_of(rows)
    for name, own in fitted.items():
        for side, verb in ((-1, "falls short of"), (1, "does better than")):
            place = first_apart(own, whole, side)
            if place is not None:
                length, row, other = place
                figure = row["accuracy"][length]
                text = (
                    f"{name} ({row['says']}) {verb} the recipe as it stands: {share(figure)} against "
                    f"{share(other['accuracy'][length])} at {int(length):,} {unit} on {row['kind']}. It holds up to "
                    f"{span(reach(own), unit)}, the recipe up to {span(reach(whole), unit)}."
                )
                if row["trained"] != other["trained"]:
                    text += (
                        f" It was trained on {problems_of(rows)} {training_lengths(own)}, the recipe "
                        f"{training_lengths(whole)}."
                    )
                found.append(Finding(percent(figure["value"], 1), text + by_hand([*own, *whole]), source))
    return found


def first_apart(rows: Rows, whole: Rows, side: int) -> tuple[str, Row, Row] | None:
    """The shortest length at which a variant lies on that side of the whole recipe, with the rows of that class.

    A seed with nothing right is spared longer lengths, so only lengths at which all seeds were measured are compared.
    """
    others = {row["kind"]: row for row in whole}
    places = []
    for row in (row for row in rows if row["kind"] in others):
        other = others[row["kind"]]
        for length in row["accuracy"].keys() & other["accuracy"].keys():
            pair = row["accuracy"][length], other["accuracy"][length]
            if apart(*pair) == side and not any(None in figure["by_seed"].values() for figure in pair):
                places.append((length, row, other))
    # Of several classes at one length, the one that shows most.
    return min(places, key=lambda at: (int(at[0]), -side * at[1]["accuracy"][at[0]]["value"]), default=None)


def generated_as_decided(rows: Rows, source: str) -> list[Finding]:
    """Does `generate()` write what one parallel pass says it would?"""
    asked, differ = sum(row["n"] for row in rows), sum(row["disagree"] for row in rows)
    text = "One parallel pass decides what is right, and generate(), token by token, "
    if differ:
        where = listed(list(dict.fromkeys(row["variant"] for row in rows if row["disagree"])), MOST)
        text += f"comes to another end on {differ:,} of {counted(asked, 'problem')} ({where})."
    else:
        text += f"comes to the same end on all {counted(asked, 'problem')} that it wrote."
    return [Finding(f"{differ:,} of {asked:,}", text, source)]


SEQUENCE_LENGTH_FINDINGS = {
    "summary": (fitted_in_distribution, holds_to_the_longest, holds_farthest, against_the_whole),
    "generated": (generated_as_decided,),
    "mathematics": (mathematics_holds,),
}
