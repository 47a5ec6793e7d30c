"""What came of every cell, in a few words: did it learn, how far does it hold, and how does it fail?"""

from collections import defaultdict

from .length_grid import KINDS
from .statistics import rate


LEARNED = 0.95  # accuracy at the training lengths from which on a model counts as having learned the task
HOLDS = 0.99


def summarize(rows: list[dict]) -> list[dict]:
    """Rows by variant, pooling and kind of negative, over all seeds; `rows` are those of `lengths.json`.

    - `accuracy`: by length, pooled over the seeds that were measured there, and by seed (None: not measured);
    - `learned`: how many seeds reach 95 % at the training lengths, on this kind;
    - `holds_to`: by seed, the longest length up to which all measured lengths are at 99 % or more (0: none);
    - `one_class_from`: by seed, the first length at which all predictions are the same;
    - `flags`: `never learned in distribution`, `predicts one class only`.
    """
    groups = defaultdict(lambda: defaultdict(list))
    for row in rows:
        groups[row["variant"], row["pooling"], row["kind"]][row["seed"]].append(row)
    return [
        summarize_group(variant, pooling, kind, groups[variant, pooling, kind])
        for variant, pooling, kind in sorted(groups, key=lambda key: (key[0], key[1], KINDS.index(key[2])))
    ]


def summarize_group(variant: str, pooling: str, kind: str, by_seed: dict[int, list[dict]]) -> dict:
    seeds = sorted(by_seed)
    example = by_seed[seeds[0]][0]
    longest_trained = example["trained"][1]
    measured = {
        seed: sorted((r for r in by_seed[seed] if r["value"] is not None), key=lambda r: r["length"]) for seed in seeds
    }
    trained = {seed: pooled([r for r in measured[seed] if r["length"] <= longest_trained]) for seed in seeds}
    learned = [seed for seed in seeds if trained[seed] and trained[seed]["value"] >= LEARNED]
    one_class = {seed: first_one_class(measured[seed]) for seed in seeds}
    flags = []
    if not learned:
        flags.append("never learned in distribution")
    if any(length is not None for length in one_class.values()):
        flags.append("predicts one class only")
    lengths = sorted({r["length"] for seed in seeds for r in measured[seed] if r["length"] > longest_trained})
    return {
        "metric": "summary",
        "variant": variant,
        "pooling": pooling,
        "kind": kind,
        "trained": example["trained"],
        "built_in": example["built_in"],
        "seeds": seeds,
        "learned": len(learned),
        "in_distribution": pooled([r for seed in seeds for r in measured[seed] if r["length"] <= longest_trained]),
        "in_distribution_by_seed": {str(seed): trained[seed] and trained[seed]["value"] for seed in seeds},
        "accuracy": {
            str(length): {
                **pooled([r for seed in seeds for r in measured[seed] if r["length"] == length]),
                "by_seed": {
                    str(seed): next((r["value"] for r in measured[seed] if r["length"] == length), None)
                    for seed in seeds
                },
            }
            for length in lengths
        },
        "holds_to": {str(seed): holds_to(measured[seed], longest_trained) for seed in seeds},
        "one_class_from": {str(seed): one_class[seed] for seed in seeds},
        "flags": flags,
    }


def pooled(rows: list[dict]) -> dict | None:
    if not rows:
        return None
    return rate(round(sum(r["value"] * r["n"] for r in rows)), sum(r["n"] for r in rows))


def holds_to(rows: list[dict], longest_trained: int) -> int:
    """The longest length up to which everything measured is right in 99 % or more; training lengths count as one."""
    trained = pooled([r for r in rows if r["length"] <= longest_trained])
    if trained is None or trained["value"] < HOLDS:
        return 0
    longest = longest_trained
    for row in rows:
        if row["length"] > longest_trained:
            if row["value"] < HOLDS:
                break
            longest = row["length"]
    return longest


def first_one_class(rows: list[dict]) -> int | None:
    return next((r["length"] for r in rows if r["one_class_only"]), None)
