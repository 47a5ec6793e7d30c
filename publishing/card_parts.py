"""What a model card says about a task: summary, evaluation, limits, mistakes. One function per task, all alike."""

from collections.abc import Callable

from .card_tables import (
    addition_tables,
    digit_table,
    interval,
    long_addition_table,
    of,
    overall,
    percent,
    sortedness_table,
    table,
    within_training,
    worst_by_length,
)


MOST_WRONG_ANSWERS = 8
DECODING = """\
Decoding is greedy and free-running: an answer counts only if every digit and the end that the model itself writes are
right. Beside it stands the share of tokens that are right when all tokens before them are given (teacher-forced); that
figure says little about what the model can do. Intervals are Wilson's, 95 %."""
LONGER = """\
Numbers longer than any in training; exact match, free-running, with its 95 % interval. `random`: random digits;
`carry_dense`: nine columns of ten sum to nine; `full_chain`: one carry through every column; `all_nines`: every column
sums to nine, no carry; `unequal`: one operand shorter than the other; `leading_zeros`: both shorter than written,
0 + 0 among them. One parallel pass decides each answer, which for greedy decoding is the same as generating:"""
KINDS = """\
Each line is one length and one kind of unsorted sequence, against as many sorted ones: `shuffle` is a random order,
`swap` has two different neighbours exchanged, `move` one element put elsewhere. The last column is what one answer for
all sequences would reach. There is no decoding: the label with the larger logit counts. Intervals are Wilson's,
95 %."""


def addition_parts(rows: list[dict], options: dict) -> dict:
    digits, fewest = options["digits"], options["min_digits"]
    numbers = f"up to {digits} digits" if fewest is None else f"{fewest} to {digits} digits"
    order = "units first" if options["answer_order"] == "reversed" else "most significant digit first"
    chance = ""
    if fewest is None:
        share = percent(10.0**-digits) if digits <= 4 else "less than 0.01 %"
        chance = f" Always giving the most frequent sum would be right in {share} of the `test` problems."
    longer, rows = rows, within_training(rows)
    worst = worst_by_length(longer)
    wrong = of(rows, metric="wrong_answer")
    tests = {split: overall(rows, "exact_match", split) for split in dict.fromkeys(row["split"] for row in rows)}
    limits = [
        f"It knows whole numbers of {numbers}. Anything else (signs, decimals, more than two operands, words) it "
        "cannot read.",
        *longer_numbers(worst),
        *perfect_scores(tests),
        *small_groups([row for row in rows if "group" in row and row["metric"] == "exact_match"]),
        "The answer is generated, not computed: a wrong one looks like a right one.",
    ]
    return {
        "summary": f"A small transformer that adds two whole numbers of {numbers}. It writes the sum digit by digit, "
        f"{order}; nothing but the weights does the arithmetic.",
        "evaluation_text": DECODING + chance,
        "tables": [
            *addition_tables(rows),
            *([(LONGER, long_addition_table(longer))] if worst else []),
            *((f"Digits, split `{split}`:", digit_table(rows, split)) for split in tests),
        ],
        "limits": limits,
        "wrong_text": f"Problems that it gets wrong: {min(len(wrong), MOST_WRONG_ANSWERS)} of the {len(wrong)} that "
        "are kept with the results, digits in the order in which the model writes them.",
        "wrong_answers": table(
            ["problem", "right", "what it writes", "split"],
            [[f"`{row['input']}`", f"`{row['target']}`", f"`{row['generated']}`", row["split"]]
             for row in wrong[:MOST_WRONG_ANSWERS]],
        ) if wrong else "",
    }  # fmt: skip


def sortedness_parts(rows: list[dict], options: dict) -> dict:
    longest = options["max_length"]
    tested = sorted({row["length"] for row in rows})
    weak = sorted((row for row in rows if row["value"] < 1), key=lambda row: row["value"])
    limits = [
        "Integers from 0 to 99, separated by blanks. Sequences of length 1, and other values, it was never shown.",
        f"Trained on lengths {options['min_length']} to {longest}; tested at "
        f"{', '.join(map(str, tested))}. Lengths between and beyond were not tested, and "
        "accuracy need not fall evenly with length.",
    ]
    for row in weak[:5]:
        limits.append(
            f"At length {row['length']:,} it misses {round((1 - row['value']) * row['n'])} of {row['n']} (kind "
            f"`{row['kind']}`)" + (", and calls every sequence the same." if row["one_class_only"] else ".")
        )
    perfect = {f"{row['length']} `{row['kind']}`": row for row in rows if row["value"] == 1}
    if perfect:
        most = max(1 - row["interval"][0] for row in perfect.values())
        limits.append(
            f"{len(perfect)} of {len(rows)} tests came out without a mistake; with so few sequences each, an error "
            f"rate of up to {percent(most, 1)} would still be compatible with that (95 %)."
        )
    return {
        "summary": "A small transformer that tells whether a sequence of integers from 0 to 99 is sorted, in "
        "non-decreasing order.",
        "evaluation_text": KINDS,
        "tables": [("Accuracy by length and kind:", sortedness_table(rows, longest))],
        "limits": limits,
        "wrong_text": "",
        "wrong_answers": "",
    }


def longer_numbers(worst: list[dict]) -> list[str]:
    """What was tested beyond the training length, and where it falls short."""
    if not worst:
        return []
    lengths = ", ".join(f"{row['length']:,}" for row in worst)
    short = [
        f"{row['length']:,} digits ({percent(row['value'])} on `{row['kind']}`)" for row in worst if row["value"] < 1
    ]
    return [
        f"Beyond training it was tested at {lengths} digits, n = {worst[-1]['n']} of each class; other lengths were "
        "not tested." + (f" It makes mistakes at {', '.join(short)}." if short else "")
    ]


def perfect_scores(tests: dict[str, dict]) -> list[str]:
    return [
        f"No mistake among the {row['n']:,} problems of `{split}` still allows an error rate of up to "
        f"{percent(1 - row['interval'][0])} (95 %)."
        for split, row in tests.items() if row["value"] == 1
    ]  # fmt: skip


def small_groups(rows: list[dict], few: int = 30) -> list[str]:
    small = [row for row in rows if row["n"] < few]
    if not small:
        return []
    row = min(small, key=lambda row: row["n"])
    return [
        f"Some carry groups hold few problems: `{row['group']}` in `{row['split']}` has {row['n']}, with an interval "
        f"of {interval(row)}."
    ]


# Task -> fn(evaluation rows, data options) -> the parts of the card that depend on it.
TASK_PARTS: dict[str, Callable[[list[dict], dict], dict]] = {
    "addition": addition_parts,
    "sortedness": sortedness_parts,
}
