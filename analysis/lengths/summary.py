"""What came of every variant, in a few words: did it learn, how far does it hold, and how does it fail?"""

from collections import defaultdict
from collections.abc import Iterable

from ...data_builders.registry import find_task
from ...data_builders.tasks import LEARNED, Task
from ...records.intervals import pooled
from ...records.rows import Row, Rows, row, select
from ...trainers.recipe import load_variants


HOLDS = 0.99
WHOLE = "test"  # the held-out split of all training lengths
NEVER_LEARNED = "never learned in distribution"
NOT_MEASURED = "not measured in distribution"
ONE_CLASS = "predicts one class only"


def summarize(rows: Rows) -> Rows:
    """Rows by variant, pooling and class of problems, over all seeds; `rows` are those of `lengths.json`.

    - value, n, interval and `in_distribution`: held-out problems of the training lengths, seeds pooled: those of the
      class where they are tested by themselves, else the split `test`; `in_distribution_by_seed`;
    - `learned`: how many seeds reach 95 % (labels) or 99 % (answers) there;
    - `accuracy`: by length beyond training, pooled over the seeds that were measured there, and by seed (None: not
      measured);
    - `holds_to`: by seed, the longest length up to which all measured lengths are at 99 % or more (0: none; None: its
      training lengths were not measured);
    - `one_class_from`: by seed, the first length at which all predicted labels are the same;
    - `seconds`: of training, by seed;
    - `flags`: `never learned in distribution`, `not measured in distribution`, `predicts one class only`.
    """
    groups: dict[tuple, Rows] = defaultdict(list)
    for each in rows:
        groups[each["task"], each["variant"], each["pooling"]].append(each)
    found = []
    for name, variant, pooling in sorted(groups, key=_in_order):
        task, own = find_task(name), groups[name, variant, pooling]
        for kind in [kind for kind in task.classes if select(own, kind=kind)]:
            found.append(summarize_kind(task, kind, own))
    return found


def _in_order(group: tuple[str, str, str | None]) -> tuple:
    """Variants that the task's recipe names, in its order; the others by name, before them."""
    task, variant, pooling = find_task(group[0]), group[1], group[2]
    named = [] if task.length_study is None else list(load_variants(task.length_study.recipe))
    return task.name, named.index(variant) if variant in named else -1, variant, pooling or ""


def summarize_kind(task: Task, kind: str, rows: Rows) -> Row:
    example, seeds = rows[0], sorted({each["seed"] for each in rows})
    longest_trained = example["trained"][1]
    own = {seed: _measured(select(rows, seed=seed, kind=kind)) for seed in seeds}
    trained = {
        seed: [each for each in own[seed] if each["length"] <= longest_trained]
        or _measured(select(rows, seed=seed, kind=WHOLE))
        for seed in seeds
    }
    beyond = {seed: [each for each in own[seed] if each["length"] > longest_trained] for seed in seeds}
    shares = {seed: pooled(trained[seed]) for seed in seeds}
    learned = [seed for seed in seeds if (shares[seed] or {"value": 0})["value"] >= LEARNED[task.kind]]
    one_class = {str(seed): first_one_class(own[seed]) for seed in seeds}
    in_distribution = pooled(each for seed in seeds for each in trained[seed])
    lengths = sorted({each["length"] for seed in seeds for each in beyond[seed]})
    return row(
        "summary",
        task.measure["metric"],
        in_distribution,
        decoding=task.measure["decoding"],
        task=task.name,
        variant=example["variant"],
        says=example["says"],
        pooling=example["pooling"],
        kind=kind,
        trained=example["trained"],
        built_in=example["built_in"],
        seeds=seeds,
        learned=len(learned),
        in_distribution=in_distribution,
        in_distribution_by_seed={str(seed): share and share["value"] for seed, share in shares.items()},
        accuracy={str(length): at_length(beyond, length) for length in lengths},
        holds_to={str(seed): holds_to(beyond[seed], shares[seed], longest_trained) for seed in seeds},
        one_class_from=one_class,
        seconds={str(seed): select(rows, seed=seed)[0]["training_seconds"] for seed in seeds},
        flags=flags_of(in_distribution is not None, bool(learned), one_class.values()),
    )


def flags_of(measured: bool, learned: bool, one_class: Iterable[int | None]) -> list[str]:
    """Not measured is not "not learned"."""
    flags = [] if learned else [NEVER_LEARNED if measured else NOT_MEASURED]
    return flags + ([ONE_CLASS] if any(length is not None for length in one_class) else [])


def _measured(rows: Rows) -> Rows:
    return sorted((each for each in rows if each["value"] is not None), key=lambda each: each["length"])


def at_length(by_seed: dict[int, Rows], length: int) -> dict:
    own = {seed: select(rows, length=length) for seed, rows in by_seed.items()}
    share = pooled(each for rows in own.values() for each in rows)
    return {**(share or {}), "by_seed": {str(seed): rows[0]["value"] if rows else None for seed, rows in own.items()}}


def holds_to(beyond: Rows, trained: dict | None, longest_trained: int) -> int | None:
    """The longest length up to which everything measured is right in 99 % or more; training lengths count as one."""
    if trained is None:
        return None
    if trained["value"] < HOLDS:
        return 0
    longest = longest_trained
    for each in beyond:
        if each["value"] < HOLDS:
            break
        longest = each["length"]
    return longest


def first_one_class(rows: Rows) -> int | None:
    return next((each["length"] for each in select(rows, one_class_only=True)), None)
