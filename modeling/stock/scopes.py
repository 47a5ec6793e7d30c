"""Where a `with` block runs, if it is that of a generator.

A generator shares the context variables of whoever runs it. What it sets inside a `with` block would hold outside of
it too, from one `yield` to the next:

    def predictions():
        with mask_heads(model, heads):
            for batch in batches:
                yield model(**batch)  # masked

    for found in predictions():
        model(**batch)  # not masked, though the block has not been left

So a block of a generator holds only while that generator runs. Generators that make a context manager
(`contextlib.contextmanager`) are left out: there the block of the caller counts.
"""

import contextlib
import inspect
import sys
from types import FrameType


GENERATORS = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR


class Scope:
    """The frame of a generator, and of who ran it when the block was entered."""

    def __init__(self, generator: FrameType):
        self.generator, self.runner = generator, generator.f_back
        self.name = generator.f_code.co_qualname

    def holds(self) -> bool:
        """Whether the generator is running now.

        If not, its runner must be, for then it is plain that the model is run between two steps. If neither is, as in
        a fixture of pytest, nobody can tell what is meant, and that is an error.
        """
        frame: FrameType | None = sys._getframe()
        between = False
        while frame is not None:
            if frame is self.generator:
                return True
            between = between or frame is self.runner
            frame = frame.f_back
        if between:
            return False
        raise RuntimeError(
            f"mask_heads was entered in the generator {self.name}, which is suspended, so it is not clear whether its "
            "mask is meant to hold here; expected it to be entered where the model is run, or in a function with "
            "@contextlib.contextmanager."
        )


def find_scope() -> Scope | None:
    """The generator whose block is being entered, if it is one."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _belongs_to_a_context_manager(frame):
        frame = frame.f_back
    return Scope(frame) if frame is not None and frame.f_code.co_flags & GENERATORS else None


def _belongs_to_a_context_manager(frame: FrameType) -> bool:
    """Frames of contextlib, and of generators that it runs: those of gates.py are among them."""
    ran_by = frame.f_back
    if frame.f_code.co_filename == contextlib.__file__:
        return True
    is_generator = bool(frame.f_code.co_flags & GENERATORS)
    return is_generator and ran_by is not None and ran_by.f_code.co_filename == contextlib.__file__
