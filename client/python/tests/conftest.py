import pytest
from daemon import Daemon
from tensor_server import TensorServer

import warpline


@pytest.fixture(scope="session")
def daemon():
    with Daemon() as running:
        yield running


@pytest.fixture(scope="session")
def client(daemon):
    with warpline.connect(daemon.address) as connected:
        yield connected


@pytest.fixture
def fake():
    """A TensorServer, with its address."""
    server = TensorServer()
    with server.serving() as server.address:
        yield server


@pytest.fixture(params=["fake", "daemon"])
def address(request):
    """Of a server that has resident tensors: the one that these tests bring along, and a real one if it can."""
    if request.param == "fake":
        yield request.getfixturevalue("fake").address
        return
    daemon = request.getfixturevalue("daemon")
    with warpline.connect(daemon.address) as probe:
        try:
            probe.tensors()
        except warpline.Unimplemented:
            pytest.skip("this daemon answers UNIMPLEMENTED to TensorService.List")
    yield daemon.address
