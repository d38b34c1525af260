import faulthandler
import os
import sys
import threading

import pytest
from daemon import Daemon
from region_server import RegionServer
from tensor_server import TensorServer

import warpline
from warpline import targets

# Far longer than any test takes, on a slow machine too.
SECONDS_MAX = 180
STDERR = pytest.StashKey()


def pytest_configure(config):
    # Of its own, since pytest has others in its place while a test runs.
    config.stash[STDERR] = os.fdopen(os.dup(sys.__stderr__.fileno()), "w")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """A test that stands still ends all, with its name and what its threads are at."""
    stderr = item.config.stash[STDERR]

    def end():
        print(f"\nHUNG: {item.nodeid} has not ended after {SECONDS_MAX} s", file=stderr, flush=True)
        faulthandler.dump_traceback(stderr)
        os._exit(1)

    limit = threading.Timer(SECONDS_MAX, end)
    limit.daemon = True
    limit.start()
    yield
    limit.cancel()


@pytest.fixture(scope="session")
def daemon(tmp_path_factory):
    """Shares memory by its `regions`."""
    regions = f"{tmp_path_factory.mktemp('daemon')}/regions"
    with Daemon(f"--regions={regions}") as running:
        running.regions = regions
        yield running


@pytest.fixture(scope="session", params=["inline", "shared"])
def client(request, daemon):
    """Once with all elements in messages, and once with all of them, however few, in shared memory."""
    if request.param == "inline":
        with warpline.connect(daemon.address) as connected:
            yield connected
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(targets, "_SMALL_BYTES", 1)
        with warpline.connect(daemon.address, shared_memory="always", regions=daemon.regions) as connected:
            yield connected


@pytest.fixture
def usual_sizes(monkeypatch):
    """What is small is so, while a client of the fixture above may have it otherwise."""
    monkeypatch.setattr(targets, "_SMALL_BYTES", 128 << 10)


@pytest.fixture
def regions(tmp_path):
    """A RegionServer, with its address on a unix socket."""
    server = RegionServer()
    with server.serving(f"unix:{tmp_path}/s") as server.address:
        yield server


@pytest.fixture
def watched(regions):
    """A client of the server that tells what it saw."""
    with warpline.connect(regions.address, timeout=30) as connected:
        yield connected


@pytest.fixture(scope="session")
def unix_daemon(tmp_path_factory):
    """On a unix socket."""
    with Daemon(f"--listen=unix:{tmp_path_factory.mktemp('unix')}/s") as running:
        yield running


@pytest.fixture(params=["fake", "daemon"])
def unix(request):
    """The address of a server on a unix socket that shares memory."""
    yield request.getfixturevalue("regions" if request.param == "fake" else "unix_daemon").address


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
