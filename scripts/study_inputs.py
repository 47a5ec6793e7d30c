"""What the verbs that study a trained run share: its examples, and the claim on an output folder."""

import hashlib
import json
from pathlib import Path


def load_study_data(model, recipe, corpus, rows: int):
    """Examples of the test data, the ones to show, and carry pairs where the corpus has them."""
    from headcount.analysis.head_study import StudyData, choose_shown

    examples = load_examples(recipe, corpus, "test", rows)
    pairs = None
    if recipe.task == "addition" and corpus.options.pairs:
        pairs = tuple(addition(recipe, problems[:rows]) for problems in corpus.pairs("test"))
    return StudyData(examples, choose_shown(model, examples), pairs)


def load_examples(recipe, corpus, split: str, rows: int):
    """At most `rows` examples of a split; of sortedness, every length that was trained on and the default mixture."""
    import numpy as np

    from headcount.analysis.examples import sortedness_examples
    from headcount.trainers.training_data import sortedness_rows

    if recipe.task == "addition":
        return addition(recipe, corpus.problems(split)[:rows])
    longest = corpus.options.max_length
    names = [name for name in corpus.splits()["default"] if name.startswith("test_") and int(name[5:]) <= longest]
    groups = [
        group
        for name in (names if split == "test" else ["validation"])
        for group in sortedness_rows(corpus, "default", name)
    ]
    examples = sortedness_examples(groups)
    return examples[np.linspace(0, len(examples) - 1, min(rows, len(examples))).astype(int)]


def addition(recipe, problems):
    from headcount.analysis.examples import addition_examples
    from headcount.data_builders.addition_options import AdditionOptions
    from headcount.trainers.training_data import encode_problems

    order = AdditionOptions(**recipe.data).answer_order
    return addition_examples(problems, encode_problems(problems, recipe), order)


class Claim:
    """An output folder belongs to one question: the same settings go on with it, others are refused.

    The settings, with a hash of the model's weights, are kept in NAME.json beside the results.
    """

    def __init__(self, folder: Path, name: str, settings: dict, overwrite: bool, weights: str | None = None):
        from headcount.trainers.run_folder import write_text

        if weights is None:
            path = Path(settings["model"]) / "model" / "model.safetensors"
            weights = hashlib.sha256(path.read_bytes()).hexdigest()
        known = {key: list(value) if isinstance(value, tuple) else value for key, value in settings.items()}
        known = {key: str(value) if isinstance(value, Path) else value for key, value in known.items()}
        known.pop("model")
        known["weights"] = weights
        path = folder / f"{name}.json"
        if path.exists() and not overwrite:
            before = json.loads(path.read_text())
            if before != known:
                changed = next(key for key in {**before, **known} if before.get(key) != known.get(key))
                raise ValueError(
                    f"{folder} holds results for {changed}={before.get(changed)!r}, now asked for "
                    f"{known.get(changed)!r}; expected the same, another --output, or --overwrite."
                )
        self.folder, self.overwrite = folder, overwrite
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_text(path, json.dumps(known, indent=1))
        except OSError as error:
            raise ValueError(f"{folder} cannot be written ({error.strerror}); expected a writable folder.") from error

    def finished(self, name: str) -> list[dict] | None:
        """Rows that are there already, or None."""
        path = self.folder / "results" / f"{name}.json"
        return None if self.overwrite or not path.exists() else json.loads(path.read_text())
