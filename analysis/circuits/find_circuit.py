"""The circuit of a model: found on one half of the examples by exact joint ablation, scored on the other half."""

from transformers import PreTrainedModel

from ...records.rows import select
from ..interventions.measures import Metric
from ..interventions.plan import Progress
from .circuit import Circuit
from .circuit_scores import circuit_rows, rungs
from .edge_search import search_edges
from .graph import edge_obstacle, graph_of
from .node_search import search_nodes
from .selection import halves
from .trials import EDGES, NODES, ChosenData, Data, Trials


TARGETS = {"zero": 0.99, "mean": 0.99, "resample": 0.95, "source": 0.99}  # faithfulness that a search keeps up
MOST_EDGES = 600  # of a model in which they are searched for without being asked for
FEWEST_EXAMPLES = 4


def find_circuit(
    model: PreTrainedModel,
    data: Data,
    metric: Metric | None = None,
    ablation: str = "mean",
    *,
    edges: bool | None = None,
    target: float | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Circuit:
    """The nodes of a model that are enough together, which of them read which, and how far that holds.

    >>> import headcount, torch
    >>> config = headcount.HeadcountConfig(architecture="decoder", num_hidden_layers=1, num_attention_heads=2)
    >>> model = headcount.HeadcountForCausalLM(config)
    >>> prompts = torch.randint(3, 13, (24, 2), generator=torch.Generator().manual_seed(0))
    >>> written = model.generate(prompts, max_new_tokens=3, min_new_tokens=3)  # what it writes counts as right
    >>> labels = written.index_fill(1, torch.arange(2), -100)
    >>> circuit = headcount.find_circuit(model, {"input_ids": written, "labels": labels})
    >>> set(circuit.nodes) <= set(headcount.sites(model)), circuit.ablation
    (True, 'mean')

    Args:
        model: one of headcount's own, or any transformers model whose heads `list_heads` finds.
        data: one labelled batch, a list of them or a DataLoader; with `ablation="source"` a pair `(base, source)` of
            these. One half is searched on (at most 300 examples), the other half scores.
        metric: a function of outputs and batch that gives one value per example, the higher the better; without it,
            the labels decide what is right.
        ablation: what takes the place of everything outside: `zero`; `mean`, its mean over the data, place by place;
            `resample`, that of another example; `source`, that of the source's run.
        edges: whether edges are searched for, too; of headcount's own models with norm_position="pre" alone. Without
            it, they are where a model has at most 600 of them.
        target: the faithfulness that the search keeps up on its half: 0.99 if not given, 0.95 under resample.
        seed: draws the halves, random circuits and partners.
        progress: called with the work done and all of it, in percent.

    Returns:
        A `Circuit`: `nodes`, `edges` (None if they were not searched for), `ablation`, and `rows` of study "circuit"
        under zero, mean and resample: faithfulness, complement, removal cost, curve, CPR and CMD.
    """
    given = ChosenData.of(model, data, ablation)
    with_edges = _asks_for_edges(model, edges)
    goal = TARGETS[ablation] if target is None else target
    if not 0 < goal <= 1:
        raise ValueError(f"target={target}; expected a share above 0 and at most 1.")
    if len(given) < FEWEST_EXAMPLES:
        raise ValueError(f"there are {len(given)} examples; expected at least {FEWEST_EXAMPLES}, for two halves.")
    choose, test = halves(len(given), seed)
    trials = Trials(model, given.part(choose), ablation, metric, seed)
    nodes, path = search_nodes(trials, goal, _share(progress, 0, 35))
    ladders: dict[str, list[tuple]] = {NODES: rungs(path, len(nodes))}
    chosen = None
    if with_edges:
        chosen, order = search_edges(trials, nodes, goal, _share(progress, 35, 75))
        ladders[EDGES] = rungs([order[number:] for number in range(len(order) + 1)], len(chosen))
    found = Circuit(nodes, chosen, ablation)
    rows = circuit_rows(model, given.part(test), found, ladders, metric, seed, _share(progress, 75, 100))
    for level, kept in ((NODES, nodes), (EDGES, chosen)):
        if kept is not None:
            value = float(trials.faithfulness(level, trials.keep(level, [kept]))[0])
            there = {"on_chosen_half": {"value": value, "n": len(choose)}, "goal": goal}
            for each in select(rows, metric="faithfulness", level=level, mode=ablation, by=trials.name):
                each.update(there)
    return Circuit(nodes, chosen, ablation, rows)


def _asks_for_edges(model: PreTrainedModel, edges: bool | None) -> bool:
    if edges is None:
        return edge_obstacle(model) is None and len(graph_of(model).edges) <= MOST_EDGES
    if edges:
        graph_of(model)  # raises where there are none
    return edges


def _share(progress: Progress | None, start: int, end: int) -> Progress | None:
    """A part of the work, which is itself reported from 0 to all of it."""
    if progress is None:
        return None
    return lambda done, total: progress(start + round((end - start) * done / max(1, total)), 100)
