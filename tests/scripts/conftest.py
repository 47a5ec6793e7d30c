"""Fixtures for the tests that push: the Hub-compatible server, and a small data folder."""

from pathlib import Path

import pytest
from hub_server import HubServer
from huggingface_hub import constants
from small_runs import small_data

from headcount.publishing.repository import Repository, stage_data


TOKEN = "hf_aVerySecretToken"


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """The server, with alice logged in by TOKEN; the client of this process talks to it."""
    with HubServer() as server:
        server.users[TOKEN] = "alice"
        server.environment = {"HF_ENDPOINT": server.url, "HF_HUB_OFFLINE": "0", "HF_TOKEN": TOKEN}
        server.environment |= {"HF_HUB_DISABLE_XET": "1"}
        for name, value in {
            "ENDPOINT": server.url,
            "HUGGINGFACE_CO_URL_TEMPLATE": server.url + "/{repo_id}/resolve/{revision}/{filename}",
            "HF_HUB_OFFLINE": False,
            "HF_HUB_DISABLE_XET": True,
            "HF_TOKEN_PATH": str(tmp_path / "no-token"),
        }.items():
            monkeypatch.setattr(constants, name, value)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield server


@pytest.fixture(scope="session")
def data(tmp_path_factory) -> Path:
    return small_data(tmp_path_factory.mktemp("data") / "addition-data")


@pytest.fixture
def staged(data, tmp_path) -> Repository:
    (tmp_path / "work").mkdir()
    return stage_data(data, "alice/sums", tmp_path / "work")


@pytest.fixture
def token() -> str:
    return TOKEN
