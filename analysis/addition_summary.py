"""What came of every variant of the addition study: did it fit, how far does it hold, in what time?"""

import json
from collections import defaultdict
from pathlib import Path

from .addition_grid import VARIANTS
from .length_summary import pooled


FITTED = 0.99  # exact match on held-out problems of the training lengths from which on a model counts as fitted
HOLDS = 0.99
NEVER_FITTED = "never fitted in distribution"


def summarize_addition(rows: list[dict], seconds: dict[tuple[str, int], float]) -> list[dict]:
    """Rows by variant and class of problems, over all seeds; `rows` are those of `lengths.json`.

    - `in_distribution`: held-out problems of the training lengths, seeds pooled; `fitted`: seeds with 99 % or more;
    - `accuracy`: by digits, pooled and by seed; a seed that was spared a length counts as not measured;
    - `holds_to`: by seed, the most digits up to which all measured lengths are at 99 % or more (0: not even training);
    - `seconds`: of training, by seed.
    """
    groups = defaultdict(lambda: defaultdict(list))
    for row in rows:
        groups[row["variant"]][row["seed"]].append(row)
    order = {name: number for number, name in enumerate(VARIANTS)}
    found = []
    for variant in sorted(groups, key=lambda name: (order.get(name, -1), name)):
        by_seed = groups[variant]
        for kind in dict.fromkeys(row["kind"] for row in rows if row["kind"] not in ("test", "hard")):
            found.append(summarize_kind(variant, kind, by_seed, seconds))
    return found


def summarize_kind(variant: str, kind: str, by_seed: dict[int, list[dict]], seconds) -> dict:
    seeds = sorted(by_seed)
    example = by_seed[seeds[0]][0]
    trained = {seed: pooled([r for r in by_seed[seed] if r["kind"] == "test"]) for seed in seeds}
    fitted = [seed for seed in seeds if trained[seed] and trained[seed]["value"] >= FITTED]
    beyond = {
        seed: sorted(
            (r for r in by_seed[seed] if r["kind"] == kind and r["value"] is not None), key=lambda r: r["length"]
        )
        for seed in seeds
    }
    lengths = sorted({row["length"] for seed in seeds for row in beyond[seed]})
    return {
        "metric": "summary",
        "variant": variant,
        "changes": VARIANTS[variant].says if variant in VARIANTS else "a recipe as it stands",
        "kind": kind,
        "trained": example["trained"],
        "built_in": example["built_in"],
        "seeds": seeds,
        "fitted": len(fitted),
        "in_distribution": pooled([r for seed in seeds for r in by_seed[seed] if r["kind"] == "test"]),
        "in_distribution_by_seed": {str(seed): trained[seed] and trained[seed]["value"] for seed in seeds},
        "accuracy": {
            str(length): {
                **pooled([r for seed in seeds for r in beyond[seed] if r["length"] == length]),
                "by_seed": {
                    str(seed): next((r["value"] for r in beyond[seed] if r["length"] == length), None)
                    for seed in seeds
                },
            }
            for length in lengths
        },
        "holds_to": {str(seed): holds_to(beyond[seed], trained[seed], example["trained"][1]) for seed in seeds},
        "seconds": {str(seed): seconds.get((variant, seed)) for seed in seeds},
        "flags": [] if fitted else [NEVER_FITTED],
    }


def holds_to(rows: list[dict], trained: dict | None, longest_trained: int) -> int:
    if trained is None or trained["value"] < FITTED:
        return 0
    longest = longest_trained
    for row in rows:
        if row["value"] < HOLDS:
            break
        longest = row["length"]
    return longest


def training_seconds(output: Path) -> dict[tuple[str, int], float]:
    """(variant, seed) -> seconds of training, of the cells in a study folder."""
    found = {}
    for folder in sorted((output / "cells").glob("*")):
        lengths, training = (folder / "results" / f"{name}.json" for name in ("lengths", "training"))
        if lengths.exists() and training.exists():
            row = json.loads(lengths.read_text())[0]
            found[row["variant"], row["seed"]] = json.loads(training.read_text())[0]["seconds"]
    return found
