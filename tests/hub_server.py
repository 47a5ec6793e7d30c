"""A small server that speaks the part of the Hub's protocol which huggingface_hub's client uses to push and pull.

    with HubServer() as hub:
        hub.users["hf_secret"] = "alice"
        ... HF_ENDPOINT=hub.url ...

Repositories have branches and commits; a commit is made whole or not at all. Files above a few hundred bytes of binary
content go the LFS way, as on the Hub. `hub.fail` may answer any request with an error, "cut" the connection, be
"silent", "drip" (a byte of the header now and then, for ever), or give bytes as they are, for an answer of nonsense.
"""

import base64
import hashlib
import itertools
import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

import yaml


LFS_ENDINGS = (".safetensors", ".parquet", ".png")
KINDS = {"models": "model", "datasets": "dataset"}


@dataclass
class Repo:
    kind: str
    name: str
    private: bool
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)  # commit -> path -> content
    branches: dict[str, str] = field(default_factory=dict)  # branch -> commit
    titles: list[str] = field(default_factory=list)

    def commit(self, branch: str, files: dict[str, bytes], title: str) -> str:
        digest = hashlib.sha1(f"{self.kind} {self.name} {branch} {len(self.commits)} {title}".encode())
        for path in sorted(files):
            digest.update(path.encode() + files[path])
        self.commits[digest.hexdigest()] = files
        self.branches[branch] = digest.hexdigest()
        self.titles.append(title)
        return digest.hexdigest()

    def resolve(self, revision: str) -> str | None:
        revision = unquote(revision)
        return self.branches.get(revision) or (revision if revision in self.commits else None)

    def files(self, revision: str = "main") -> dict[str, bytes]:
        return self.commits[self.resolve(revision)]


def is_lfs(path: str) -> bool:
    return path.endswith(LFS_ENDINGS)


def oid_of(path: str, content: bytes) -> str:
    """The git blob id of a small file; of a large one, that of its pointer file."""
    if is_lfs(path):
        sha = hashlib.sha256(content).hexdigest()
        content = f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha}\nsize {len(content)}\n".encode()
    return hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()


def etag_of(path: str, content: bytes) -> str:
    return hashlib.sha256(content).hexdigest() if is_lfs(path) else oid_of(path, content)


def entry_of(path: str, content: bytes) -> dict:
    entry = {"type": "file", "path": path, "size": len(content), "oid": oid_of(path, content)}
    if is_lfs(path):
        entry["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 134}
    return entry


class HubServer:
    def __init__(self):
        self.users: dict[str, str] = {}  # token -> user
        self.repos: dict[tuple[str, str], Repo] = {}
        self.blobs: dict[str, bytes] = {}  # uploaded, perhaps not yet part of any commit
        self.requests: list[str] = []
        self.fail: Callable[[str, str], int | str | bytes | None] = lambda method, path: None
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Handler,), {"hub": self}))
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"

    def __enter__(self):
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error):
        self.over.set()
        self.http.shutdown()
        self.http.server_close()

    def add_repo(self, kind: str, name: str, private: bool = False, files: dict[str, bytes] | None = None) -> Repo:
        repo = self.repos[kind, name] = Repo(kind, name, private)
        repo.commit("main", {".gitattributes": b"*.safetensors filter=lfs\n", **(files or {})}, "initial commit")
        return repo


