"""A time limit for what waits for somebody else, such as a server that says nothing or sends a byte a minute."""

import os
import sys
import threading
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar


T = TypeVar("T")
_given_up: list[threading.Thread] = []


def within(seconds: float, call: Callable[[], T], give_up: Callable[[], Any] = lambda: None) -> T:
    """What `call` returns or raises; a TimeoutError if that takes longer.

    It runs in a thread, which cannot be stopped from outside; `give_up` should take away what it waits for.

    >>> within(60, lambda: 1 + 1)
    2
    """
    result: dict[str, T] = {}
    failure: list[BaseException] = []

    def work() -> None:
        try:
            result["value"] = call()
        except BaseException as error:  # every kind: it is raised again where the caller waits
            failure.append(error)

    before = set(threading.enumerate())
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        thread.join(seconds)
    except BaseException:
        _given_up.extend(set(threading.enumerate()) - before)
        give_up()
        raise
    if thread.is_alive():
        _given_up.extend(set(threading.enumerate()) - before)  # with its own helpers
        give_up()
        raise TimeoutError(f"no answer within {seconds:g} seconds")
    if failure:
        raise failure[0]
    return result["value"]


def is_given_up() -> bool:
    """Whether nobody waits any more for what this thread does."""
    return threading.current_thread() in _given_up


def leave(code: int) -> NoReturn:
    """Ends the process; at once if a call was given up, for whose helpers Python would wait at its end."""
    if _given_up:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
