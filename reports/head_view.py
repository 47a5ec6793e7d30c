"""What the grid of heads shows: measures to colour by, maps of examples, answers with a head switched off."""

import math

from .study_folder import Study


DIGITS = 5
MOST_CELLS = 50 * 50  # of one map: larger ones can be neither read nor kept in a page
MOST_WEIGHTS = 200_000  # of all maps together, about 1.4 MB
MODES = {"zero": "set to zero", "mean": "set to its mean", "resample": "from another example"}
# Measures of attention: how they read in the list.
LOOKS = {
    "diagonal": "own slot (diagonal)",
    "previous_slot": "previous slot",
    "next_slot": "next slot",
    "first_token": "first token",
    "same_column": "digits of the same column",
    "carry_source": "digits of the column to the right",
    "operator": "plus sign",
    "previous_output": "token written last",
    "entropy_bits": "entropy, bits",
    "normalized_entropy": "entropy, share of uniform",
    "top_2_share": "weight on the two heaviest keys",
    "hoyer": "sparsity (Hoyer)",
}


def head_view(study: Study) -> dict | None:
    """None where no head was studied."""
    measures = [m for m in (*_drops(study), *_carries(study), *_others(study), *_looks(study)) if m["values"]]
    maps = study.rows("heads", "maps")
    names = list(dict.fromkeys([head for m in measures for head in m["values"]]))
    names += [f"{row['layer']}.{head}" for row in maps for head in row["heads"]]
    if not names:
        return None
    return {
        "model": study.studied,
        "layers": _layers(list(dict.fromkeys(names))),
        "measures": measures,
        "examples": _examples(maps, study.rows("heads", "toggles")),
        "breakdowns": _breakdowns(study),
        "roles": {row["head"]: row["role"] for row in study.rows("heads", "carry_atlas")},
    }


def _layers(names: list[str]) -> list[dict]:
    """Groups (encoder self, decoder self, decoder cross) of layers of heads, in the order of computation."""
    order = {"encoder.self": 0, "decoder.self": 1, "decoder.cross": 2}
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
        for group, own in sorted(groups.items(), key=lambda item: order.get(item[0], 3))
    ]


def _measure(key: str, label: str, group: str, unit: str, rows: list[dict], **more) -> dict:
    values = {
        row["head"]: _figure(row) for row in rows if row.get("value") is not None and math.isfinite(row["value"])
    }
    return {"key": key, "label": label, "group": group, "unit": unit, "values": values, **more}


def _drops(study: Study) -> list[dict]:
    ablation = [row for row in study.rows("heads", "ablation") if "head" in row]
    whole = [row for row in ablation if "class" in row]
    numbers = [row for row in ablation if "rank" in row and "class" not in row]  # of a measure that is no share
    found = [
        _measure(f"drop_{mode}", f"accuracy lost, {words}", "Switched off", "points",
                 [row for row in whole if row["mode"] == mode])
        for mode, words in MODES.items()
    ]  # fmt: skip
    found += [
        _measure(f"{row['metric']}_{row['mode']}",
                 f"{row['metric'].removesuffix('_drop').replace('_', ' ')} lost, {MODES[row['mode']]}", "Switched off",
                 "number", [own for own in numbers if (own["metric"], own["mode"]) == (row["metric"], row["mode"])])
        for row in {(row["metric"], row["mode"]): row for row in numbers}.values()
    ]  # fmt: skip
    loss = [row for row in ablation if row["metric"] == "loss_rise" and row["mode"] == "zero"]
    return [*found, _measure("loss_rise", "rise of the loss, set to zero", "Switched off", "number", loss)]


def _carries(study: Study) -> list[dict]:
    flips = [r for r in study.rows("heads", "interchange") if r["head"] != "none" and "column" not in r]
    excess = [
        {"head": r["head"], **r["carry_excess"]} for r in study.rows("heads", "carry_atlas") if r.get("carry_excess")
    ]
    by_metric = {"carry_flip": "carry moved by interchange", "whole_answer_flip": "whole answer moved by interchange"}
    found = [
        _measure(metric, label, "Carries", "share", [row for row in flips if row["metric"] == metric])
        for metric, label in by_metric.items()
    ]
    return [*found, _measure("carry_excess", "lost more with a carry than without", "Carries", "points", excess)]


def _others(study: Study) -> list[dict]:
    gradient = [row for row in study.rows("heads", "gradient") if "head" in row]
    shapley = [row for row in study.rows("heads", "subsets") if row["metric"] == "shapley"]
    return [
        _measure("gradient", "gradient estimate", "Estimates", "number", gradient),
        _measure("shapley", "Shapley value", "Estimates", "points", shapley),
    ]


def _looks(study: Study) -> list[dict]:
    rows = study.rows("heads", "specialization")
    return [
        _measure(metric, LOOKS.get(metric, metric), "Attention", "bits" if metric == "entropy_bits" else "share",
                 [row for row in rows if row["metric"] == metric])
        for metric in dict.fromkeys(row["metric"] for row in rows)
    ]  # fmt: skip


def _figure(row: dict) -> dict:
    kept = {name: _short(row[name]) for name in ("value", "n", "interval", "uniform", "class") if name in row}
    if not all(map(math.isfinite, kept.get("interval", []))):
        del kept["interval"]
    if row.get("class_is_certain") is False:
        kept["class"] += "?"
    return kept


def _short(value):
    if isinstance(value, float):
        return round(value, DIGITS)
    return [_short(part) for part in value] if isinstance(value, list) else value


def _examples(maps: list[dict], toggles: list[dict]) -> list[dict]:
    """Shown examples with their maps and answers, then the average over many."""
    found: dict = {}
    room = MOST_WEIGHTS
    for row in maps:
        average = "example" not in row
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
        answer = {name: row[name] for name in ("answer", "right", "probability") if name in row}
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
    found: dict[str, list[dict]] = {}
    facts = {
        "longest_chain": "carry chain",
        "column": "column (teacher-forced)",
        "kind": "negatives",
        "length": "length",
    }
    for row in study.rows("heads", "ablation"):
        fact = next((name for name in facts if name in row), None)
        if fact and row["mode"] == "zero":
            found.setdefault(row["head"], []).append({"by": facts[fact], "of": str(row[fact]), **_figure(row)})
    return found
