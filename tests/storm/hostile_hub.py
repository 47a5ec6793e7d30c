"""A Hub that turns hostile after some requests: silent, dripping, nonsense, or gone. On the loopback only."""

import gzip
import os
import random
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

from hub_server import Handler, HubServer

from .judge import Tried, judge
from .launch import launch
from .material import Material


TOKEN = "hf_aVerySecretToken"
SECONDS = 150.0  # a Hub that says nothing: headcount must give up long before


def silent(handler: Handler) -> None:
    time.sleep(3600)


def dripping(handler: Handler) -> None:
    """An answer that comes, a byte a second, and never ends."""
    handler.connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n[")
    while True:
        time.sleep(1)
        handler.connection.sendall(b" ")


def dripping_headers(handler: Handler) -> None:
    handler.connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while True:
        time.sleep(1)
        handler.connection.sendall(b"x")


def cut_short(handler: Handler) -> None:
    handler.connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n{"a')
    hang_up(handler)


def hang_up(handler: Handler) -> None:
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)


def not_http(handler: Handler) -> None:
    handler.connection.sendall(b"\x16\x03\x01 SSH-2.0-nonsense\r\n\r\n")
    hang_up(handler)


def broken_gzip(handler: Handler) -> None:
    handler.send(gzip.compress(b"{}")[:-6] + b"junk", 200, {"Content-Encoding": "gzip"})


def redirected(handler: Handler) -> None:
    handler.send({}, 302, {"Location": handler.path})


def dies(handler: Handler) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def answer_with(content: object, status: int = 200, **headers: str) -> Callable[[Handler], None]:
    return lambda handler: handler.send(content, status, {k.replace("_", "-"): v for k, v in headers.items()})


HOSTILE: dict[str, Callable[[Handler], None]] = {
    "dies": dies,
    "hangs up": lambda handler: hang_up(handler),
    "a list": answer_with([]),
    "a list of lists": answer_with([[1], None]),
    "a text": answer_with(b'"yes"'),
    "null": answer_with(None),
    "other names": answer_with({"unexpected": [1, {"a": None}]}),
    "wrong kinds": answer_with({"sha": 1, "siblings": 3, "files": "x", "name": [], "commitUrl": None, "branches": 0}),
    "names that leave": answer_with({"sha": "a" * 40, "id": "a/b", "siblings": [{"rfilename": "../../victim"}]}),
    "a page": answer_with(b"<html><body>Sign in to the hotel network</body></html>", Content_Type="text/html"),
    "nothing": answer_with(b""),
    "random bytes": answer_with(bytes(range(256)) * 40),
    "deep": answer_with(b"[" * 100_000),
    "500": answer_with({"error": "the disk of the Hub is full"}, 500),
    "429": answer_with({"error": "slow down"}, 429, Retry_After="86400"),
    "204": answer_with(b"", 204),
    "404": answer_with(b"no", 404),
    "cut short": cut_short,
    "not http": not_http,
    "broken gzip": broken_gzip,
    "redirected": redirected,
    "silent": silent,
    "dripping": dripping,
    "dripping headers": dripping_headers,
}
COMMANDS = (
    ("push", "data", "--repo-id", "alice/new"),
    ("push", "data", "--repo-id", "alice/sums", "--revision", "try"),
    ("push", "run", "--repo-id", "alice/model", "--dataset", "alice/sums", "--dry-run"),
    ("evaluate", "alice/tiny"),
    ("heads", "alice/tiny", "--output", "out", "--rows", "10", "--mode", "zero"),
)


def case(rng: random.Random, number: int, place: Path, material: Material) -> Tried:
    """One command, and a Hub that turns hostile at a random request; the token is never shown."""
    names = list(HOSTILE)
    how = names[number % len(names)]
    arguments = rng.choice(COMMANDS)
    patience = rng.randrange(6)
    for name in ("run", "data"):
        material.copy(name, place)
    server, url = start_hub(place, patience, how)
    try:
        process = launch(arguments, place, place / "log", {"HF_TOKEN": TOKEN}, lambda: talk_to(url, place))
        answer = process.finish(SECONDS)
    finally:
        os.kill(server, signal.SIGKILL)
        os.waitpid(server, 0)
    tried = Tried()
    judge(tried, answer, arguments)
    if TOKEN in answer.stderr + answer.stdout:
        tried.fail("wrong", arguments, "the token was shown")
    if (place.parent / "victim").exists() or (place / "victim").exists():
        tried.fail("wrong", arguments, "a name of the Hub left its folder")
    story = f"Hub: {how} from request {patience} on; headcount {' '.join(arguments)}"
    tried.failures = [type(failure)(failure.what, story, failure.message) for failure in tried.failures]
    return tried


def start_hub(place: Path, patience: int, how: str) -> tuple[int, str]:
    """A Hub in a process of its own: its id and address. It holds alice's data and a model of hers."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            _serve(place, patience, how, writing)
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading) as port:
        return pid, f"http://127.0.0.1:{port.readline().strip()}"


def _serve(place: Path, patience: int, how: str, writing: int) -> None:
    seen = iter(range(10**9))

    class Hostile(Handler):
        def dispatch(self) -> None:
            if next(seen) < patience:
                super().dispatch()
                return
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            HOSTILE[how](self)

        def handle(self) -> None:
            try:
                super().handle()
            except OSError:  # the client has gone
                self.close_connection = True

    with HubServer() as server:
        server.users[TOKEN] = "alice"
        server.add_repo("dataset", "alice/sums", files=files_of(place / "data"))
        model = {**files_of(place / "run" / "model"), "recipe.yaml": (place / "run" / "recipe.yaml").read_bytes()}
        server.add_repo("model", "alice/tiny", files=model)
        server.http.RequestHandlerClass = type("Own", (Hostile,), {"hub": server})  # type: ignore[assignment]
        os.write(writing, f"{server.http.server_address[1]}\n".encode())
        os.close(writing)
        signal.pause()


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def talk_to(url: str, place: Path) -> None:
    """In the fork: huggingface_hub reads these at its import, which has been."""
    from huggingface_hub import constants

    constants.ENDPOINT = url
    constants.HUGGINGFACE_CO_URL_TEMPLATE = url + "/{repo_id}/resolve/{revision}/{filename}"
    constants.HF_HUB_OFFLINE = False
    constants.HF_HUB_DISABLE_XET = True
    constants.HF_TOKEN_PATH = str(place / "no-token")
    constants.HF_HUB_CACHE = str(place / "cache")
    constants.HUGGINGFACE_HUB_CACHE = str(place / "cache")
    os.environ.update(HF_ENDPOINT=url, HF_HUB_OFFLINE="0", HF_HUB_CACHE=str(place / "cache"))
