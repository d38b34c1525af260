"""Calls whose elements lie in shared memory, against a real server, and one that tells what it saw."""

import asyncio
import contextlib
import os
import pickle
import socket

import numpy as np
import pytest
from daemon import Daemon
from shared_arrays import LARGE, filled, shared, values

import warpline
from warpline import targets
from warpline.targets import region_socket

pytestmark = pytest.mark.usefixtures("usual_sizes")


@pytest.fixture
def client(unix):
    with warpline.connect(unix, timeout=30, shared_memory="always") as connected:
        yield connected


@pytest.mark.parametrize("target, mode, regions, path", [
    ("unix:/a/s", "auto", None, "/a/s.regions"), ("unix:///a/s", "auto", None, "/a/s.regions"),
    ("unix:s", "always", None, "s.regions"), ("unix:/a/s", "never", None, None), ("unix:/a/s", "auto", "/r", "/r"),
    ("host:1", "auto", None, None), ("host:1", "auto", "/r", "/r"), ("host", "always", "/r", "/r"),
    ("unix-abstract:s", "auto", None, None)])
def test_where_the_region_socket_is(target, mode, regions, path):
    assert region_socket(target, mode, regions) == path


def test_arguments_that_do_not_go_together():
    for connect in (warpline.connect, warpline.aio.connect):
        with pytest.raises(ValueError, match="no unix socket"):
            connect("host:1", shared_memory="always")
        with pytest.raises(ValueError, match="auto, always, never"):
            connect("unix:/s", shared_memory="sometimes")
        for wrong, kind in ((0, ValueError), (-1, ValueError), ("1G", TypeError), (1e9, TypeError), (None, TypeError)):
            with pytest.raises(kind, match=f"pool_bytes is {wrong!r}"):
                connect("unix:/s", pool_bytes=wrong)


def test_only_what_is_large_goes_there(regions, watched):
    watched.transpose(np.ones((10, 10)))
    assert regions.seen == [("Run", 1, 0, 0)] and not regions.opened
    watched.gemm(values(), values((400, 3)))
    assert regions.seen[1:] == [("Run", 1, 1, 0)]
    p = warpline.program()
    column, row = values((1000, 1)), values((1, 1000))
    assert np.array_equal(watched.run(p.add(column, row)), column + row)
    assert regions.seen[2:] == [("Run", 2, 0, 1)]
    with warpline.connect(regions.address, shared_memory="never") as inline:
        inline.transpose(values())
    assert regions.seen[3:] == [("Run", 1, 0, 0)]


def test_every_operation(client):
    x, y = values(), values((400, 350))
    assert np.array_equal(client.transpose(x), x.T) and np.array_equal(client.transpose(x.T), x)
    assert np.allclose(client.gemm(x, y), x @ y) and np.allclose(client.gemm(y.T, x.T), (x @ y).T)
    assert np.allclose(client.reduce(x, "sum", 1), x.sum(1)) and np.allclose(client.reduce(x.T, "sum", 1), x.sum(0))
    wide = values((3, 200, 300))
    assert np.allclose(client.reduce(wide.transpose(2, 0, 1), "max", 1), wide.max(0).T)
    p = warpline.program()
    product = p.gemm(x, y)
    d, total, t = client.run(product, product.sum(axis=1), product.transpose())
    assert np.allclose(d, x @ y) and np.allclose(total, (x @ y).sum(1)) and np.array_equal(t, d.T)
    placed = warpline.program((warpline.placeholder("x") @ y).max(axis=0))
    for part in (x, x[:200], x[::2]):
        assert np.allclose(client.run(placed, x=part), (part @ y).max(0))


def test_every_operation_is_sent_without_its_elements(regions, watched):
    x = values()
    watched.transpose(x)
    watched.gemm(x, x.T)
    watched.reduce(x, "sum", 0)
    p = warpline.program()
    product = p.gemm(x, x.T)
    watched.run(product, product.sum())
    assert regions.seen == [("Run", 0, 1, 1), ("Run", 0, 2, 1), ("Run", 0, 1, 0), ("Run", 0, 1, 1)]


