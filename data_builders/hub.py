"""Asking the Hub: every question has a time limit, and every failure is a few words; a token is in none of them."""

import logging
import os
from collections.abc import Callable
from typing import Any, TypeVar

from ..records.deadline import is_given_up, within


T = TypeVar("T")
logger = logging.getLogger(__name__)

QUESTION = 60.0  # seconds for a name, a list, a small file
TRANSFER = 7200.0  # for a model or a data set, however large the Hub says it is
SLOWEST = 50_000  # bytes a second: what is slower is given up
SILENCE = 60.0  # without a byte, after which a connection is given up
LIMIT = "HEADCOUNT_HUB_SECONDS"  # environment variable: the limit for everything


def ask_hub(call: Callable[[], T], seconds: float = QUESTION) -> T:
    """What the call returns or raises, in time: a Hub that is silent, or sends a byte now and then, is left alone.

    Args:
        call: asks huggingface_hub, or a library that does.
        seconds: the limit; the environment variable HEADCOUNT_HUB_SECONDS takes its place.
    """
    from huggingface_hub import get_session, set_client_factory
    from huggingface_hub.utils._http import default_client_factory

    limit = limit_of(seconds)

    def patient() -> Any:
        client = default_client_factory()
        client.timeout = min(SILENCE, limit)
        client.event_hooks = {**client.event_hooks, "request": [*client.event_hooks["request"], check_wanted]}
        return client

    def check_wanted(request: Any) -> None:
        """Ends an earlier call that was given up and tries again: its failure would close the client of this one."""
        if is_given_up():
            raise RuntimeError("nobody waits for this answer")

    def no_more() -> Any:
        raise ConnectionError("the time for the Hub is over")

    # The client tries again what has failed, for ever if need be; without a client that comes to an end.
    set_client_factory(patient)
    get_session()
    return within(limit, call, give_up=lambda: set_client_factory(no_more))


def fetch(call: Callable[[], T], repo_id: str, repo_type: str = "model") -> T:
    """As `ask_hub`, for a download from a repository: the limit follows from its size.

    If the Hub does not say the size, `call` has the time of a question: what is in the cache already needs no more.
    """
    from huggingface_hub import HfApi

    try:
        info = ask_hub(lambda: HfApi().repo_info(repo_id, repo_type=repo_type, files_metadata=True))
        size = sum(int(each.size or 0) for each in getattr(info, "siblings", None) or ())
    except BadLimit:
        raise
    except Exception as error:  # whatever it is, `call` meets it too, and may do without the Hub
        logger.debug("the Hub does not say how large %s is: %r", repo_id, error)
        size = 0
    return ask_hub(call, transfer_limit(size))


def transfer_limit(size: int) -> float:
    return min(TRANSFER, QUESTION + size / SLOWEST)


class BadLimit(ValueError):
    """The user's own time limit is no number."""


def limit_of(seconds: float) -> float:
    text = os.environ.get(LIMIT, "")
    if not text:
        return seconds
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < 1e6:
        raise BadLimit(f"{LIMIT}={text!r} is not allowed; expected a number of seconds.")
    return found


def reason(error: BaseException) -> str:
    """Why the Hub did not do it, in words; the cause of the cause, if the client has wrapped it."""
    from huggingface_hub import constants, get_token
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

    chain = [error]
    while (inner := chain[-1].__cause__ or chain[-1].__context__) is not None and inner not in chain:
        chain.append(inner)
    for link in chain:
        if isinstance(link, BadLimit):
            return str(link).rstrip(".")
        if isinstance(link, HFValidationError):
            return "it is neither a folder here nor a name that the Hub allows"
        if isinstance(link, OfflineModeIsEnabled):
            return "HF_HUB_OFFLINE is set, so that the Hub must not be asked"
        if isinstance(link, HfHubHTTPError) and link.response is not None:
            status = link.response.status_code
            if status == 401:
                return "the Hub does not accept the token; log in again with `hf auth login`"
            if status == 403:
                return "the token may not write there; expected a repository of yours and a token with write access"
            if status == 404:
                return "the Hub does not know it, or hides it from this token"
            said = link.server_message or f"no explanation ({type(link).__name__})"
            return clean(f"the Hub answered {status}: {said}", get_token())
    names = [type(link).__name__ for link in chain]
    if any(name == "TimeoutError" or name.endswith("Timeout") for name in names):
        return f"{constants.ENDPOINT} did not answer in time; try again later, or with more seconds in {LIMIT}"
    if any("connect" in name.lower() for name in names):
        return f"{constants.ENDPOINT} cannot be reached (is there a network?)"
    if isinstance(chain[-1], OSError):
        return clean(f"{type(chain[-1]).__name__}: {chain[-1]}", get_token())
    # The client trusts the Hub and stumbles over whatever is missing in its answer.
    return f"{constants.ENDPOINT} gave an answer that is not one of a Hub"


def clean(text: str, token: str | None) -> str:
    """One line, without the token, whoever put it there."""
    line = " ".join(text.split()).rstrip(".")
    return line.replace(token, "...") if token else line
