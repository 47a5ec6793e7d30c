"""Which heads a saved model has lost, read from the notes among its weights."""

from pathlib import Path

from ...records.files import read_json
from .pruned_model import Note, is_note, notes_in


WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"


def names_in(note: Note) -> list[str]:
    """The names of the heads that a note says are gone.

    >>> names_in({"layer": "encoder.0.self", "removed": [1, 3]})
    ['encoder.0.self.1', 'encoder.0.self.3']
    """
    return [f"{note['layer']}.{number}" for number in note["removed"]]


def saved_without(folder: Path) -> list[str]:
    """The names of the heads that a saved model has lost; of one that was never pruned, none."""
    files = {folder / WEIGHTS}
    if (folder / INDEX).is_file():
        places = read_json(folder / INDEX)["weight_map"]
        files = {folder / file for key, file in places.items() if is_note(key)}
    notes = notes_in(None, [str(path) for path in sorted(files) if path.is_file()])
    return [head for note in notes.values() for head in names_in(note)]
