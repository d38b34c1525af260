"""Calls whose elements lie in shared memory, against a real server, and one that tells what it saw."""

import asyncio
import contextlib
import errno
import gc
import os
import pickle
import re
import socket
import threading

import numpy as np
import pytest
from daemon import Daemon
from test_regions import wait_until

import warpline
from warpline import calls, links, shipments
from warpline.shapes import Kind
from warpline.shared import region_socket
from warpline.shared_shipments import address_of
from warpline.v1 import warpline_pb2 as v1

pytestmark = pytest.mark.usefixtures("usual_sizes")

LARGE = (300, 400)
MIB = 1 << 20


@pytest.fixture
def client(unix):
    with warpline.connect(unix, timeout=30, shared_memory="always") as connected:
        yield connected


@pytest.fixture
def watched(regions):
    """A client of the server that tells what it saw."""
    with warpline.connect(regions.address, timeout=30) as connected:
        yield connected


def values(shape=LARGE, seed=30):
    return np.random.default_rng(seed).standard_normal(shape)


def shared(client, array):
    """It lies in shared memory that the server has."""
    return client._shared._pool().find(address_of(array)) is not None


def filled(client, x):
    array = client.empty(x.shape, x.dtype)
    array[...] = x
    return array


# --- Who gets shared memory


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
    assert regions.seen == [("Transpose", 1, 0, 0)] and not regions.opened
    watched.gemm(values(), values((400, 3)))
    assert regions.seen[1:] == [("Gemm", 1, 1, 0)]
    p = warpline.program()
    column, row = values((1000, 1)), values((1, 1000))
    assert np.array_equal(watched.run(p.add(column, row)), column + row)
    assert regions.seen[2:] == [("Run", 2, 0, 1)]
    with warpline.connect(regions.address, shared_memory="never") as inline:
        inline.transpose(values())
    assert regions.seen[3:] == [("Transpose", 1, 0, 0)]


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
    assert regions.seen == [("Transpose", 0, 1, 1), ("Gemm", 0, 2, 1), ("Reduce", 0, 1, 0), ("Run", 0, 1, 1)]


def test_results_are_as_without(client):
    x = values()
    y = client.transpose(x)
    assert shared(client, y) and not y.flags.writeable and y.flags.aligned and y.flags.c_contiguous
    with pytest.raises(ValueError):
        y[0, 0] = 1
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
    with (Daemon(f"--listen=unix:{tmp_path}/s", "--max-inline-bytes=64K", "--pinned-bytes=1M") as small,
          warpline.connect(small.address) as client):
        x = values((200, 100))
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
            with pytest.warns(RuntimeWarning, match=f"regions='{path}'"):
                assert np.array_equal(await client.transpose(x), x.T)

    with unusable(kind, f"{tmp_path}/other") as path:
        with warpline.connect(regions.address, regions=path) as client:
            with pytest.warns(RuntimeWarning, match=f"regions='{path}' .* messages: .*{path}") as told:
                for _ in range(3):
                    assert np.array_equal(client.transpose(x), x.T)
                    assert client.empty(LARGE).shape == LARGE
                    client._shared._pool()._not_before = 0.0
            assert len(told) == 1 and {seen[1:] for seen in regions.seen} == {(1, 0, 0)}
        asyncio.run(with_asyncio(path))
        with warpline.connect(regions.address, regions=path, shared_memory="always", max_retries=0) as client:
            for call in (lambda: client.transpose(x), lambda: client.empty(LARGE)):
                with pytest.raises((warpline.Unimplemented, warpline.Unavailable), match=path):
                    call()


def test_nobody_is_told_of_a_socket_that_he_has_not_named(regions, recwarn):
    os.rename(f"{regions.address[5:]}.regions", f"{regions.address[5:]}.other")
    x = values()
    with warpline.connect(regions.address) as client:
        assert np.array_equal(client.transpose(x), x.T) and regions.seen == [("Transpose", 1, 0, 0)]
    assert not recwarn.list
    os.rename(f"{regions.address[5:]}.other", f"{regions.address[5:]}.regions")


