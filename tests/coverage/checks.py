"""What headcount can do with one architecture, checked on a tiny random model of it: every answer is compared."""

import copy
from typing import Any

import numpy as np
import torch
from oracles import closing_hook, hook_places, ways
from replacing import Tap, means, of_others, recorded, replaced, taps, zeros
from torch import Tensor, nn
from transformers import PreTrainedModel
from zoo import tiny_model
from zoo_inputs import tiny_inputs

import headcount
from headcount.analysis.interventions.batches import batch_rows, partners
from headcount.analysis.interventions.intervention import Intervention
from headcount.analysis.interventions.subject import numbers
from headcount.analysis.interventions.sweep import sweep
from headcount.modeling.stock.finding import AttentionLayer, attention_layers


MODES = ("zero", "mean", "resample")


def check(class_name: str, only: tuple[str, ...] = ()) -> dict[str, Any]:
    """A row with a verdict for each kind of use: `right`, `refused: WHY`, `WRONG: WHY` or `not run: WHY`."""
    model = tiny_model(class_name)
    inputs = tiny_inputs(model)
    found: dict[str, Any] = {"parameters": sum(each.numel() for each in model.parameters())}
    try:
        layers = attention_layers(model)
    except ValueError as error:
        has_none = "has no attention heads" in str(error)
        return found | {"heads": "none" if has_none else f"refused: {error}"}
    try:
        found["heads"] = f"right: {len(headcount.list_heads(model))}"
    except ValueError as error:
        found["heads"] = f"partial: {error}"
    if not same(outputs_of(model, inputs), outputs_of(model, inputs), 1e-6):
        return found | {"masks": "not run: it answers otherwise the second time"}
    ran = which_ran(model, inputs, layers)
    if not ran:
        return found | {"masks": "not run: no attention layer runs with these inputs"}
    for name, use in USES.items():
        if not only or name in only:
            found[name] = verdict(use, model, inputs, ran)
    return found


def verdict(use: Any, model: PreTrainedModel, inputs: dict, ran: dict[str, AttentionLayer]) -> str:
    try:
        return use(model, inputs, ran)
    except WrongError as error:
        return f"WRONG: {error}"
    except Exception as error:
        if "expected" in str(error).lower() and isinstance(
            error, (ValueError, RuntimeError)
        ):  # a sentence of headcount's
            return f"refused: {str(error).splitlines()[0]}"
        return f"FAILED: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


class WrongError(Exception):
    pass


def outputs_of(model: PreTrainedModel, inputs: dict) -> list[Tensor]:
    torch.manual_seed(0)
    with torch.inference_mode():
        return list(numbers(model(**inputs)).values())


def answers_of(model: PreTrainedModel, inputs: dict) -> list[Tensor]:
    """What it puts out but for maps, which a model with fewer heads has fewer of."""
    torch.manual_seed(0)
    with torch.inference_mode():
        return [value for name, value in numbers(model(**inputs)).items() if "attentions" not in name]


def same(first: list[Tensor], second: list[Tensor], tolerance: float = 1e-4) -> bool:
    if [each.shape for each in first] != [each.shape for each in second]:
        return False
    scale = [max(1.0, float(finite(each).abs().max())) if each.numel() else 1.0 for each in first]
    pairs = zip(first, second, scale, strict=True)
    return all(torch.allclose(a, b, atol=tolerance * size, rtol=0, equal_nan=True) for a, b, size in pairs)


def finite(values: Tensor) -> Tensor:
    """Scores that are hidden are infinite in some models."""
    return values.double().nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).clamp(-1e6, 1e6)


def which_ran(model: PreTrainedModel, inputs: dict, layers: dict[str, AttentionLayer]) -> dict[str, AttentionLayer]:
    """The layers that these inputs reach: a text alone does not reach a vision tower."""
    reached: set[nn.Module] = set()
    hooks = [each.module.register_forward_hook(lambda module, *_: reached.add(module)) for each in layers.values()]
    outputs_of(model, inputs)
    for hook in hooks:
        hook.remove()
    return {name: layer for name, layer in layers.items() if layer.module in reached}


