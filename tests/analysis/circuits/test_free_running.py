"""Free-running under an intervention: the tokens that a loop of single steps writes, one after the other."""

import numpy as np
import pytest
import torch
from small_models import make_model

from headcount.analysis.circuits.free_running import free_running
from headcount.analysis.interventions.intervention import Intervention
from headcount.analysis.interventions.measures import labels_in_place
from headcount.analysis.interventions.sites import sites
from headcount.analysis.interventions.sweep import sweep
from headcount.data_builders.examples import make_examples
from headcount.data_builders.registry import TASKS
from headcount.data_builders.vocabulary import IGNORED


def examples_of(architecture, n=24):
    task = TASKS["sortedness" if architecture == "encoder" else "addition"]
    options = task.options() if architecture == "encoder" else task.options(digits=3)
    length = 8 if architecture == "encoder" else 3
    problems = task.problems(options, np.random.default_rng(0), 2 * n, length=length)
    both = make_examples(task, options, problems, architecture)
    return both[:n], both[n:]


def token_by_token(model, base, source, intervention):
    """The oracle: one more token of the prefix at every pass, whatever the tokens after it are."""
    labels = labels_in_place(model, base.rows["labels"]).clone()
    rows = {name: values.clone() for name, values in base.rows.items()}
    for place in range(labels.shape[1]):
        found = sweep(model, rows, [intervention], sources=source.rows).by_labels()[0][1]
        chosen = torch.from_numpy(found[:, place])
        open_rows = labels[:, place] != IGNORED
        labels[open_rows, place] = chosen[open_rows]
        if model.config.architecture == "encoder-decoder":
            rows["labels"][open_rows, place] = chosen[open_rows]
        elif model.config.architecture == "decoder":
            rows["labels"][open_rows, place + 1] = chosen[open_rows]
            rows["input_ids"][open_rows, place + 1] = chosen[open_rows]
    return labels.numpy()


@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder", "encoder"])
def test_it_writes_what_a_loop_over_tokens_writes(architecture):
    base, source = examples_of(architecture)
    model = make_model(architecture, vocab_size=103 if architecture == "encoder" else 20)
    for site in [site for site in sites(model) if site.kind != "residual"][::3]:
        swapped = Intervention((site,), replacement="source")
        written = free_running(model, base.rows, swapped, source.rows)
        assert np.array_equal(written, token_by_token(model, base, source, swapped))


def test_what_depends_on_other_examples_is_refused():
    base, source = examples_of("encoder-decoder")
    model = make_model(vocab_size=20)
    with pytest.raises(ValueError, match="replacement='mean'; expected 'source'"):
        free_running(model, base.rows, Intervention((sites(model)[0],), replacement="mean"), source.rows)
