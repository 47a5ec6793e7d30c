"""Small adders trained so that a given circuit is used: interchange intervention training (Geiger et al. 2022).

Beside the ordinary loss there is that of a second pass. In half of its problems one node puts out what it does on
another problem, the source, and the answer must change as if its variable alone had changed: carries of the source,
digit sums of the problem itself. In the same pass nodes outside of the circuit, in half of the problems all of them,
put out what they do on a third, so that nothing hangs on them. Unlike in the paper, sources are rows of the batch.

Shapes: B rows, C columns, L tokens, H heads, D head dimension.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ....configuration.configuration_headcount import HeadcountConfig
from ....data_builders.addition.task import DIGIT_IDS, PLUS_ID
from ....data_builders.registry import find_task
from ....data_builders.tasks import options_of
from ....data_builders.vocabulary import EOS
from ....modeling.modeling_headcount import HeadcountForConditionalGeneration
from ....trainers.optimizers import OPTIMIZERS, schedule
from ....trainers.recipe import TrainingOptions
from ...interventions.intervention import Intervention
from ...interventions.sites import Site, sites
from ...interventions.sweep import sweep
from .construction import Construction
from .site_outputs import Mix, read_and_mix


DIGITS = 2
DATA = {"digits": DIGITS, "train": 2000, "validation": 200, "test": 500, "hard": 60, "pairs": 100}
TRAINING = TrainingOptions(
    optimizer="muon",
    learning_rate=0.004,
    muon_learning_rate=0.02,
    muon_momentum=0.8,
    muon_per_head=True,
    gradient_clip=None,
    batch_size=128,
    steps=600,
)
LEAST_ACCURACY = 0.99
MOST_LOSS = 0.002  # of accuracy with all idle nodes resampled together
Counterfactual = Callable[["Columns", "Columns"], Tensor]


@dataclass(frozen=True)
class Columns:
    """Two operands as their column sums (B, C) and the carries into each answer digit (B, C + 1), units first."""

    sums: Tensor
    carries: Tensor

    @classmethod
    def of(cls, first: Tensor, second: Tensor) -> "Columns":
        powers = 10 ** torch.arange(DIGITS + 2)
        sums = (first[:, None] // powers[:-2]) % 10 + (second[:, None] // powers[:-2]) % 10
        lower = first[:, None] % powers[:-1] + second[:, None] % powers[:-1]
        return cls(sums, (lower >= powers[:-1]).long())

    def __getitem__(self, rows: Tensor) -> "Columns":
        return Columns(self.sums[rows], self.carries[rows])

    def answer(self) -> Tensor:
        """Token ids of the answer, most significant digit first, and <eos>."""
        digits = (nn.functional.pad(self.sums, (0, 1)) + self.carries) % 10
        return nn.functional.pad(digits.flip(-1) + DIGIT_IDS[0], (0, 1), value=EOS)


VARIABLES: dict[str, Counterfactual] = {
    "carry": lambda own, source: Columns(own.sums, source.carries).answer(),
    "column sum": lambda own, source: Columns(source.sums, own.carries).answer(),
}


@dataclass(frozen=True)
class Circuit:
    """What training is to bring about: the nodes that may be used, and the variable that some of them are to hold."""

    name: str
    says: str
    variables: Mapping[str, str]  # variable -> site
    jobs: Mapping[str, str]
    layers: tuple[int, int] = (1, 1)
    heads: int = 2

    def new_model(self) -> HeadcountForConditionalGeneration:
        task = find_task("addition")
        options: dict[str, Any] = {
            "hidden_size": 64,
            "intermediate_size": 256,
            "num_attention_heads": self.heads,
            "num_hidden_layers": self.layers[0],
            "decoder_layers": self.layers[1],
            "query_key_init_gain": 0.5,
            "max_position_embeddings": 16,
        }
        facts = task.config(options_of(task, DATA), options)
        return HeadcountForConditionalGeneration(HeadcountConfig(vocab_size=task.vocabulary.size, **options, **facts))

    def idle(self, model: HeadcountForConditionalGeneration) -> list[Site]:
        return [site for site in sites(model) if site.kind != "residual" and site not in self.jobs]


def questions(first: Tensor, second: Tensor) -> Tensor:
    """Token ids of `37+85<eos>`."""
    powers = 10 ** torch.arange(DIGITS - 1, -1, -1)
    a, b = ((each[:, None] // powers) % 10 + DIGIT_IDS[0] for each in (first, second))
    return torch.cat((a, torch.full((len(a), 1), PLUS_ID), b, torch.full((len(a), 1), EOS)), dim=1)


def train_circuit(circuit: Circuit, seed: int, steps: int | None = None) -> HeadcountForConditionalGeneration:
    """A model trained to use the circuit; whether it does is for `check_circuit` to say."""
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = circuit.new_model()
    steps, idle = steps or TRAINING.steps or 0, circuit.idle(model)
    optimizers = OPTIMIZERS[TRAINING.optimizer](model, TRAINING)
    starts = [[group["lr"] for group in optimizer.param_groups] for optimizer in optimizers]
    variables = list(circuit.variables.items())
    for number in range(steps):
        factor = schedule(number, steps, TRAINING.warmup, TRAINING.decay)
        for optimizer, rates in zip(optimizers, starts, strict=True):
            optimizer.zero_grad()
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = rate * factor
        rows = TRAINING.batch_size
        first, second = torch.randint(10**DIGITS, (2, rows), generator=generator)
        own, inputs = Columns.of(first, second), questions(first, second)
        with read_and_mix(model, {}) as outputs:
            loss = model(input_ids=inputs, labels=own.answer()).loss

        variable, site = variables[number % len(variables)]
        source = torch.randperm(rows, generator=generator)
        third = torch.randperm(rows, generator=generator)
        swapped = torch.rand(rows, generator=generator) < 0.5  # the others show the circuit alone, idle nodes gone
        wanted = torch.where(swapped[:, None], VARIABLES[variable](own, own[source]), own.answer())
        mixes = {Site(site): Mix(swapped.float(), source)}
        often = 2 * torch.rand(rows, generator=generator)  # in half of the problems all idle nodes, else some
        for other in idle:
            mixes[other] = Mix((torch.rand(rows, generator=generator) < often).float(), third)
        with read_and_mix(model, mixes, outputs):
            loss = loss + model(input_ids=inputs, labels=wanted).loss
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
    return model.eval()


@torch.inference_mode()
def interchange_accuracy(circuit: Circuit, model: HeadcountForConditionalGeneration, rows: int = 2000) -> float:
    """How often a swap gives the whole counterfactual answer, over all variables; new pairs of problems."""
    generator = torch.Generator().manual_seed(2**31)
    first, second = torch.randint(10**DIGITS, (2, rows), generator=generator)
    own, inputs, source = (
        Columns.of(first, second),
        questions(first, second),
        torch.randperm(rows, generator=generator),
    )
    right = []
    for variable, site in circuit.variables.items():
        with read_and_mix(model, {}) as outputs:
            model(input_ids=inputs, labels=own.answer())
        wanted = VARIABLES[variable](own, own[source])
        with read_and_mix(model, {Site(site): Mix(torch.ones(rows), source)}, outputs):
            right.append((model(input_ids=inputs, labels=wanted).logits.argmax(-1) == wanted).all(-1))
    return float(torch.cat(right).float().mean())


def check_circuit(circuit: Circuit, model: HeadcountForConditionalGeneration) -> dict[str, float]:
    """Accuracy on all problems: intact; with all idle nodes resampled together; with each node of the circuit
    resampled alone; and that of swaps.
    """
    numbers = torch.arange(10 ** (2 * DIGITS))
    numbers = numbers[torch.randperm(len(numbers), generator=torch.Generator().manual_seed(0))]
    first, second = numbers // 10**DIGITS, numbers % 10**DIGITS
    batch = {"input_ids": questions(first, second), "labels": Columns.of(first, second).answer()}
    sets = [tuple(circuit.idle(model)), *((Site(node),) for node in circuit.jobs)]
    outcomes = sweep(model, batch, [Intervention(each, replacement="resample") for each in sets])
    names = ["intact", "idle resampled", *(f"{node} resampled" for node in circuit.jobs)]
    found = {name: float(right.mean()) for name, right in zip(names, outcomes.right, strict=True)}
    return {**found, "interchange": interchange_accuracy(circuit, model)}


def reached(figures: Mapping[str, float]) -> bool:
    """Whether the circuit is used and nothing else: only then is it the truth about a model."""
    nodes = [value for name, value in figures.items() if name.endswith(" resampled") and not name.startswith("idle")]
    return (
        min(figures["intact"], figures["interchange"]) >= LEAST_ACCURACY
        and figures["idle resampled"] >= figures["intact"] - MOST_LOSS
        and max(nodes) < LEAST_ACCURACY
    )


def trained_model(circuit: Circuit, seed: int) -> HeadcountForConditionalGeneration:
    """Trained and checked; a model that does not use its circuit is refused."""
    model = train_circuit(circuit, seed)
    figures = check_circuit(circuit, model)
    if not reached(figures):
        shown = ", ".join(f"{name} {value:.4f}" for name, value in figures.items())
        raise RuntimeError(
            f"training of {circuit.name} with seed {seed} missed its aim ({shown}); expected another seed."
        )
    return model


BRINGS, MAKES = "brings the digits of its column, and of lower ones, together", "makes of them what the decoder needs"
WRITES = "makes the answer digit of sum and carry"
CIRCUITS = (
    Circuit(
        "trained-cross-carry",
        "trained so that one cross head brings the column sum and another one the carry",
        {"carry": "decoder.0.cross.1", "column sum": "decoder.0.cross.0"},
        {
            "encoder.0.self.0": BRINGS,
            "encoder.0.mlp": MAKES,
            "decoder.0.cross.0": "brings the column sum",
            "decoder.0.cross.1": "brings the carry",
            "decoder.0.mlp": WRITES,
        },
    ),
    Circuit(
        "trained-encoder-carry",
        "trained so that a head of the second encoder layer brings the carry, and one cross head reads all",
        {"carry": "encoder.1.self.0"},
        {
            "encoder.0.self.0": BRINGS,
            "encoder.0.mlp": "makes what the carry is found by",
            "encoder.1.self.0": "brings the carry",
            "decoder.0.cross.0": "brings sum and carry of its column",
            "decoder.0.mlp": WRITES,
        },
        layers=(2, 1),
    ),
)
SEEDS = (0, 1, 2, 3)


def construction_of(circuit: Circuit, seed: int) -> Construction:
    return Construction(
        name=f"{circuit.name}-{seed}",
        says=f"{circuit.says}; seed {seed}",
        task="addition",
        data=DATA,
        build=partial(trained_model, circuit, seed),
        nodes=tuple(circuit.jobs),
        edges=None,
        jobs=circuit.jobs,
        variables=circuit.variables,
    )


TRAINED = tuple(construction_of(circuit, seed) for circuit in CIRCUITS for seed in SEEDS)
