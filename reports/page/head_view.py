"""What the grid of heads shows: measures to colour by, maps of examples, answers with a head switched off."""

import math
from typing import Any

from ...records.rows import Row, Rows, select, values_of
from ..head_rows import is_average, measure_of, modes_of, number_drops, relation_words, whole_drops
from ..set_rows import is_head, typical_words
from ..study import Study, task_of


DIGITS = 5
MOST_CELLS = 50 * 50  # of one map: larger ones can be neither read nor kept in a page
MOST_WEIGHTS = 200_000  # of all maps together, about 1.4 MB
MODES = {"zero": "set to zero", "mean": "set to its mean", "resample": "from another example"}
# Measures of attention that every task has: how they read in the list. The others are relations of the task.
LOOKS = {
    "diagonal": "own slot (diagonal)",
    "previous_slot": "previous slot",
    "next_slot": "next slot",
    "first_token": "first token",
    "previous_output": "token written last",
    "entropy_bits": "entropy, bits",
    "normalized_entropy": "entropy, share of uniform",
    "top_2_share": "weight on the two heaviest keys",
    "hoyer": "sparsity (Hoyer)",
}
GROUPS = {"encoder.self": 0, "decoder.self": 1, "decoder.cross": 2}  # in the order of computation


def head_view(study: Study) -> dict | None:
    """None where no head was studied."""
    measures = [m for m in (*_drops(study), *_variables(study), *_others(study), *_looks(study)) if m["values"]]
    maps = study.heads.get("maps")
    names = list(dict.fromkeys([head for m in measures for head in m["values"]]))
    names += [f"{row['layer']}.{head}" for row in maps for head in row["heads"]]
    if not names:
        return None
    return {
        "model": study.studied.name if study.studied else None,
        "layers": _layers(list(dict.fromkeys(names))),
        "measures": measures,
        "examples": _examples(maps, study.heads.get("toggles")),
        "breakdowns": _breakdowns(study),
        "roles": {row["site"]: row["role"] for row in study.heads.get("atlas") if is_head(row["site"])},
    }


def _layers(names: list[str]) -> list[dict]:
    """Groups (encoder self, decoder self, decoder cross) of layers of heads, in the order of computation."""
    groups: dict[str, dict[str, list[int]]] = {}
    for name in names:
        layer, _, head = name.rpartition(".")
        stack, _, kind = layer.split(".")
        groups.setdefault(f"{stack}.{kind}", {}).setdefault(layer, []).append(int(head))
    return [
        {
            "group": group.replace(".", " "),
            "layers": [{"layer": n, "heads": sorted(h)} for n, h in sorted(own.items())],
        }
        for group, own in sorted(groups.items(), key=lambda item: GROUPS.get(item[0], len(GROUPS)))
    ]


def _measure(key: str, label: str, group: str, unit: str, rows: Rows) -> dict:
    values = {row["head"]: _figure(row) for row in rows if row["value"] is not None and math.isfinite(row["value"])}
    return {"key": key, "label": label, "group": group, "unit": unit, "values": values}


def _drops(study: Study) -> list[dict]:
    rows, off = study.heads.get("ablation"), "Switched off"
    modes = [mode for mode in MODES if mode in modes_of(rows)]
    found = [
        _measure(f"drop_{mode}", f"accuracy lost, {MODES[mode]}", off, "points", whole_drops(rows, mode))
        for mode in modes
    ]
    for mode in modes:
        numbers = number_drops(rows, mode)
        for metric in values_of(numbers, "metric"):  # of a measure that is no share
            own = select(numbers, metric=metric)
            found.append(_measure(f"{metric}_{mode}", f"{measure_of(own[0])} lost, {MODES[mode]}", off, "number", own))
    loss = select(rows, scope={}, metric="loss_rise", mode="zero")
    return [*found, _measure("loss_rise", "rise of the loss, set to zero", off, "number", loss)]


def _variables(study: Study) -> list[dict]:
    """What single heads move on pairs, and how answers without them are wrong."""
    swapped, signature = (_of_heads(study.heads.get(name)) for name in ("interchange", "signature"))
    found = []
    for name in values_of([*swapped, *signature], "variable"):
        by_metric = {
            (f"{name}_flip", "minimal"): f"{name} moved and own place right, swapped",
            (f"{name}_moved", "minimal"): f"{name} moved, swapped",
            (f"{name}_recovered", "minimal"): "logits recovered, swapped",
            ("whole_answer_flip", "minimal"): "whole answer moved, swapped",
            (f"{name}_false_flip", "control"): f"control pairs: changed although the {name} did not",
        }
        own = select(swapped, variable=name)
        found += [
            _measure(metric, words, name.capitalize(), "share", select(own, metric=metric, pairs=pairs))
            for (metric, pairs), words in by_metric.items()
        ]
        errors = select(signature, variable=name, metric=f"{name}_errors")
        label = f"wrong labels {typical_words(name)}, resampled"
        found.append(_measure(f"{name}_errors", label, name.capitalize(), "share", errors))
    return found


