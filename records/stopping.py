"""How a process of headcount ends before its time: Ctrl-C, a polite kill, the end of the process that started it.

SIGTERM counts as Ctrl-C. A process that another one started reads its standard input, which the other one holds open:
when that ends, however it came about, whoever held it is gone, and the process interrupts itself.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from queue import SimpleQueue
from typing import IO, Any


LIFELINE = "HEADCOUNT_ENDS_WITH_STDIN"  # set for a process that shall end with the one that started it
SECONDS_TO_END = 5.0  # so long may a checkpoint take once nobody waits for it
INTERRUPTED = 130  # the exit code after Ctrl-C and SIGTERM alike

_has_parent = False
_interrupted = False


def has_parent() -> bool:
    """Whether this process is a part of the work of another one."""
    return _has_parent


@contextmanager
def stoppable() -> Iterator[None]:
    """SIGTERM counts as Ctrl-C inside of it. Outside of the main thread signals cannot be caught: nothing changes."""
    global _interrupted
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _interrupted = False
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    previous = signal.signal(signal.SIGTERM, _as_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if previous is None else previous)
        if signal.getsignal(signal.SIGINT) is _interrupt:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def was_interrupted() -> bool:
    """Whether a KeyboardInterrupt was raised within `stoppable`: compiled libraries make other errors of it."""
    return _interrupted


def _interrupt(number: int, frame: Any) -> None:
    global _interrupted
    _interrupted = True
    raise KeyboardInterrupt


def _as_interrupt(number: int, frame: Any) -> None:
    """Does what Ctrl-C would do now, also where it is ignored, as in a shell's background."""
    handler = signal.getsignal(signal.SIGINT)
    (handler if callable(handler) else _interrupt)(number, frame)


def start_child(
    command: Sequence[str], environment: Mapping[str, str], stdout: IO | int, stderr: IO | int
) -> subprocess.Popen:
    """A process that ends with this one, in a session of its own: Ctrl-C in a terminal reaches this process alone.

    It has to call `end_with_parent`, or read `ParentLine`.
    """
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=stderr,
        text=True,
        env={**environment, LIFELINE: "1"},
        start_new_session=True,
    )


def stop_children(children: Sequence[subprocess.Popen], seconds: float) -> None:
    """Interrupts all of them, waits so long altogether, and kills what is left."""
    for child in children:
        if child.poll() is None:
            child.send_signal(signal.SIGINT)
    deadline = time.monotonic() + seconds
    for child in children:
        try:
            child.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def end_with_parent() -> None:
    """In a process of `start_child`: when the process that started this one is gone, this one ends, too.

    It is interrupted, so that it can write what it has; if it has not ended some seconds later, it is ended. Of any
    other process nothing changes.
    """
    if not _take_lifeline():
        return

    def watch() -> None:
        while os.read(0, 1024):
            pass
        _end()

    threading.Thread(target=watch, daemon=True).start()


class ParentLine:
    """Orders of the process that started this one, a line each, from standard input; answers go to standard output.

    If the other process goes while an order is being worked on, this one is interrupted.
    """

    def __init__(self) -> None:
        _take_lifeline()
        self.lines: SimpleQueue[str | None] = SimpleQueue()
        self.at_work, self.closed = True, False  # what is done before the first order is work, too
        self.answers, sys.stdout = sys.stdout, sys.stderr  # whatever a library prints is no answer
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        rest = b""
        while piece := os.read(0, 1 << 16):
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                self.lines.put(line.decode())
        self.closed = True
        self.lines.put(None)
        if self.at_work:
            _end()

    def __iter__(self) -> Iterator[str]:
        self.at_work = False
        while (line := self.lines.get()) is not None:
            self.at_work = True
            if self.closed:
                return
            yield line

    def answer(self, text: str) -> None:
        self.at_work = False
        print(text, file=self.answers, flush=True)


def _take_lifeline() -> bool:
    """Whether there is one; processes that this one starts do not inherit it."""
    global _has_parent
    found = os.environ.pop(LIFELINE, None) is not None
    if found:
        _has_parent = True
        signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it may have been ignored
    return found


def _end() -> None:
    main = threading.main_thread().ident
    assert main is not None
    signal.pthread_kill(main, signal.SIGINT)  # to that thread: it may be waiting for something
    time.sleep(SECONDS_TO_END)
    os._exit(INTERRUPTED)