def test_a_server_that_shares_no_memory_whatever_its_socket(regions):
    regions.max_region_bytes = 0
    with warpline.connect(regions.address, regions=f"{regions.address[5:]}.regions") as client:
        with pytest.warns(RuntimeWarning, match="shares no memory"):
            client.transpose(values())


def test_a_socket_of_another_user(regions, monkeypatch):
    """Root may use any, so that the kernel's refusal is made up here."""
    class Refused(socket.socket):
        def connect(self, path):
            raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(links.socket, "socket", Refused)
    x = values()
    with warpline.connect(regions.address, shared_memory="always") as client:
        with pytest.raises(warpline.Unimplemented, match="Permission denied: its mode is 0600, .* the user who runs"):
            client.transpose(x)
    with warpline.connect(regions.address) as client, pytest.warns(RuntimeWarning, match="0600"):
        assert np.array_equal(client.transpose(x), x.T)


# --- empty


def test_empty(client):
    a = client.empty((3, 5), "f4")
    assert a.shape == (3, 5) and a.dtype == np.float32 and a.flags.writeable and a.flags.c_contiguous
    assert client.empty(7).shape == (7,) and client.empty(7).dtype == np.float64
    assert client.empty((), "i2").shape == () and client.empty((0, 4)).shape == (0, 4)
    assert client.empty((2, 2), warpline.bfloat16).dtype == warpline.bfloat16 == client.empty(1, "bfloat16").dtype
    for wrong in ((-1,), (3, -2)):
        with pytest.raises(ValueError, match="shape"):
            client.empty(wrong)
    with pytest.raises(TypeError):
        client.empty(3, "M8[s]")
    for swapped in (">f4", np.dtype("f8").newbyteorder()):
        with pytest.raises(TypeError, match=f"dtype is {re.escape(repr(swapped))}: .* byte order"):
            client.empty(3, swapped)
    with pytest.raises(TypeError):
        client.empty(3.5)


def test_empty_arrays_are_operands_where_they_lie(regions, watched):
    x = values()
    a = filled(watched, x)
    for view in (a, a.T, a[10:20], a[3], a[:, 7:100], a[::2], a[1::3, 5:], a[5:, 399:], a[:1, 10:20],
                 a.reshape(-1)[1:9], a.reshape(3, 100, 400)[:, 0], a.reshape(3, 100, 400)[:, :, :7]):
        regions.seen.clear()
        want = np.asarray(view).copy()
        assert np.array_equal(watched.transpose(view), want.swapaxes(-1, -2) if want.ndim > 1 else want)
        assert regions.seen[0][1:3] == (0, 1), f"{view.shape} {view.strides} was copied"
    assert len(regions.opened) == 1


def test_views_that_no_tensor_describes_are_copied(regions, watched):
    x = values()
    a = filled(watched, x)
    for view in (a[::-1], a[:, ::2], a[:, ::-1], a.view("u1").reshape(300, -1)[:, 1:-7].view("V1").view("u1"),
                 a.astype(">f8"), a.reshape(3, 100, 400)[:, 4], a.reshape(3, 100, 400)[:, 5:, 3:],
                 np.broadcast_to(a[:1], (50, 400))):
        assert np.array_equal(watched.transpose(view), np.asarray(view).swapaxes(-1, -2))
    # Elements that lie across what they should: 8 bytes from the byte 1 on.
    odd = np.ndarray((299, 400), "f8", a, offset=1)
    assert watched.transpose(odd).tobytes() == odd.T.tobytes()
    small = filled(watched, values((8, 4)))
    # Beyond the end of so few rows there is no room for the padding of the last one.
    assert np.array_equal(watched.transpose(small[1:, 1:]), small[1:, 1:].T)


def test_results_are_operands_where_they_lie(regions, watched):
    y = watched.transpose(values())
    watched.reduce(y[5:], "sum", 0)
    assert regions.seen[1] == ("Reduce", 0, 1, 0) and len(regions.opened) == 1


