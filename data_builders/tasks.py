"""The contract of a task: everything that is particular to one is asked of its `Task`, and nobody else knows its name.

A task makes problems and solves them exactly, writes them as tokens, cuts them into splits, and says what its tokens
stand for. A small one is a single file: see reverse.py. `TASKS` is in registry.py.

Shapes: N problems, L tokens of a sequence, T labelled places.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

from ..configuration.rules import is_whole_number, nearest
from ..records.row_kinds import is_flag, is_real, is_text
from .built_in import BuiltIn, built_in
from .card_examples import Example, PublishedModel, generic_examples
from .expectations import Expectation
from .vocabulary import Vocabulary, Written, assemble, assemble_prompts


if TYPE_CHECKING:
    from .corpus import Corpus

# What answers are -> the architectures that can give them, the usual one first.
ARCHITECTURES = {
    "sequence": ("encoder-decoder", "decoder"),  # an answer of several tokens to a question
    "continuation": ("decoder",),  # the text itself goes on
    "label": ("encoder",),  # one class for the whole input
}
# Kind of task -> the share right at training lengths from which on a model counts as having learned it.
LEARNED = {"label": 0.95, "sequence": 0.99, "continuation": 0.99}
NOT_A_PLACE = -1
MOST_PAIRED = 2_000  # problems of the test split of which pairs are made


@dataclass(frozen=True)
class Problems:
    """N problems as arrays of N entries each; a task adds the fields that it needs."""

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))

    def __getitem__(self, rows: Any) -> Self:
        return type(self)(*(getattr(self, each.name)[rows] for each in fields(self)))

    @classmethod
    def concatenate(cls, parts: list[Self]) -> Self:
        """One after the other; narrower arrays are filled up with zeros at the end of their rows."""
        parts = [part for part in parts if len(part)] or parts[:1]
        if len(parts) == 1:
            return parts[0]
        return cls(*(_joined([getattr(part, each.name) for part in parts]) for each in fields(cls)))


P = TypeVar("P", bound=Problems)


def _joined(arrays: list[NDArray]) -> NDArray:
    if arrays[0].ndim > 1:
        width = max(array.shape[1] for array in arrays)
        arrays = [np.pad(array, ((0, 0), (0, width - array.shape[1]))) for array in arrays]
    return np.concatenate(arrays)


@dataclass(frozen=True)
class Roles:
    """What tokens stand for: a role for each (index into `names`) and, where roles are numbered, its index (else -1).

    >>> roles = Roles(("other", "answer"), role=np.array([[0, 1, 1]]), index=np.array([[-1, 1, 0]]))
    >>> roles.where("answer", 0)  # (N, L): the units of the answer
    array([[False, False,  True]])
    """

    names: tuple[str, ...]
    role: NDArray[np.int64]  # (N, L)
    index: NDArray[np.int64]  # (N, L)

    def where(self, name: str, index: int | None = None) -> NDArray[np.bool_]:
        if name not in self.names:
            raise ValueError(f"there is no role {name!r}; expected one of {', '.join(self.names)}.")
        found = self.role == self.names.index(name)
        return found if index is None else found & (self.index == index)


@dataclass(frozen=True)
class Relation:
    """Keys that belong to a query: those of some roles; `offset`: only where their index is the query's plus so much.

    A query of a decoder stands for the token that is predicted there, and has that token's index.
    """

    says: str
    keys: tuple[str, ...]
    offset: int | None = None
    reads: str | None = None  # what a figure of what heads read calls these keys; None: it leaves them out


@dataclass(frozen=True)
class Variable:
    """An intermediate quantity of the task's algorithm, such as the carry out of a column."""

    says: str
    place: str  # what its index is called: "column"
    near: Mapping[str, int] = field(default_factory=dict)  # names of places nearby, by their distance: {"left": 1}
    shows_at: str = ""  # the one of them where the answer shows the variable: "left"
    pair_kinds: Mapping[str, str] = field(
        default_factory=dict
    )  # kinds of `Task.pairs` -> what they are; "minimal" first
    errors: "ErrorSignature | None" = None
    # Of problems: its value at every place, (N, places); NOT_A_PLACE where a problem has no such place.
    values: Callable[[Any], NDArray[np.int64]] | None = None
    # Of problems, places (N,) and values (N,): what `solve` would give if it had these values there.
    answers: Callable[[Any, NDArray[np.int64], NDArray[np.int64]], NDArray] | None = None
    # Of the same: (N,), whether any problem has this value there with all other variables as they are; None: always.
    possible: Callable[[Any, NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]] | None = None


