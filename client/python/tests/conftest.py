import pytest
from daemon import Daemon

import warpline


@pytest.fixture(scope="session")
def daemon():
    with Daemon() as running:
        yield running


@pytest.fixture(scope="session")
def client(daemon):
    with warpline.connect(daemon.address) as connected:
        yield connected