def test_results_written_where_they_are_wanted(client):
    x, y = values(), values((400, 350))
    t, d, s = client.empty((400, 300)), client.empty((300, 350)), client.empty(400)
    assert client.transpose(x, out=t) is t and np.array_equal(t, x.T)
    assert client.gemm(x, y, out=d) is d and np.allclose(d, x @ y)
    assert client.reduce(x, "sum", 0, out=s) is s and np.allclose(s, x.sum(0))
    p = warpline.program()
    product = p.gemm(x, y)
    ordinary = np.zeros(350)
    first, second, third = client.run(product, product.sum(axis=0), product.max(), out=[d, ordinary, None])
    assert first is d and second is ordinary and np.allclose(ordinary, (x @ y).sum(0)) and third == d.max()
    part = client.empty((500, 350))
    assert np.allclose(client.gemm(x, y, out=part[100:400]), x @ y) and np.array_equal(part[100:400], d)


def test_where_results_go(regions, watched):
    x = values()
    out = watched.empty((400, 300))
    watched.transpose(x, out=out)
    assert regions.seen == [("Transpose", 0, 1, 1)] and regions.regions
    slice = watched._shared._pool().find(address_of(out))
    served = regions.regions[slice.region.link.id].memory[slice.offset : slice.offset + out.nbytes]
    assert np.array_equal(served.view("f8").reshape(400, 300), x.T)


def test_out_of_any_kind(client):
    x = values()
    wide = client.empty((400, 900))
    for out in (np.zeros((400, 300)), np.zeros((400, 300), order="F"), client.empty((300, 400)).T, wide[:, 5:305],
                wide[:, ::3]):
        assert client.transpose(x, out=out) is out and np.array_equal(out, x.T)
    reduced = client.empty((300, 200))
    wide = values((200, 3, 300))
    assert np.allclose(client.reduce(wide.T, "max", 1, out=reduced), wide.max(1).T)
    for wrong in (client.empty((300, 400)), client.empty((400, 300), "f4"), client.empty((400, 300, 1))):
        with pytest.raises(ValueError, match="out is"):
            client.transpose(x, out=wrong)


def test_out_that_overlaps_an_operand(client):
    x = values((400, 400))
    a = filled(client, x)
    assert client.transpose(a, out=a) is a and np.array_equal(a, x.T)
    big = client.empty((500, 400))
    big[:400] = x
    assert np.array_equal(client.transpose(big[:400], out=big[100:]), x.T)
    # Two results in one place: whose, nobody knows, but nothing breaks.
    p = warpline.program()
    client.run(p.scale(x, 2.0), p.scale(x, 3.0), out=[a, a])
    assert np.array_equal(a, 3 * x)


# --- The pool


def test_kept_results_beyond_a_quarter_are_copied_out(unix):
    with warpline.connect(unix, pool_bytes=16 * MIB, shared_memory="always") as client:
        x = values((256, 512))  # 1 MiB
        kept = [client.transpose(x * i) for i in range(8)]
        assert [shared(client, y) for y in kept] == [True] * 4 + [False] * 4
        assert all(np.array_equal(y, (x * i).T) for i, y in enumerate(kept))
        assert not kept[-1].flags.writeable
        del kept[1]
        gc.collect()
        assert shared(client, client.transpose(x))


def test_what_is_kept_is_not_overwritten(unix):
    with warpline.connect(unix, pool_bytes=8 * MIB) as client:
        rng, kept = np.random.default_rng(31), []
        for i in range(150):
            x = rng.standard_normal((rng.integers(100, 300), rng.integers(100, 300)))
            kept.append((x, client.transpose(x)))
            if len(kept) > 6:
                x, y = kept.pop(rng.integers(len(kept)))
                assert np.array_equal(y, x.T)
        assert all(np.array_equal(y, x.T) for x, y in kept)


def test_results_outlive_the_client(unix):
    x = values()
    with warpline.connect(unix) as client:
        y, a = client.transpose(x), filled(client, x)
        out = client.transpose(a, out=client.empty((400, 300)))
    assert np.array_equal(y, x.T) and np.array_equal(a, x) and np.array_equal(out, x.T)
    a += 1
    assert np.array_equal(a, x + 1)
    with pytest.raises(warpline.Cancelled):
        client.empty(3)
    with warpline.connect(unix) as other:
        assert np.array_equal(other.transpose(a), (x + 1).T)


