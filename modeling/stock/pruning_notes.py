"""Which heads a stock model has lost, noted among its weights.

A pruned attention layer has a buffer with its name and the numbers of the heads that are gone, as text. It is part of
the state dict, so that `save_pretrained`, transformers' Trainer, accelerate and `torch.save(model.state_dict())` all
save it, of this model and of any other that holds it as a part.
"""

import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from ...records.files import read_json


NOTE = "removed_heads"
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"


def write_note(module: nn.Module, layer: str, removed: list[int]) -> None:
    """Of an attention layer."""
    text = json.dumps([layer, *removed]).encode()
    device = next(module.parameters()).device
    module.register_buffer(NOTE, torch.tensor(list(text), dtype=torch.uint8, device=device))


def read_note(note: Tensor) -> list[str]:
    """The names of the heads that it says are gone.

    >>> module = torch.nn.Linear(2, 2)
    >>> write_note(module, "encoder.0.self", [1, 3])
    >>> read_note(module.removed_heads)
    ['encoder.0.self.1', 'encoder.0.self.3']
    """
    layer, *numbers = json.loads(bytes(note.tolist()).decode())
    return [f"{layer}.{int(number)}" for number in numbers]


def saved_without(folder: Path) -> list[str]:
    """The names of the heads that a saved model has lost; of one that was never pruned, none."""
    files = {folder / WEIGHTS}
    if (folder / INDEX).is_file():
        places = read_json(folder / INDEX)["weight_map"]
        files = {folder / file for key, file in places.items() if _is_note(key)}
    found: list[str] = []
    for path in sorted(files):
        if not path.is_file():
            continue
        try:
            with safe_open(path, "pt") as weights:
                notes = [weights.get_tensor(key) for key in weights.keys() if _is_note(key)]  # noqa: SIM118
            found += [head for note in notes for head in read_note(note)]
        except (SafetensorError, ValueError) as error:
            raise ValueError(
                f"{path} cannot be read ({error}); expected weights as transformers saves them."
            ) from None
    return found


def _is_note(key: str) -> bool:
    return key.rpartition(".")[2] == NOTE