class Handler(BaseHTTPRequestHandler):
    hub: HubServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    # Every method goes the same way: (method, pattern) -> function, the first match wins.
    def do_GET(self):
        self.dispatch()

    do_HEAD = do_POST = do_PUT = do_DELETE = do_GET

    def dispatch(self) -> None:
        parts = urlsplit(self.path)
        self.query = parse_qs(parts.query)
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with self.hub.lock:
            self.hub.requests.append(f"{self.command} {parts.path}")
            failure = self.hub.fail(self.command, parts.path)
        if failure in ("silent", "drip"):
            self.dawdle(failure)
            return
        with self.hub.lock:
            if isinstance(failure, bytes):
                self.send(failure)
                return
            if failure == "cut":
                self.close_connection = True
                self.connection.close()
                return
            if failure is not None:
                self.send({"error": "the disk of the Hub is full"}, failure)
                return
            for method, pattern, answer in ROUTES:
                found = re.fullmatch(pattern, parts.path)
                if found and method == ("GET" if self.command == "HEAD" else self.command):
                    answer(self, **{name: unquote(value or "") for name, value in found.groupdict().items()})
                    return
        self.send({"error": f"no such page: {self.command} {parts.path}"}, 404)

    def dawdle(self, how: str) -> None:
        self.close_connection = True
        start = b"HTTP/1.1 200 OK\r\nX-Slow: "
        letters = itertools.chain((start[i : i + 1] for i in range(len(start))), itertools.repeat(b"x"))
        while not self.hub.over.wait(0.1):
            try:
                self.wfile.write(next(letters) if how == "drip" else b"")
            except OSError:
                return

    def send(self, content, status: int = 200, headers: dict | None = None) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in ({"Content-Type": "application/json"} | (headers or {})).items():
            self.send_header(name, value)
        if status >= 400 and isinstance(content, dict):
            self.send_header("X-Error-Message", content["error"])
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def refuse(self, status: int, code: str, text: str) -> None:
        self.send({"error": text}, status, {"X-Error-Code": code})

    def user(self) -> str | None:
        return self.hub.users.get((self.headers.get("Authorization") or "").removeprefix("Bearer "))

    def repo_or_refuse(self, kind: str, name: str, write: bool = False) -> Repo | None:
        repo = self.hub.repos.get((KINDS.get(kind, kind), name))
        owner = name.split("/")[0] == self.user()
        if repo is None or (repo.private and not owner):
            self.refuse(404 if self.user() else 401, "RepoNotFound", "Repository not found")
        elif write and not owner:
            self.refuse(403 if self.user() else 401, "", "You don't have the rights")
        else:
            return repo
        return None

    def commit_or_refuse(self, repo: Repo, revision: str) -> str | None:
        commit = repo.resolve(revision or "main")
        if commit is None:
            self.refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return commit

    def whoami(self):
        if self.user() is None:
            self.refuse(401, "", "Invalid username or password.")
        else:
            self.send({"type": "user", "name": self.user(), "orgs": [], "auth": {"accessToken": {"role": "write"}}})

    def create(self):
        asked = json.loads(self.body)
        owner = asked.get("organization") or self.user()
        kind, name = asked.get("type", "model"), f"{owner}/{asked['name']}"
        if self.user() is None:
            self.refuse(401, "", "Invalid username or password.")
        elif owner != self.user():
            self.refuse(403, "", f"You don't have the rights to create a {kind} under the namespace {owner!r}")
        elif (kind, name) in self.hub.repos:
            self.send({"error": "You already created this repo", "url": f"{self.hub.url}/{name}"}, 409)
        else:
            private = asked.get("private", False) or asked.get("visibility") == "private"
            self.hub.add_repo(kind, name, private)
            prefix = "datasets/" if kind == "dataset" else ""
            self.send({"url": f"{self.hub.url}/{prefix}{name}", "name": name})

    def delete(self):
        asked = json.loads(self.body)
        name = f"{asked.get('organization') or self.user()}/{asked['name']}"
        repo = self.repo_or_refuse(asked.get("type") or "model", name, write=True)
        if repo is not None:
            del self.hub.repos[repo.kind, repo.name]
            self.send({})

    def info(self, kind, name, revision=""):
        repo = self.repo_or_refuse(kind, name)
        commit = repo and self.commit_or_refuse(repo, revision)
        if commit:
            siblings = [{"rfilename": path} for path in repo.commits[commit]]
            self.send(
                {
                    "_id": "1",
                    "id": name,
                    "modelId": name,
                    "author": name.split("/")[0],
                    "sha": commit,
                    "private": repo.private,
                    "disabled": False,
                    "gated": False,
                    "downloads": 0,
                    "likes": 0,
                    "tags": [],
                    "siblings": siblings,
                    "lastModified": "2026-01-01T00:00:00.000Z",
                    "createdAt": "2026-01-01T00:00:00.000Z",
                }
            )

    def refs(self, kind, name):
        repo = self.repo_or_refuse(kind, name)
        if repo:
            branches = [
                {"name": branch, "ref": f"refs/heads/{branch}", "targetCommit": commit}
                for branch, commit in repo.branches.items()
            ]
            self.send({"branches": branches, "tags": [], "converts": []})

    def make_branch(self, kind, name, branch):
        repo = self.repo_or_refuse(kind, name, write=True)
        if repo:
            repo.branches[branch] = repo.branches["main"]
            self.send({})

    def drop_branch(self, kind, name, branch):
        repo = self.repo_or_refuse(kind, name, write=True)
        if repo:
            del repo.branches[branch]
            self.send({})

    def validate_yaml(self):
        """The Hub's own check of the card's metadata, as far as it matters here."""
        content = json.loads(self.body)["content"]
        data = yaml.safe_load(content.split("---")[1])
        errors = [] if data.get("license") else [{"message": "license is missing"}]
        self.send({"errors": errors, "warnings": []}, 400 if errors else 200)

    def preupload(self, kind, name, revision):
        repo = self.repo_or_refuse(kind, name, write=True)
        commit = repo and self.commit_or_refuse(repo, revision)
        if commit:
            asked = json.loads(self.body)["files"]
            present = {path: etag_of(path, content) for path, content in repo.commits[commit].items()}
            files = [
                {
                    "path": file["path"],
                    "uploadMode": "lfs" if is_lfs(file["path"]) else "regular",
                    "shouldIgnore": False,
                    "oid": present.get(file["path"]),
                }
                for file in asked
            ]
            self.send({"files": files})

    def lfs_batch(self, name, kind=""):
        repo = self.repo_or_refuse("dataset" if kind else "model", name, write=True)
        if repo:
            objects = []
            for asked in json.loads(self.body)["objects"]:
                answer = {"oid": asked["oid"], "size": asked["size"]}
                if asked["oid"] not in self.hub.blobs:
                    answer["actions"] = {
                        "upload": {"href": f"{self.hub.url}/lfs/{asked['oid']}"},
                        "verify": {"href": f"{self.hub.url}/lfs-verify/{asked['oid']}"},
                    }
                objects.append(answer)
            self.send({"transfer": "basic", "objects": objects})

    def lfs_put(self, oid):
        if hashlib.sha256(self.body).hexdigest() != oid:
            self.refuse(400, "", "the content is not what its hash says")
        else:
            self.hub.blobs[oid] = self.body
            self.send({})

    def lfs_verify(self, oid):
        self.send({} if oid in self.hub.blobs else {"error": "missing"}, 200 if oid in self.hub.blobs else 404)

    def commit(self, kind, name, revision):
        repo = self.repo_or_refuse(kind, name, write=True)
        parent = repo and self.commit_or_refuse(repo, revision)
        if not parent:
            return
        files, title = dict(repo.commits[parent]), ""
        for line in self.body.decode().splitlines():
            entry = json.loads(line)
            value = entry["value"]
            if entry["key"] == "header":
                title = value["summary"]
            elif entry["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif entry["key"] == "lfsFile":
                if value["oid"] not in self.hub.blobs:
                    self.refuse(400, "", f"LFS pointer pointed to a file that does not exist: {value['path']}")
                    return
                files[value["path"]] = self.hub.blobs[value["oid"]]
            elif entry["key"] == "deletedFile":
                del files[value["path"]]
        commit = repo.commit(revision, files, title)
        prefix = "datasets/" if repo.kind == "dataset" else ""
        self.send(
            {
                "success": True,
                "commitOid": commit,
                "commitUrl": f"{self.hub.url}/{prefix}{name}/commit/{commit}",
                "hookOutput": "",
            }
        )

    def tree(self, kind, name, revision, path=""):
        repo = self.repo_or_refuse(kind, name)
        commit = repo and self.commit_or_refuse(repo, revision)
        if not commit:
            return
        inside = {
            file: content for file, content in repo.commits[commit].items() if file.startswith(path and path + "/")
        }
        if path and not inside:
            self.refuse(404, "EntryNotFound", f"{path} does not exist on {revision!r}")
            return
        rows = {}
        for file, content in sorted(inside.items()):
            rest = file.removeprefix(path and path + "/").split("/")
            if len(rest) > 1:
                for depth in range(1, len(rest) if self.query.get("recursive", [""])[0].lower() == "true" else 2):
                    folder = "/".join([*filter(None, [path]), *rest[:depth]])
                    rows[folder] = {"type": "directory", "path": folder, "size": 0, "oid": "0" * 40}
            if len(rest) == 1 or self.query.get("recursive", [""])[0].lower() == "true":
                rows[file] = entry_of(file, content)
        self.send(list(rows.values()))

    def paths_info(self, kind, name, revision):
        repo = self.repo_or_refuse(kind, name)
        commit = repo and self.commit_or_refuse(repo, revision)
        if not commit:
            return
        try:
            asked = json.loads(self.body)["paths"]
        except ValueError:
            asked = parse_qs(self.body.decode())["paths"]
        files, rows = repo.commits[commit], []
        for path in [asked] if isinstance(asked, str) else asked:
            if path in files:
                rows.append(entry_of(path, files[path]))
            elif any(file.startswith(path + "/") for file in files):
                rows.append({"type": "directory", "path": path, "size": 0, "oid": "0" * 40})
        self.send(rows)

    def resolve(self, name, revision, path, kind=""):
        repo = self.repo_or_refuse("dataset" if kind else "model", name)
        commit = repo and self.commit_or_refuse(repo, revision)
        if not commit:
            return
        content = repo.commits[commit].get(path)
        if content is None:
            self.send({"error": "Entry not found"}, 404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit})
            return
        headers = {
            "X-Repo-Commit": commit,
            "ETag": f'"{etag_of(path, content)}"',
            "Accept-Ranges": "bytes",
            "Content-Type": "application/octet-stream",
            "X-Linked-Size": str(len(content)),
        }
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if wanted and self.command == "GET":
            first, last = int(wanted[1]), min(int(wanted[2] or len(content)), len(content) - 1)
            headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
            self.send(content[first : last + 1], 206, headers)
        else:
            self.send(content, 200, headers)