def test_clients_that_nobody_closes(regions):
    client = warpline.connect(regions.address)
    y = client.transpose(values())
    del client
    gc.collect()
    wait_until(lambda: not regions.regions)
    assert np.array_equal(y, values().T)


def test_a_full_pool(regions):
    x = values((256, 512))
    with warpline.connect(regions.address, pool_bytes=MIB) as client:
        assert np.array_equal(client.transpose(x), x.T)
        # One of the two found room.
        assert regions.seen == [("Transpose", 0, 1, 0)]
    with warpline.connect(regions.address, pool_bytes=MIB, shared_memory="always") as client:
        with pytest.raises(warpline.ResourceExhausted, match="pool_bytes"):
            client.transpose(x)
        # What had been taken has been given back.
        assert np.allclose(client.reduce(x, "sum", 0), x.sum(0))


@pytest.mark.parametrize("limit", [0, 4096])
def test_servers_with_no_or_little_memory_to_share(regions, limit):
    regions.max_region_bytes = limit
    x = values()
    with warpline.connect(regions.address) as client:
        assert np.array_equal(client.transpose(x), x.T)
        assert regions.seen == [("Transpose", 1, 0, 0)]
        a = filled(client, x)
        assert np.array_equal(client.transpose(a), x.T)
    with warpline.connect(regions.address, shared_memory="always") as client:
        for call in (lambda: client.transpose(x), lambda: client.empty(LARGE)):
            with pytest.raises((warpline.Unimplemented, warpline.ResourceExhausted)):
                call()


def test_a_daemon_that_shares_no_memory(tmp_path):
    with Daemon(f"--listen=unix:{tmp_path}/s", "--region-bytes=0") as daemon:
        with warpline.connect(daemon.address) as client:
            x = values()
            assert np.array_equal(client.transpose(filled(client, x)), x.T)
        with warpline.connect(daemon.address, shared_memory="always") as client, pytest.raises(warpline.Unimplemented):
            client.transpose(x)


def test_threads_share_a_client(client):
    failures = []

    def work(seed):
        rng = np.random.default_rng(seed)
        kept = []
        for i in range(25):
            x = rng.standard_normal((rng.integers(1, 300), rng.integers(1, 300)))
            a = filled(client, x) if i % 3 else x
            out = client.empty(x.shape[::-1]) if i % 2 else None
            kept = [*kept[-3:], (client.transpose(a, out=out), x.T.copy())]
            if not np.allclose(client.gemm(a, x.T), x @ x.T) or not np.allclose(client.reduce(a, "sum", 0), x.sum(0)):
                failures.append((seed, i))
            if not all(np.array_equal(y, want) for y, want in kept):
                failures.append((seed, i))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# --- Results that are not as foretold


def test_results_of_another_shape(watched, monkeypatch):
    """The true shape is what the server says."""
    x = values()
    monkeypatch.setattr(calls.Call, "results", lambda self: [Kind(v1.DATA_TYPE_F64, (500, 600))])
    assert np.array_equal(watched.transpose(x), x.T)
    out = watched.empty((500, 600))
    with pytest.raises(warpline.Internal, match="was not to be"):
        watched.transpose(x, out=out)


def test_results_larger_than_their_slice(regions, watched, monkeypatch):
    monkeypatch.setattr(calls.Call, "results", lambda self: [Kind(v1.DATA_TYPE_F64, (300, 200))])
    with pytest.raises(warpline.Internal, match="was not to be"):
        watched.transpose(values())
    # Nothing in that region can be relied upon any more.
    wait_until(lambda: not regions.regions)


def test_bad_arguments_are_refused_by_the_server(unix_daemon):
    with warpline.connect(unix_daemon.address) as client:
        x = values()
        for call in (lambda: client.transpose(x, (0, 0)), lambda: client.gemm(x, x), lambda: client.reduce(x, "sum", 2),
                     lambda: client.gemm(filled(client, x), x.astype("f4"))):
            with pytest.raises(warpline.InvalidArgument):
                call()
        assert np.array_equal(client.transpose(x), x.T)
        assert shipments.SMALL_BYTES <= x.nbytes
