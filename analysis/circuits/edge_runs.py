"""An own model in which every edge can be cut, exactly: path patching (Goldowsky-Dill et al. 2023, arXiv 2304.05969).

What a node reads is the sum of what its parents put out. Where an edge is cut, the parent's part of that sum, for this
reader alone, is its replacement: zero, its mean over the data, that of another example, or that of the source's run.
All edges out of a node cut are the node ablated, as `sweep` does it.

Versions of a model (sets of edges that are cut) share what they have in common. What a node puts out depends only on
which of its parents are cut and on the states of the others; each such combination is a state with a number, computed
once. States of the last versions are kept for the next call, so a search that changes one edge after another pays for
what comes after that edge.

Shapes: V versions, S states, B rows of a portion, N all rows, T labelled places, L tokens, E hidden size.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput

from ...data_builders.vocabulary import IGNORED
from ..interventions.batches import ANSWERS, Batches, as_batches, join_batches
from ..interventions.intervention import REPLACEMENTS, Intervention
from ..interventions.measures import Measure, Metric, Values, decoding_of, labels_in_place
from ..interventions.plan import Outcomes, Plan, check_plan
from ..interventions.shared_states import INPUTS, cut_rows, length_groups, obstacle, partner_rows
from .graph import EMBED, LOGITS, Edge, edge_name, is_embed
from .network import Network, Prepared


CUT = -1  # in the place of a parent's state: its replacement is read
ROWS_AT_ONCE = 2_048  # tokens of the rows of a portion, B * L
TOKENS_AT_ONCE = 32_768  # of all versions that are computed side by side, V * B * L

Key = tuple[int, ...]  # of a reader: for every parent its state, or CUT
States = dict[tuple[str, int], Tensor]  # (node, state) -> (B, L, E)


@dataclass
class Portion:
    """Some rows of one length, what takes the place of nodes on them, and the states that were computed last."""

    rows: Tensor  # (B,): their numbers among all rows
    batch: dict[str, Tensor]
    prepared: Prepared
    replacements: dict[str, Tensor] = field(default_factory=dict)  # node -> (B or 1, L or 1, E)
    states: States = field(default_factory=dict)

    def length(self, name: str) -> int:
        """Tokens of the stack that a node belongs to."""
        return self.prepared.embeds[f"{name.split('.')[0]}.{EMBED}"].shape[1]


class EdgeRuns:
    """A model with its data, ready to be run with any edges cut. Weights that change later need new runs.

    >>> import torch
    >>> from headcount import HeadcountConfig, HeadcountForConditionalGeneration
    >>> model = HeadcountForConditionalGeneration(HeadcountConfig(num_hidden_layers=1, num_attention_heads=2))
    >>> batch = {"input_ids": torch.tensor([[5, 6, 2], [7, 8, 2]]), "labels": torch.tensor([[6, 5, 2], [8, 7, 2]])}
    >>> runs = EdgeRuns(model, batch, "mean")
    >>> runs.outcomes([[], [("encoder.0.mlp", "decoder.0.cross.1")]]).loss.shape
    (2, 2)

    Args:
        model: one of headcount's own with an output layer and norm_position="pre".
        data: labelled batches, padded on the right if at all; rows of one length are computed together.
        ablation: what a cut edge brings: a name from `REPLACEMENTS`.
        metric: a function of outputs (with `logits`) and batch, one value per example; without it, labels decide.
        sources: for `ablation="source"`.
        seed: draws the partners for `resample`.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        data: Batches,
        ablation: str = "mean",
        metric: Metric | None = None,
        *,
        sources: Batches | None = None,
        seed: int = 0,
    ):
        self.network = Network(model)  # raises for what is not headcount's own
        self.model, self.graph, self.ablation = self.network.model, self.network.graph, ablation
        if ablation not in REPLACEMENTS:
            raise ValueError(f"ablation={ablation!r} is not known; expected one of {', '.join(REPLACEMENTS)}.")
        batches = as_batches(data)
        others = None if sources is None else as_batches(sources)
        self.measure = Measure(model, metric)
        replaced = [Intervention(self.graph.nodes[:1], replacement=ablation)]
        plan = Plan(model, batches, replaced, self.measure, others, seed=seed)
        check_plan(plan)
        others = None if others is None else inputs_alone(others)
        by_labels = Measure(model, None)  # the runner of whose demands these are measures by labels alone
        reason = obstacle(replace(plan, batches=inputs_alone(batches), sources=others, measure=by_labels))
        if reason is not None:
            raise ValueError(f"edges cannot be cut on these data: {reason}.")
        self._rows = join_batches(batches)
        self._numbers: dict[str, dict[Key, int]] = {name: {} for name in self.graph.parents}
        self._keys: dict[str, list[Key]] = {name: [] for name in self.graph.parents}  # by number
        with evaluating(model):
            self.portions = [
                self._portion(self._rows, part)
                for group in length_groups(self._rows)
                for part in group.split(max(1, ROWS_AT_ONCE // self._rows["input_ids"].shape[1]))
            ]
            self._fill_replacements(plan)

    def outcomes(self, versions: Sequence[Collection[Edge]]) -> Outcomes:
        """What the model does on every example in each version: a set of edges that are cut; none is the model."""
        cuts = [frozenset(version) for version in versions]
        if not cuts:
            raise ValueError("there are no versions; expected at least one set of edges, which may be empty.")
        known = set(self.graph.edges)
        unknown = next((edge for cut in cuts for edge in cut if edge not in known), None)
        if unknown is not None:
            raise ValueError(f"{edge_name(unknown)!r} is not an edge of this model; expected one of its graph's.")
        numbered = [self._number(cut) for cut in cuts]
        labels = labels_in_place(self.model, self._rows["labels"]).cpu()
        found: dict[str, Tensor] = {}
        with evaluating(self.model):
            for portion in self.portions:
                each = self._measured(portion, numbered)
                for name in each[0].keys() - {"labels"}:
                    self._write(found, name, torch.stack([values[name] for values in each]), portion.rows)
        about: dict[str, Any] = {"interventions": [], "runner": "edges", "metric": self.measure.name}
        if not self.measure.by_labels:
            return Outcomes(**about, values=found["values"].numpy())
        tokens = found["tokens"].masked_fill(labels == IGNORED, IGNORED).numpy()
        about |= {"decoding": decoding_of(self.model, labels), "tokens": tokens, "labels": labels.numpy()}
        return Outcomes(**about, loss=found["loss"].numpy())

    def _write(self, found: dict[str, Tensor], name: str, values: Tensor, rows: Tensor) -> None:
        """(V, B) or (V, B, T) into the place of these rows."""
        if name not in found:
            total = len(self._rows["labels"])
            width = labels_in_place(self.model, self._rows["labels"]).shape[1:] if values.ndim == 3 else ()
            found[name] = torch.full((len(values), total, *width), IGNORED if name == "tokens" else 0).to(values.dtype)
        if values.ndim == 3:
            found[name][:, rows, : values.shape[-1]] = values
        else:
            found[name][:, rows] = values

    # What takes the place of what was there

    def _portion(self, rows: dict[str, Tensor], part: Tensor) -> Portion:
        extra = {name: values[part] for name, values in rows.items() if name not in INPUTS}
        batch = {**extra, **cut_rows(self.model, rows, part)}
        return Portion(part, batch, self.network.prepare(batch))

    def _fill_replacements(self, plan: Plan) -> None:
        if self.ablation == "zero":
            blank = torch.zeros(1, 1, self.model.config.hidden_size, device=self.model.device, dtype=self.model.dtype)
            for portion in self.portions:
                portion.replacements = dict.fromkeys(self.graph.writers, blank)
        elif self.ablation == "mean":
            means = self._means()
            for portion in self.portions:
                portion.replacements = means
        else:
            rows, numbers = self._rows, torch.arange(len(self._rows["input_ids"]))
            if self.ablation == "resample":
                numbers = partner_rows(plan)
            elif plan.sources is not None:
                rows = join_batches(plan.sources)
            for portion in self.portions:
                portion.replacements = self.put_out(self._portion(rows, numbers[portion.rows]))

    def _means(self) -> dict[str, Tensor]:
        """(1, L, E): over all rows that have the place."""
        longest = {name: max(portion.length(name) for portion in self.portions) for name in self.graph.writers}
        blank = torch.zeros(1, self.model.config.hidden_size, device=self.model.device, dtype=torch.double)
        totals = {name: blank.repeat(length, 1) for name, length in longest.items()}
        counts = {name: blank[:, :1].repeat(length, 1) for name, length in longest.items()}
        for portion in self.portions:
            for name, output in self.put_out(portion).items():
                totals[name][: output.shape[1]] += output.double().sum(0)
                counts[name][: output.shape[1]] += len(output)
        return {name: (total / counts[name])[None].to(self.model.dtype) for name, total in totals.items()}

    def put_out(self, portion: Portion) -> dict[str, Tensor]:
        """What the inputs and every node of the intact model put out on a portion, (B, L, E)."""
        version = self._number(frozenset())
        states = self._states(portion, [version], {})
        return {name: self.value(portion, name, version.get(name, 0), states) for name in self.graph.writers}

    # Which states there are

    def _number(self, cut: frozenset[Edge]) -> dict[str, int]:
        """For every reader the number of its state in this version."""
        states: dict[str, int] = {}
        for reader, read in self.graph.parents.items():
            key = tuple(CUT if (parent, reader) in cut else states.get(parent, 0) for parent in read)
            own = self._numbers[reader]
            if key not in own:
                own[key] = len(own)
                self._keys[reader].append(key)
            states[reader] = own[key]
        return states

    def _measured(self, portion: Portion, numbered: list[dict[str, int]]) -> list[Values]:
        """What is measured of every version."""
        size = max(1, TOKENS_AT_ONCE // portion.batch["input_ids"].numel())
        measured: dict[int, Values] = {}
        kept = portion.states
        for start in range(0, len(numbered), size):
            block = numbered[start : start + size]
            states = self._states(portion, block, kept)
            for number in {version[LOGITS] for version in block} - measured.keys():
                outputs = CausalLMOutput(logits=states[LOGITS, number])
                measured[number] = self.measure.values(outputs, portion.batch, len(portion.rows))
            kept = {key: states[key] for version in (numbered[0], *block) for key in version.items()}
        portion.states = kept
        return [measured[version[LOGITS]] for version in numbered]

    def _states(self, portion: Portion, versions: list[dict[str, int]], kept: States) -> States:
        """All states of these versions, those that are not known computed."""
        states = dict(kept)
        for reader, keys in self._keys.items():
            missing = sorted({version[reader] for version in versions if (reader, version[reader]) not in states})
            if missing:
                found = self.compute(portion, reader, [keys[number] for number in missing], states)
                states.update({(reader, number): own for number, own in zip(missing, found, strict=True)})
        return states

    # What a state is

    def compute(self, portion: Portion, reader: str, keys: list[Key], states: States) -> Tensor:
        """(S, B, L, E) for states of one reader, given those of its parents."""
        place = {parent: number for number, parent in enumerate(self.graph.parents[reader])}
        read = {}
        for stack, parents in self.network.reads[reader].items():
            columns = [(parent, [key[place[parent]] for key in keys]) for parent in parents]
            read[stack] = self._sums(portion, columns, states, self.network.constant(reader, stack))
        return self.network.put_out(reader, read, portion.prepared)

    def _sums(
        self, portion: Portion, columns: list[tuple[str, list[int]]], states: States, constant: Tensor
    ) -> Tensor:
        """(S, B, L, E): what is read in every state; parents that are alike in all of them are added up once."""
        common = constant.expand(len(portion.rows), portion.length(columns[0][0]), -1)
        varying = []
        for parent, numbers in columns:
            if len(set(numbers)) == 1:
                common = common + self.value(portion, parent, numbers[0], states)
            else:
                varying.append((parent, numbers))
        count = len(columns[0][1])
        if not varying:
            return common.expand(count, *common.shape)
        sums = common.repeat(count, 1, 1, 1)
        for parent, numbers in varying:
            for number, own in enumerate(numbers):
                sums[number] += self.value(portion, parent, own, states)
        return sums

    def value(self, portion: Portion, parent: str, number: int, states: States) -> Tensor:
        if number == CUT:
            return portion.replacements[parent][:, : portion.length(parent)]
        return portion.prepared.embeds[parent] if is_embed(parent) else states[parent, number]


@contextmanager
def evaluating(model: PreTrainedModel) -> Iterator[None]:
    """Without dropout and without gradients; the model is left as it was."""
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():  # not inference mode: estimates take gradients on what is prepared here
            yield
    finally:
        model.train(was_training)


def inputs_alone(batches: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The batches without what only a metric looks at."""
    return [{name: value for name, value in batch.items() if name != ANSWERS} for batch in batches]
