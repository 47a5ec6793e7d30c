"""One small study for all tests of the report."""

import pytest
from small_study import make_study


@pytest.fixture(scope="session")
def study(tmp_path_factory):
    return make_study(tmp_path_factory.mktemp("report") / "small study")