@dataclass(frozen=True)
class ErrorSignature:
    """How an answer is wrong if a variable is: places from `first_place` on are off by one of `offsets`."""

    says: str
    offsets: tuple[int, ...]
    modulus: int
    first_place: int


@dataclass(frozen=True)
class Pairs(Generic[P]):
    """Counterfactual pairs: a base, and a source from which a variable at place `index` (N,) is taken.

    `answers`: what `solve` would give for the base if this variable had the source's value, and nothing else changed.
    """

    base: P
    source: P
    index: NDArray[np.int64]
    answers: NDArray

    def __len__(self) -> int:
        return len(self.base)

    def __getitem__(self, rows: Any) -> "Pairs[P]":
        return Pairs(self.base[rows], self.source[rows], self.index[rows], self.answers[rows])


@dataclass(frozen=True)
class Contrast(Generic[P]):
    """Twins for the question why length hurts: the same input with and without the decisive pair at `place` (N,)."""

    plain: P
    changed: P
    place: NDArray[np.int64]


@dataclass(frozen=True)
class SplitTest:
    """One test of a model: a split, and for a class of problems at one length, which."""

    config: str
    split: str
    kind: str | None = None
    length: int | None = None


@dataclass(frozen=True)
class DataCard:
    """What the dataset card says; `columns`: config -> column -> meaning, "" for the configs without an entry."""

    summary: str
    method: str
    limits: str
    columns: dict[str, dict[str, str]]
    purpose: Callable[[str, str], str]  # of a config and split
    balance: str  # the tally that is shown as a table
    balance_text: str
    draw: Callable[[Any, Any], None]  # of the tallies of all splits and a path: the figure
    figure: str  # name of its file
    figure_text: str
    category: str = "text-generation"
    balance_order: Callable[[Any], Any] = str


@dataclass(frozen=True)
class Texts:
    """What is said about a task, in one place."""

    title: str  # "Addition, digit by digit"
    short_title: str  # heading in a report: "Addition"
    description: str  # one line of `headcount ls tasks`
    data: DataCard
    summary: Callable[[Mapping], str]  # of the data options: what a model of this task does
    reads: Callable[[Mapping], str]  # of the data options: what it can read, and what not
    length: str = "length"  # what a length counts: "digits"
    problems: str = "problems"  # what examples are called: "sequences"
    kinds: str = "problems"  # what classes are classes of: "unsorted rows are"
    kind_noun: str = "problems"  # what an example of a class is called: "negatives"
    place: str = "place of the answer"  # what `Task.place_name` names: "digit of the answer"
    difference_note: str = ""  # what differences of position ids stand for while an answer is written
    facts: Mapping[str, str] = field(default_factory=dict)  # fact -> how it reads: "longest carry chain"
    main_facts: tuple[str, ...] | None = None  # those that card and findings tell; None: all of them
    splits: Mapping[str, str] = field(default_factory=dict)  # split -> what is in it
    kinds_text: str = ""  # explains the classes beside a table
    answer_note: Callable[[Mapping], str] = lambda options: ""  # how answers are written, if not as usual
    pipeline_tag: str = "text-generation"


@dataclass(frozen=True)
class NoOptions:
    """Of a task whose stream of fresh problems has nothing to choose."""