def masks(model: PreTrainedModel, inputs: dict, ran: dict[str, AttentionLayer]) -> str:
    """One layer of each class: heads that are masked are heads whose values are zero, or closed by a hook."""
    intact, kinds, by_values, unverified = outputs_of(model, inputs), set(), 0, []
    for layer in ran.values():
        if type(layer.module) in kinds:
            continue
        kinds.add(type(layer.module))
        heads = [f"{layer.name}.{number}" for number in layer.heads]
        masked = {}

        def without(groups: int, apart: bool = False, heads: list[str] = heads, masked: dict = masked) -> list[Tensor]:
            """The last group: neighbours, or every so many-th head."""
            group = heads[groups - 1 :: groups] if apart else heads[-(len(heads) // groups) :]
            if (groups, apart) not in masked:
                with headcount.mask_heads(model, group):
                    masked[groups, apart] = outputs_of(model, inputs)
            return masked[groups, apart]

        if same(without(1), intact, 1e-7):
            if not all(agrees(model, inputs, [intact], way) for _, way in ways(layer.module, len(heads))):
                raise WrongError(f"masking all heads of {layer.name} changes nothing")
            continue  # what this layer puts out is thrown away
        found = ways(layer.module, len(heads))
        if any(agrees(model, inputs, [without(groups), without(groups, True)], way) for groups, way in found):
            by_values += 1
        elif not closed_alike(model, inputs, layer, without(len(heads))):
            if layer.place is None:  # the interface gives its heads; nothing else of it is known to compare with
                unverified.append(type(layer.module).__name__)
                continue
            raise WrongError(f"{layer.name} ({type(layer.module).__name__}) agrees with no oracle")
    if unverified:
        return f"unverified: {', '.join(unverified)} agrees with no oracle"
    return f"right: {by_values} of {len(kinds)} by values"


def agrees(model: PreTrainedModel, inputs: dict, masked: list[list[Tensor]], way: Any) -> bool:
    with way:
        found = outputs_of(model, inputs)
    return any(same(found, each) for each in masked)


def closed_alike(model: PreTrainedModel, inputs: dict, layer: AttentionLayer, masked: list[Tensor]) -> bool:
    """Whether a plain hook on an output projection gives what the mask of the last head gives."""
    for place in hook_places(model, layer.path):
        hook = closing_hook(place, len(layer.heads) - 1, len(layer.heads))
        try:
            if same(outputs_of(model, inputs), masked):
                return True
        except RuntimeError:  # not the size of these heads
            continue
        finally:
            hook.remove()
    return False


def ablation(model: PreTrainedModel, inputs: dict, ran: dict[str, AttentionLayer]) -> str:
    """The quickest runner gives what one pass per head gives, for all heads and for a few, in every mode."""
    names = [f"{layer.name}.{number}" for layer in ran.values() for number in layer.heads]
    first, last = next(iter(ran.values())), list(ran.values())[-1]
    few = [f"{first.name}.{n}" for n in first.heads[:2]] + [f"{last.name}.{last.heads[-1]}"]
    said = []
    for mode in MODES:
        for heads in (names, list(dict.fromkeys(few))):
            wanted = [Intervention((head,), replacement=mode) for head in heads]
            try:
                quick, slow = (run_sweep(model, inputs, wanted, runner) for runner in (None, "loop"))
            except ValueError as error:
                if mode == "zero":
                    raise
                said.append(f"{mode} refused: {str(error).splitlines()[0]}")
                break
            scale = max(1e-3, float(np.abs(slow.values).max()))
            if not np.allclose(quick.values, slow.values, atol=1e-4 * scale, rtol=0, equal_nan=True):
                raise WrongError(f"{mode} by {quick.runner} differs from the loop")
            said.append(f"{mode} {quick.runner}")
    return "right: " + ", ".join(dict.fromkeys(said))


def run_sweep(model: PreTrainedModel, inputs: dict, wanted: list[Intervention], runner: str | None) -> Any:
    torch.manual_seed(0)
    return sweep(model, inputs, wanted, measure, runner=runner)


def measure(outputs: Any, batch: dict) -> Tensor:
    """A number for each example that depends on everything that the model gives for it."""
    rows = batch_rows(batch)
    totals = torch.zeros(rows)
    for value in numbers(outputs).values():
        if value.ndim and value.shape[0] == rows:
            flat = finite(value.reshape(rows, -1))
            weights = torch.linspace(0.5, 1.5, flat.shape[1], dtype=torch.float64)
            totals = totals + (flat * weights).sum(1)
    return totals


def replacements(model: PreTrainedModel, inputs: dict, ran: dict[str, AttentionLayer]) -> str:
    """One layer of each class, its last head: mean, resample and a swap are what an oracle of its own gives."""
    rows, said, unverified, refusals = batch_rows(inputs), [], [], []
    kinds = {type(layer.module): layer for layer in reversed(ran.values())}
    for kind, layer in kinds.items():
        fitting = [] if rows < 2 else fitting_taps(model, inputs, layer, len(layer.heads) - 1)
        if not fitting:
            unverified.append(kind.__name__)
            continue
        for mode, others in (("mean", {}), ("resample", {}), ("source", {"sources": turn(inputs)})):
            head = Intervention((f"{layer.name}.{layer.heads[-1]}",), replacement=mode)
            try:
                torch.manual_seed(0)
                found = sweep(model, inputs, [head], measure, **others).values[1]
            except ValueError as error:
                refusals.append(f"{mode} of {layer.name} refused: {str(error).splitlines()[0]}")
                continue
            wanted = [by_tap(model, inputs, tap, len(layer.heads) - 1, mode) for tap in fitting]
            if not any(one is not None and close(found, one) for one in wanted):
                raise WrongError(f"{mode} of {layer.name} ({kind.__name__}) differs from the oracle")
            said.append(mode)
    if unverified:
        return f"unverified: {', '.join(unverified)} agrees with no oracle"
    if not said:
        return f"refused: {refusals[0]}"
    return "right: " + "; ".join([f"{len(said)} of {3 * len(kinds)}", *refusals])


def turn(inputs: dict) -> dict:
    """The same examples, the last one first."""
    return {n: v.roll(1, 0) if isinstance(v, Tensor) and v.ndim else v for n, v in inputs.items()}


def fitting_taps(model: PreTrainedModel, inputs: dict, layer: AttentionLayer, head: int) -> list[Tap]:
    """The places at which a head that is zero is a head that is masked."""
    found = []
    with headcount.mask_heads(model, [f"{layer.name}.{layer.heads[head]}"]):
        masked = outputs_of(model, inputs)

    def run() -> list[Tensor]:
        return outputs_of(model, inputs)

    for tap in taps(model, layer.path, len(layer.heads)):
        try:
            if same(replaced(run, tap, head, zeros(recorded(run, tap))), masked):
                found.append(tap)
        except (RuntimeError, IndexError, ValueError):  # not where these heads are, not as many, or no such tap
            continue
    return found


def by_tap(model: PreTrainedModel, inputs: dict, tap: Tap, head: int, mode: str) -> Any:
    """What is measured with a head replaced at a tap; None where it does not go row by row."""
    rows = batch_rows(inputs)

    def run(given: dict = inputs) -> Any:
        torch.manual_seed(0)
        with torch.inference_mode():
            return model(**given)

    calls = recorded(lambda: run(turn(inputs)), tap) if mode == "source" else recorded(run, tap)
    if mode in ("mean", "resample") and any(len(own) % rows for own in calls):
        return None
    if mode == "zero":
        calls = zeros(calls)
    elif mode == "mean":
        calls = means(calls, rows)
    elif mode == "resample":
        calls = of_others(calls, partners(inputs, 0).tolist())
    return measure(replaced(run, tap, head, calls), inputs).numpy()


def close(found: np.ndarray, wanted: np.ndarray) -> bool:
    return np.allclose(found, wanted, atol=1e-4 * max(1e-3, float(np.abs(wanted).max())), rtol=0, equal_nan=True)


def maps(model: PreTrainedModel, inputs: dict, ran: dict[str, AttentionLayer]) -> str:
    """A map for every head and call, and those that the model gives by itself are among them."""
    found = headcount.attention_maps(model, inputs, every_call=True)
    missing = [name for name in ran if name not in found]
    if missing:
        raise WrongError(f"no map of {missing[0]}")
    for name in ran:
        for weights in found[name]:
            if weights.shape[1] != len(ran[name].heads):
                raise WrongError(f"{name} has {weights.shape[1]} maps for {len(ran[name].heads)} heads")
    every = [(name, each) for name, calls in found.items() for each in calls]
    in_order = all(len(calls) == 1 for calls in found.values())  # else it is by layer here, and by call there
    matched = set()
    for key, own in own_maps(model, inputs).items():
        last = -1
        for number, weights in enumerate(own):
            alike = [place for place, (_, each) in enumerate(every) if each.shape == weights.shape]
            equal = [place for place in alike if torch.allclose(every[place][1], weights, atol=1e-5, equal_nan=True)]
            if alike and not any(place > last for place in equal):
                raise WrongError(
                    f"{key} {number} of output_attentions=True is not where {every[alike[0]][0]} or later is"
                )
            matched.update(equal)
            last = min((place for place in equal if place > last), default=last) if in_order else -1
    return f"right: {len(matched)} of {len(every)} compared"


def own_maps(model: PreTrainedModel, inputs: dict) -> dict[str, list[Tensor]]:
    """What the model itself gives as its attentions, step by step (`eager`), by output; some models give none."""
    eager = copy.deepcopy(model)
    try:
        eager.set_attn_implementation("eager")
        torch.manual_seed(0)
        with torch.inference_mode():
            outputs = eager(**inputs, output_attentions=True)
    except (ValueError, TypeError, KeyError, IndexError):  # no such argument or implementation, or it fails over it
        return {}
    found: dict[str, list[Tensor]] = {}
    for name, value in numbers(outputs).items():
        if "attention" in name and value.ndim == 4:
            found.setdefault(name.rpartition(".")[0] or name, []).append(value)
    return found


def pruning(model: PreTrainedModel, inputs: dict, ran: dict[str, AttentionLayer]) -> str:
    """One head of every layer that runs, really removed: the answers are those of the mask."""
    heads = [f"{layer.name}.{layer.heads[-1]}" for layer in ran.values()]
    with headcount.mask_heads(model, heads):
        masked = answers_of(model, inputs)
    smaller = copy.deepcopy(model)
    headcount.prune_heads(smaller, heads)
    if not same(answers_of(smaller, inputs), masked):
        raise WrongError("the pruned model does not answer as the masked one")
    before, after = (sum(each.numel() for each in m.parameters()) for m in (model, smaller))
    if after >= before:
        raise WrongError("the pruned model is not smaller")
    return f"right: {before} to {after} parameters"


def patching(model: PreTrainedModel, inputs: dict, ran: dict[str, AttentionLayer]) -> str:
    """What the last head of a layer puts out on the examples turned round, in its place, as an oracle has it."""
    layer = list(ran.values())[-1]
    place = len(layer.heads) - 1
    head = f"{layer.name}.{layer.heads[place]}"
    torch.manual_seed(0)
    found = sweep(model, inputs, [Intervention((head,), replacement="source")], measure, sources=turn(inputs))
    wanted = [by_tap(model, inputs, tap, place, "source") for tap in fitting_taps(model, inputs, layer, place)]
    if not wanted:
        return f"unverified: {type(layer.module).__name__} agrees with no oracle"
    if not any(close(found.values[1], one) for one in wanted):
        raise WrongError(f"a swap of {head} differs from the oracle")
    return f"right: {found.runner}"


USES = {
    "masks": masks,
    "ablation": ablation,
    "replacements": replacements,
    "maps": maps,
    "pruning": pruning,
    "patching": patching,
}