def _of_heads(rows: Rows) -> Rows:
    """The rows about all of the data and one head each, which the grid knows by its name."""
    return [{**row, "head": row["site"]} for row in select(rows, scope={}) if is_head(row["site"])]


def _others(study: Study) -> list[dict]:
    gradient = select(study.heads.get("gradient"), metric="gradient_importance")
    shapley = select(study.heads.get("subsets"), metric="shapley")
    return [
        _measure("gradient", "gradient estimate", "Estimates", "number", gradient),
        _measure("shapley", "Shapley value", "Estimates", "points", shapley),
    ]


def _looks(study: Study) -> list[dict]:
    rows = study.heads.get("specialization")
    return [
        _measure(
            metric,
            LOOKS[metric] if metric in LOOKS else relation_words(metric),
            "Attention",
            "bits" if metric == "entropy_bits" else "share",
            select(rows, metric=metric),
        )
        for metric in values_of(rows, "metric")
    ]


def _figure(row: Row) -> dict:
    """What the page shows of a row: of its optional fields, those that it has."""
    names = ("value", "n", "interval", "uniform", "class")
    kept = {name: _short(row[name]) for name in names if row.get(name) is not None}
    if not all(map(math.isfinite, kept.get("interval", []))):
        del kept["interval"]
    if row.get("class_is_certain") is False:
        kept["class"] += "?"
    return kept


def _short(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, DIGITS)
    return [_short(part) for part in value] if isinstance(value, list) else value


def _examples(maps: Rows, toggles: Rows) -> list[dict]:
    """Shown examples with their maps and answers, then the average over many."""
    found: dict = {}
    room = MOST_WEIGHTS
    for row in maps:
        average = is_average(row)
        key = "average" if average else row["example"]
        example = found.setdefault(key, {"key": str(key), "maps": {}, "answers": {}})
        cells = len(row["queries"]) * len(row["keys"])
        room -= cells * len(row["heads"])
        if cells <= MOST_CELLS and room >= 0:
            example["maps"][row["layer"]] = {name: row[name] for name in ("heads", "queries", "keys", "weights")}
        if average:
            example["title"] = f"average over {row['n']:,} examples"
        else:
            example |= {"input": row["input"].replace("<eos>", ""), "answer": row["answer"].replace("<eos>", "")}
    for row in toggles:
        example = found.setdefault(row["example"], {"key": str(row["example"]), "maps": {}, "answers": {}})
        example |= {"input": row["input"], "target": row["target"]}
        answer = {name: row[name] for name in ("answer", "right", "probability") if row[name] is not None}
        if row["head"] is None:
            example["intact"] = answer
        else:
            example["answers"][row["head"]] = answer
    for example in found.values():
        if "title" not in example:
            example["title"] = _title(example)
    return sorted(found.values(), key=lambda example: example["key"] == "average")


def _title(example: dict) -> str:
    question = example["input"] if len(example["input"]) <= 40 else f"{example['input'][:38]}…"
    intact = example.get("intact")
    if intact is None:
        return f"{question} → {example['answer']}" if example.get("answer") else question
    return f"{question} → {intact['answer']} ({'right' if intact['right'] else 'wrong, ' + example['target']})"


def _breakdowns(study: Study) -> dict[str, list[dict]]:
    """Head -> what its zero ablation costs on parts of the data."""
    names = {"place": "place of the answer", "kind": "kind"}
    if study.studied:
        texts = task_of(study.studied).texts
        names |= {"place": texts.place, "kind": texts.kind_noun, **texts.facts}
    rows = select(study.heads.get("ablation"), mode="zero")
    shares = {"place_accuracy_drop", *values_of(whole_drops(rows), "metric")}
    found: dict[str, list[dict]] = {}
    for row in rows:
        if row["metric"].endswith("_drop") and len(row["scope"]) == 1 and row["interval"] is not None:
            ((fact, value),) = row["scope"].items()
            unit = "points" if row["metric"] in shares else "number"
            by = names.get(fact, fact.replace("_", " "))
            by += f" ({row['decoding']})" if row["decoding"] == "teacher-forced" else ""
            found.setdefault(row["head"], []).append({"by": by, "of": str(value), "unit": unit, **_figure(row)})
    return found