NAME = r"(?P<name>[^/]+/[^/]+)"
API = rf"/api/(?P<kind>models|datasets)/{NAME}"
ROUTES = [
    ("GET", "/api/whoami-v2", Handler.whoami),
    ("POST", "/api/repos/create", Handler.create),
    ("DELETE", "/api/repos/delete", Handler.delete),
    ("POST", "/api/validate-yaml", Handler.validate_yaml),
    ("GET", rf"{API}/refs", Handler.refs),
    ("GET", rf"{API}(/revision/(?P<revision>[^/]+))?", Handler.info),
    ("POST", rf"{API}/branch/(?P<branch>[^/]+)", Handler.make_branch),
    ("DELETE", rf"{API}/branch/(?P<branch>[^/]+)", Handler.drop_branch),
    ("POST", rf"{API}/preupload/(?P<revision>[^/]+)", Handler.preupload),
    ("POST", rf"{API}/commit/(?P<revision>[^/]+)", Handler.commit),
    ("GET", rf"{API}/tree/(?P<revision>[^/]+)(/(?P<path>.+))?", Handler.tree),
    ("POST", rf"{API}/paths-info/(?P<revision>[^/]+)", Handler.paths_info),
    ("POST", rf"(?P<kind>/datasets)?/{NAME}\.git/info/lfs/objects/batch", Handler.lfs_batch),
    ("PUT", "/lfs/(?P<oid>[0-9a-f]+)", Handler.lfs_put),
    ("POST", "/lfs-verify/(?P<oid>[0-9a-f]+)", Handler.lfs_verify),
    ("GET", rf"(?P<kind>/datasets)?/{NAME}/resolve/(?P<revision>[^/]+)/(?P<path>.+)", Handler.resolve),
]
