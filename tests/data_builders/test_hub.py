"""How long the Hub may take: by what is asked of it."""

from types import SimpleNamespace

import pytest

from headcount.data_builders.hub import QUESTION, TRANSFER, fetch, transfer_limit


@pytest.fixture
def limits(monkeypatch):
    """The limits under which calls are made."""
    found = []

    def within(seconds, call, **options):
        found.append(seconds)
        return call()

    monkeypatch.setattr("headcount.data_builders.hub.within", within)
    return found


def test_the_time_for_a_transfer_follows_from_its_size_and_ends_somewhere():
    assert transfer_limit(0) == QUESTION < transfer_limit(10**8) < transfer_limit(10**15) == TRANSFER


def test_a_download_has_the_time_that_its_size_needs(limits, monkeypatch):
    info = SimpleNamespace(siblings=[SimpleNamespace(size=10**8), SimpleNamespace(size=None)])
    monkeypatch.setattr("huggingface_hub.HfApi.repo_info", lambda *args, **options: info)
    assert fetch(lambda: "downloaded", "alice/model") == "downloaded"
    assert limits == [QUESTION, transfer_limit(10**8)]


def test_a_hub_that_does_not_answer_is_no_obstacle_to_what_is_in_the_cache(limits, monkeypatch):
    def gone(*args, **options):
        raise ConnectionError("gone")

    monkeypatch.setattr("huggingface_hub.HfApi.repo_info", gone)
    assert fetch(lambda: "cached", "alice/model") == "cached"
    assert limits == [QUESTION, QUESTION]
