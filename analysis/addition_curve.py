"""Exact match by digits: a trained addition model on numbers far longer than those it was trained on.

For greedy decoding, an answer comes out exactly right if and only if every argmax is right with the right tokens
before it, <eos> included. So one parallel pass decides; `check_generation` lets `generate()` write token by token,
with its cache, and counts where the two disagree.

Shapes: N problems, T tokens of a whole problem.
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..data_builders.addition import AdditionCorpus
from ..data_builders.columns import Problems
from ..data_builders.long_problems import PROBLEM_CLASSES, long_problems
from ..data_builders.tokenization import EOS, IGNORED, PAD, encode_addition, encode_prompts
from .statistics import mean_with_interval, rate


WHOLE_ROWS_UP_TO = 200  # digits; longer problems cost their square, and are tested with half of the rows
GENERATED_UP_TO = 200  # digits up to which generate() writes every test problem; beyond, SAMPLE of each kind
SAMPLE = 8
TOKENS_PER_BATCH = 65_536
CELLS_PER_BATCH = 2**28  # of an attention map, where all rows share one position bias; otherwise a sixteenth


def measure_addition(
    model,
    corpus: AdditionCorpus,
    lengths: Iterable[int],
    rows: int = 200,
    kinds: Iterable[str] = tuple(PROBLEM_CLASSES),
    progress: Callable[[dict], None] | None = None,
) -> list[dict]:
    """Rows: exact match and smallest logit margin, by digits and class of problems.

    The training lengths are measured on the corpus' held-out splits (`test`, `hard`). A class of which nothing was
    right at one length is not measured at longer ones; the row says so.
    """
    model.eval()
    found, nothing_right = [], {}
    for split in corpus.splits()["default"]:
        if split in ("test", "hard"):
            right, margins = one_pass(model, corpus.problems(split), corpus.options)
            place = {"metric": "exact_match", "length": corpus.options.digits, "kind": split}
            found.append({**place, **rate(right.sum(), len(right)), "margin": mean_with_interval(margins)})
    for digits in sorted(set(lengths)):
        if digits <= corpus.options.digits:
            raise ValueError(
                f"a length of {digits} is within training, which is tested by held-out problems; expected more than "
                f"{corpus.options.digits} digits."
            )
        for kind in kinds:
            place = {"metric": "exact_match", "length": digits, "kind": kind}
            reason = no_room(model.config, digits)
            if kind in nothing_right:
                reason = f"nothing right at {nothing_right[kind]:,} digits"
            if reason:
                found.append({**place, "value": None, "n": 0, "interval": None, "not_measured": reason})
                continue
            problems = long_problems(kind, digits, rows_at(digits, rows), corpus.options.seed)
            right, margins = one_pass(model, problems, corpus.options)
            if not right.any():
                nothing_right[kind] = digits
            found.append({**place, **rate(right.sum(), len(right)), "margin": mean_with_interval(margins)})
        if progress is not None:
            progress(found[-1])
    return found


def rows_at(digits: int, rows: int) -> int:
    return rows if digits <= WHOLE_ROWS_UP_TO else max(1, rows // 2)


def no_room(config, digits: int) -> str | None:
    """Why a model cannot read numbers of so many digits at all; None if it can."""
    tokens = 3 * digits + 5  # <bos>, +, =, the digit more of the answer, <eos>
    coupled = config.position_scheme in ("coupled", "abacus")
    needed = digits + 4 if coupled else tokens
    ends = config.position_embedding_type == "learned" and config.position_overflow == "error"
    if (ends or config.position_scheme == "randomized") and needed > config.max_position_embeddings:
        return f"the model has {config.max_position_embeddings:,} positions"
    return None


def encoded(problems: Problems, options) -> dict[str, Tensor]:
    found = encode_addition(problems, "decoder", options.answer_order, options.zero_pad)
    return {name: torch.from_numpy(values) for name, values in found.items()}


def parts(rows: dict[str, Tensor]) -> Iterator[dict[str, Tensor]]:
    """The rows, as many at a time as fit into memory."""
    count, tokens = rows["input_ids"].shape
    cells = CELLS_PER_BATCH // (16 if "attention_mask" in rows else 1)
    size = max(1, min(TOKENS_PER_BATCH // tokens, cells // tokens**2))
    for start in range(0, count, size):
        yield {name: values[start : start + size] for name, values in rows.items()}


@torch.inference_mode()
def one_pass(model, problems: Problems, options) -> tuple[NDArray[np.bool_], NDArray[np.float32]]:
    """(N,) whether the whole answer is right, and (N,) its smallest margin: right token minus best wrong one.

    A problem is right if and only if its smallest margin is positive.
    """
    margins = []
    for part in parts(encoded(problems, options)):
        labels = part.pop("labels")[:, 1:].to(model.device)
        logits = model(**{name: values.to(model.device) for name, values in part.items()}).logits[:, :-1].float()
        asked = labels != IGNORED
        target = labels.masked_fill(~asked, 0)[..., None]
        own = logits.gather(-1, target)[..., 0]
        best_other = logits.scatter(-1, target, float("-inf")).amax(-1)
        margins.append((own - best_other).masked_fill(~asked, float("inf")).amin(-1).cpu())
    smallest = torch.cat(margins).numpy()
    return smallest > 0, smallest


@torch.inference_mode()
def generate_exactly(model, problems: Problems, options) -> NDArray[np.bool_]:
    """(N,) whether `generate()`, token by token with its cache, writes exactly the right answer and then stops."""
    labels = encoded(problems, options)["labels"]
    prompts = {name: torch.from_numpy(v) for name, v in encode_prompts(problems, options.zero_pad).items()}
    size = max(1, TOKENS_PER_BATCH // labels.shape[1])
    longest = int((labels != IGNORED).sum(-1).max())
    right = []
    for start in range(0, len(problems), size):
        batch = {name: values[start : start + size].to(model.device) for name, values in prompts.items()}
        written = model.generate(**batch, max_new_tokens=longest + 1, do_sample=False)
        written = written[:, batch["input_ids"].shape[1] :].cpu().tolist()
        for tokens, label in zip(written, labels[start : start + size].tolist(), strict=True):
            answer = [token for token in label if token != IGNORED]
            after = tokens[len(answer) :]
            right.append(tokens[: len(answer)] == answer and all(token in (PAD, EOS) for token in after))
    return np.array(right)


def check_generation(
    model,
    corpus: AdditionCorpus,
    lengths: Iterable[int],
    rows: int = 200,
    kinds: Iterable[str] = tuple(PROBLEM_CLASSES),
    progress: Callable[[dict], None] | None = None,
) -> list[dict]:
    """Rows: exact match by `generate()`, and on how many problems one pass says otherwise (`disagree`; 0 expected).

    Every test problem up to 200 digits, a sample of each kind beyond.
    """
    model.eval()
    found = []
    for digits in sorted(set(lengths)):
        for kind in kinds if no_room(model.config, digits) is None else ():
            count = rows_at(digits, rows) if digits <= GENERATED_UP_TO else min(SAMPLE, rows_at(digits, rows))
            problems = long_problems(kind, digits, rows_at(digits, rows), corpus.options.seed)[:count]
            generated = generate_exactly(model, problems, corpus.options)
            decided, _ = one_pass(model, problems, corpus.options)
            place = {"metric": "generated", "length": digits, "kind": kind}
            disagree = int((generated != decided).sum())
            found.append({**place, **rate(generated.sum(), len(generated)), "disagree": disagree})
            if progress is not None:
                progress(found[-1])
    return found