def test_results_are_as_without(client):
    x = values()
    y = client.transpose(x)
    assert shared(client, y) and y.flags.writeable and y.flags.aligned and y.flags.c_contiguous
    assert np.array_equal(pickle.loads(pickle.dumps(y)), y)
    copy = y.copy()
    assert copy.flags.writeable and not shared(client, copy)


def test_resident_tensors_and_shared_memory(client):
    x, y = values(), values((400, 350))
    with client.put(y) as t:
        assert np.allclose(client.gemm(x, t), x @ y)
        with client.gemm(x, t, keep=True) as kept:
            assert np.allclose(kept.numpy(), x @ y)
            d, total = client.run(kept * 2.0, kept.sum(axis=0), keep=(True, False))
            assert np.allclose(d.numpy(), 2 * (x @ y)) and np.allclose(total, (x @ y).sum(0))


def test_more_than_a_message_may_have(tmp_path):
    with (Daemon(f"--listen=unix:{tmp_path}/s", "--max-inline-bytes=64K", "--upload-bytes=0") as small,
          warpline.connect(small.address) as client):
        x = values((600, 500))
        assert np.array_equal(client.transpose(x), x.T)
        with warpline.connect(small.address, shared_memory="never") as inline:
            with pytest.raises(warpline.ResourceExhausted):
                inline.transpose(x)


@contextlib.contextmanager
def unusable(kind, path):
    """A path that is of no use as that of a region socket."""
    if kind == "missing":
        yield path
        return
    if kind == "a file":
        with open(path, "w"):
            yield path
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM if kind == "of gRPC" else socket.SOCK_SEQPACKET) as bound:
        bound.bind(path)
        if kind == "of gRPC":
            bound.listen()
        yield path


@pytest.mark.parametrize("kind", ["missing", "a file", "of gRPC", "of a server that has gone"])
def test_a_region_socket_that_is_of_no_use_is_told_of_once(regions, tmp_path, kind):
    x = values()

    async def with_asyncio(path):
        async with warpline.aio.connect(regions.address, regions=path) as client:
            with pytest.warns(RuntimeWarning, match=f'region socket "{path}"'):
                assert np.array_equal(await client.transpose(x), x.T)

    with unusable(kind, f"{tmp_path}/other") as path:
        with warpline.connect(regions.address, regions=path) as client:
            with pytest.warns(RuntimeWarning, match=f'region socket "{path}".* messages') as told:
                for _ in range(3):
                    assert np.array_equal(client.transpose(x), x.T)
                    assert client.empty(LARGE).shape == LARGE
            assert len(told) == 1 and {seen[1:] for seen in regions.seen} == {(1, 0, 0)}
        asyncio.run(with_asyncio(path))
        with warpline.connect(regions.address, regions=path, shared_memory="always", max_retries=0) as client:
            for call in (lambda: client.transpose(x), lambda: client.empty(LARGE)):
                with pytest.raises(warpline.FailedPrecondition, match=path):
                    call()


def test_nobody_is_told_of_a_socket_that_he_has_not_named(regions, recwarn):
    os.rename(f"{regions.address[5:]}.regions", f"{regions.address[5:]}.other")
    x = values()
    with warpline.connect(regions.address) as client:
        assert np.array_equal(client.transpose(x), x.T) and regions.seen == [("Run", 1, 0, 0)]
    assert not recwarn.list
    os.rename(f"{regions.address[5:]}.other", f"{regions.address[5:]}.regions")


def test_a_server_that_shares_no_memory_whatever_its_socket(regions):
    regions.max_region_bytes = 0
    with warpline.connect(regions.address, regions=f"{regions.address[5:]}.regions") as client:
        with pytest.warns(RuntimeWarning, match="shares no memory"):
            client.transpose(values())


def test_bad_arguments_are_refused_by_the_server(unix_daemon):
    with warpline.connect(unix_daemon.address) as client:
        x = values()
        for call in (lambda: client.transpose(x, (0, 0)), lambda: client.gemm(x, x), lambda: client.reduce(x, "sum", 2),
                     lambda: client.gemm(filled(client, x), x.astype("f4"))):
            with pytest.raises(warpline.InvalidArgument):
                call()
        assert np.array_equal(client.transpose(x), x.T)
        assert targets._SMALL_BYTES <= x.nbytes