@dataclass(frozen=True)
class LengthStudy:
    """What `headcount extrapolate` takes if nothing is said: a recipe, and lengths to test."""

    recipe: str
    lengths: tuple[int, ...]
    quick_lengths: tuple[int, ...]
    quick_settings: tuple[str, ...] = ()
    quick_variants: tuple[str, ...] = ()  # of those that the recipe names, or encodings


@dataclass(frozen=True)
class Study:
    """What `headcount study` trains and tests: recipes (the first is taken apart), and options of `extrapolate`."""

    recipes: tuple[str, ...]
    quick_recipe: str
    quick_settings: tuple[str, ...] = ()  # KEY=VALUE
    length_options: tuple[str, ...] = ()
    keep: int = 6  # heads that pruning leaves
    quick_keep: int = 6


@dataclass(frozen=True)
class Origin:
    """What makes a task that does not come with headcount; every folder that is made with it keeps a copy."""

    path: str  # as the command line named it
    kept_as: str  # the name of the copy
    content: bytes

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


class Task(Generic[P]):
    """Subclass it, fill in the names below, override what differs, and name an instance in `TASKS`, or `TASK`."""

    name: ClassVar[str]
    kind: ClassVar[str]  # a key of ARCHITECTURES
    options: ClassVar[type]  # data class with every choice, checked on construction; has `seed`
    stream: ClassVar[type] = NoOptions  # data class of the choices for problems that are made while training
    vocabulary: ClassVar[Vocabulary]
    texts: ClassVar[Texts]
    classes: ClassVar[Mapping[str, str]] = {}  # named classes of problems, tested by themselves at any length
    hardest: ClassVar[tuple[str, ...]] = ()  # classes, the one without shortcuts first
    relations: ClassVar[Mapping[str, Relation]] = {}
    variables: ClassVar[Mapping[str, Variable]] = {}
    labels: ClassVar[tuple[str, ...]] = ()  # names of the classes of a `label` task
    role_letters: ClassVar[Mapping[str, str]] = {}  # role -> letter that stands for it on the axis of a mean map
    format_options: ClassVar[tuple[str, ...]] = ()  # options that say how problems are written
    place_zero: ClassVar[str] = "first"  # which end of a plain answer is its place 0: "first" or "last"
    last_written: ClassVar[str] = "last token"  # what the token just written is called, where heads are shown by it
    length_study: ClassVar[LengthStudy | None] = None
    study: ClassVar[Study | None] = None
    expectation: ClassVar[Expectation | None] = None  # what theory and others say about lengths
    origin: Origin | None = None  # of a task of your own: see registry.py
    recipe: Mapping[str, Any] | None = None  # of the same: the `RECIPE` of its file

    @property
    def reference(self) -> str:
        """How the command line names it: by its name, or by its file."""
        return self.name if self.origin is None else self.origin.path

    # Problems and their exact answers

    def problems(
        self, options: Any, rng: np.random.Generator, n: int, length: int | None = None, kind: str | None = None
    ) -> P:
        """`n` problems; of a length that may be any, and of one of the `classes`, where they are given."""
        raise NotImplementedError

    def solve(self, problems: P) -> NDArray:
        """The exact answers, (N, ...)."""
        raise NotImplementedError

    def facts(self, problems: P) -> dict[str, NDArray]:
        """Arrays (N,) by which results are broken down."""
        return {}

    def test_problems(self, options: Any, kind: str, length: int, n: int) -> P:
        """Problems of a class and length to test on, the same for every model: by the seed of the options alone."""
        entropy = np.random.SeedSequence([options.seed, length, *kind.encode()])
        return self.problems(options, np.random.Generator(np.random.PCG64(entropy)), n, length, kind)

    def fresh_problems(
        self, rng: np.random.Generator, n: int, corpus: "Corpus[P]", stream: Any, step: int, steps: int
    ) -> P:
        """A batch for one training step, without those that the corpus holds out; of one length, so as not to pad."""
        first, last = self.trained_lengths(corpus.options)
        length = int(rng.integers(first, last + 1))
        found: list[P] = []
        for _ in range(200):
            drawn = self.problems(corpus.options, rng, n, length)
            found.append(drawn[~corpus.is_held_out(drawn)])
            if sum(map(len, found)) >= n:
                return type(drawn).concatenate(found)[:n]
        raise ValueError(
            f"nearly all {self.texts.problems} of length {length} are held out; expected a larger data.min_length, or "
            "fewer rows in data.test and data.validation."
        )

    def contrast(self, options: Any, length: int, n: int) -> Contrast[P] | None:
        """Twins of one length that differ in what decides, for the study of why length hurts; None if it has none."""
        return None

    def decisive_place(self, problems: P) -> NDArray[np.int64] | None:
        """(N,): where the one pair of neighbours that decides begins, -1 where there is none; None: no such task."""
        return None

    # Splits

    def splits(self, options: Any) -> "Corpus[P]":
        """The disjoint splits of these options."""
        from .corpus import Corpus

        return Corpus(self, options)

    def pairs(self, variable: str, corpus: "Corpus[P]", kind: str = "minimal") -> Pairs[P]:
        """Pairs of problems that training has not seen, of one of the variable's `pair_kinds`."""
        from .counterfactuals import ANY_PAIRS, draw_counterfactuals

        found = self.variables.get(variable)
        if found is None or found.values is None or kind not in ANY_PAIRS:
            raise ValueError(
                f"the task {self.name} has no {kind} pairs for {variable!r}; expected one of its variables "
                f"({', '.join(self.variables) or 'none'}) and a kind of its pairs."
            )
        return draw_counterfactuals(
            self, variable, corpus.sample("test", MOST_PAIRED), corpus.rng(f"pairs/{variable}/{kind}"), kind
        )

    def trained_lengths(self, options: Any) -> tuple[int, int]:
        """The shortest and the longest length in training."""
        return options.min_length, options.max_length

    # Tokens

    def write(self, problems: P, options: Any) -> tuple[Written, Written | NDArray]:
        """Token ids of the questions and of the answers, without special tokens; of a `label` task, labels (N,)."""
        raise NotImplementedError

    def write_answers(self, problems: P, answers: NDArray, options: Any) -> Written | NDArray:
        """As the answers of `write`, for others than the right ones; of tasks with pairs."""
        raise NotImplementedError

    def offsets(self, written: NDArray, right: NDArray) -> NDArray:
        """(wrong - right) for each token, modulo that of `Variable.errors`; of tasks whose variables have errors."""
        raise NotImplementedError

    def encode(
        self, problems: P, style: str | None = None, options: Any = None, answers: NDArray | None = None
    ) -> dict[str, NDArray]:
        """`input_ids`, `labels` and, if any row is padded, `attention_mask`; padded on the right, labels with -100.

        `style` is an architecture. `encoder-decoder`: `374+814<eos>` and `1188<eos>`; `decoder`:
        `<bos>374+814=1188<eos>`, whose labels start after the `=`; `encoder`: the values, and one label.
        `answers` take the place of the right ones.
        """
        style = style or ARCHITECTURES[self.kind][0]
        if style not in ARCHITECTURES[self.kind]:
            raise ValueError(
                f"style={style!r} is not allowed for {self.name}; expected {' or '.join(ARCHITECTURES[self.kind])}."
            )
        options = self.options() if options is None else options
        questions, right = self.write(problems, options)
        written = right if answers is None else self.write_answers(problems, answers, options)
        return assemble(questions, written, style, self.vocabulary)

    def prompts(self, problems: P, options: Any = None) -> dict[str, NDArray]:
        """What a decoder is asked with, `<bos>374+814=`, padded on the left."""
        options = self.options() if options is None else options
        return assemble_prompts(self.write(problems, options)[0], self.vocabulary)

    def roles(self, tokens: NDArray, side: str = "input", options: Any = None) -> Roles:
        """What each token (N, L) stands for; `side`: "input" for `input_ids`, "answer" for labels."""
        is_token = np.asarray(tokens) >= self.vocabulary.first
        order = np.where(is_token, np.cumsum(is_token, -1) - 1, NOT_A_PLACE)
        return Roles(("other", side), is_token.astype(np.int64), order)

    def residues(self, options: Any) -> NDArray[np.int64] | None:
        """(p,): the tokens of 0..p-1, where they stand for numbers modulo p; None: no such task."""
        return None

    # Models

    def config(self, options: Any, model: Mapping[str, Any]) -> dict[str, Any]:
        """Fields of the model's config that follow from the task; `model` are those that the recipe chooses."""
        if self.kind == "label":
            names = dict(enumerate(self.labels))
            return {"id2label": names, "label2id": {name: number for number, name in names.items()}}
        return {}

    def built_in(self, config: Mapping[str, Any]) -> list[BuiltIn]:
        """What a model of this task with this config has been given by hand."""
        return built_in(config)

    def tokens_at(self, length: int, style: str) -> int:
        """Tokens of the longest sequence that one stack reads, for problems of this length."""
        return length + 1

    def longest_number(self, length: int) -> int:
        """Digits of the longest number in a problem of this length; 0 where there are none."""
        return 0

    # Measures

    @property
    def measure(self) -> dict[str, Any]:
        """How rows name the share of examples that a model gets right."""
        if self.kind == "label":
            return {"metric": "accuracy", "decoding": None}
        return {"metric": "exact_match", "decoding": "free-running"}

    def answer_order(self, options: Any) -> str:
        """ "plain", or "reversed" where answers are written from the other end."""
        return "plain"

    def number_of_answers(self, options: Any) -> int | None:
        """How many different answers there are, for the chance of a blind guess; None where nobody counts them."""
        return None

    def most_frequent_answer(self, options: Any) -> float | None:
        """Share of the test problems that have the most frequent answer; None where it is not known."""
        return None

    # Words for cards and reports

    def data_command(self, options: Any) -> str:
        """The command line that makes the data of these options."""
        from .card import command_of

        return command_of(self.reference, options)

    def place_name(self, place: int) -> str:
        """How a place of the answer is called in a table."""
        return str(place)

    def fact_name(self, fact: str, value: Any) -> str:
        """How a value of a fact is called in a table."""
        return str(value)

    def card_examples(self, model: PublishedModel) -> dict[str, Example]:
        """Programs for the model card: `use`, `heads` if the model has any, and `limit`."""
        return generic_examples(self, model)


def options_of(task: Task, values: Mapping[str, Any]) -> Any:
    """The task's options; a name that it does not have, or a value that does not fit, is a ValueError."""
    known = [each.name for each in fields(task.options)]
    kinds = get_type_hints(task.options)
    for name, value in values.items():
        if name not in known:
            raise ValueError(f"{name!r} is not an option of {task.name}.{nearest(name, known)}")
        fits, expected = PLAIN_KINDS.get(kinds[name], (None, ""))
        if fits is not None and not fits(value):
            raise ValueError(f"{name}={value!r} is not allowed; expected {expected}.")
    return task.options(**values)


# Type of an option -> whether a value is one, and what is expected: what else it must fulfil is the task's to check.
PLAIN_KINDS: dict[Any, tuple[Callable[[Any], bool], str]] = {
    int: (is_whole_number, "a whole number"),
    float: (is_real, "a number"),
    str: (is_text, "a text"),
    bool: (is_flag, "true or false"),
}


def plain_options(options: Any) -> dict[str, Any]:
    """Options as JSON has them: lists where there are tuples."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(options).items()}
