import asyncio
import pickle
import re
import signal
import threading
import time

import fake_server
import grpc
import numpy as np
import pytest
from daemon import Daemon, slow_program
from test_errors import X

import warpline
from warpline import core, targets
from messages import v1


def test_out(client):
    x = np.arange(6.0).reshape(2, 3)
    for out in (np.zeros((3, 2)), np.zeros((3, 2), order="F"), np.zeros((3, 4))[:, ::2]):
        assert client.transpose(x, out=out) is out
        assert np.array_equal(out, x.T)
    out = np.zeros(2)
    assert client.reduce(x, "sum", 1, out=out) is out and out.tolist() == [3, 12]
    out = np.zeros((2, 2))
    assert client.gemm(x, x.T, out=out) is out and np.array_equal(out, x @ x.T)
    for wrong in (np.zeros((2, 3)), np.zeros((3, 2), "f4"), np.zeros((3, 2), ">f8")):
        with pytest.raises(ValueError, match="out is"):
            client.transpose(x, out=wrong)


def test_info(client, daemon):
    info = client.info()
    assert info.backend == daemon.backend and info.limits.max_inline_bytes > 0
    assert {operation.name for operation in info.operations} >= {"transpose", "gemm", "reduce"}


def test_metrics_name_the_operation(client, daemon):
    def counts():
        return [daemon.total("warpline_requests_total", f'op="{op}"') for op in ("transpose", "gemm", "reduce", "run")]

    before = counts()
    x = np.ones((2, 3))
    client.transpose(x)
    client.gemm(x, x.T)
    client.reduce(x, "sum")
    client.run(warpline.program().input(x).transpose() + 1)
    assert [now - then for now, then in zip(counts(), before)] == [1, 1, 1, 1]


def test_info_is_plain_data(client):
    info = client.info()
    assert isinstance(info, warpline.ServerInfo) and isinstance(info.limits.max_jobs, int)
    operations = {operation.name: operation for operation in info.operations}
    assert np.dtype("f4") in operations["gemm"].dtypes and warpline.bfloat16 in operations["gemm"].dtypes
    assert all(isinstance(variant, warpline.Variant) for variant in operations["reduce"].variants)
    assert pickle.loads(pickle.dumps(info)) == info
    with pytest.raises(AttributeError):
        info.version = "another"


def test_a_pickled_client_connects_anew(client, daemon):
    x = np.arange(6.0).reshape(2, 3)
    with warpline.connect(daemon.address, timeout=7, max_retries=1, reproducible=True) as original:
        with pickle.loads(pickle.dumps(original)) as copy:
            assert np.array_equal(copy.transpose(x), x.T)
            _, (arguments,) = copy.__reduce__()
            assert copy.__reduce__() == original.__reduce__() and arguments["timeout"] == 7
        assert np.array_equal(original.transpose(x), x.T)


def test_health(client):
    assert client.is_serving() and client.is_serving("warpline.v1.KernelService")
    with pytest.raises(warpline.Error):
        client.is_serving("nonesuch")


def test_report(client, daemon):
    executions = []
    # The last one is the plain one, which can do anything.
    variant = {operation.name: operation for operation in client.info().operations}["transpose"].variants[-1].name
    client.transpose(np.ones((3, 4)), report=executions.append, variant=variant)
    assert executions[0].backend == daemon.backend
    assert isinstance(executions[0], warpline.Execution) and executions[0].variants == (variant,)
    assert executions[0].stage_times.device > 0


@pytest.mark.parametrize("reproducible", [False, True])
def test_reproducible(reproducible):
    asked = []

    def answer(method, request, context):
        asked.append(v1.RunRequest.FromString(request).options.reproducible)
        context.abort(grpc.StatusCode.UNIMPLEMENTED, "nothing but requests is looked at")

    async def twice(address):
        async with warpline.aio.connect(address, reproducible=reproducible) as client:
            with pytest.raises(warpline.Unimplemented):
                await client.transpose(X)

    with fake_server.serving(answer) as address:
        with warpline.connect(address, reproducible=reproducible) as client:
            with pytest.raises(warpline.Unimplemented):
                client.transpose(X)
            with pytest.raises(warpline.Unimplemented):
                client.run(warpline.program().transpose(X).sum())
        asyncio.run(twice(address))
    assert asked == [reproducible] * 3


def test_threads_share_a_client(client):
    failures = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(50):
            x = rng.standard_normal((rng.integers(1, 40), rng.integers(1, 40)))
            if not np.array_equal(client.transpose(x), x.T):
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_context_manager(daemon):
    with warpline.connect(daemon.address, timeout=5) as client:
        assert client.is_serving()
    with pytest.raises(warpline.Cancelled, match="closed"):
        client.is_serving()


def test_lists_and_scalars(client):
    assert client.transpose([[1, 2, 3], [4, 5, 6]]).tolist() == [[1, 4], [2, 5], [3, 6]]
    assert client.reduce(5.0, "sum").item() == 5


def test_unix_sockets(tmp_path):
    with Daemon(f"--listen=unix:{tmp_path}/s"), warpline.connect(f"unix:{tmp_path}/s") as client:
        assert client.is_serving()


@pytest.mark.parametrize("target, checked", [
    ("host", "host:50051"), ("host:1", "host:1"), ("10.0.0.1", "10.0.0.1:50051"), ("::1", "[::1]:50051"),
    ("[::1]", "[::1]:50051"), ("[::1]:1", "[::1]:1"), ("unix:s", "unix:s"), ("unix:/s", "unix:/s"),
    ("unix:/s:0", "unix:/s:0"), ("host:65535", "host:65535"), ("unix-abstract:s", "unix-abstract:s"), ("dns:///host:1", "dns:///host:1"), ("ipv4:10.0.0.1:1", "ipv4:10.0.0.1:1")])
def test_targets(target, checked):
    assert targets.check_target(target) == checked


@pytest.mark.parametrize("path", ["/run/x.sock", "./x.sock", "run/x.sock"])
def test_paths_are_no_targets(path):
    for connect in (warpline.connect, warpline.aio.connect):
        with pytest.raises(ValueError, match=f"expected unix:{path}"):
            connect(path)


@pytest.mark.parametrize("target", ["", "host:", "host:0", "host:65536", "127.0.0.1:x", "host:50051x", "[::1]:x", "127.0.0.1:115587", "[::1]:99999"])
def test_ports_that_are_none_are_refused(target):
    for connect in (warpline.connect, warpline.aio.connect):
        with pytest.raises(ValueError, match=f"target is {re.escape(repr(target))}: host:port"):
            connect(target)


def test_the_server_of_the_environment(daemon, monkeypatch):
    monkeypatch.setenv("WARPLINE_SERVER", daemon.address)
    with warpline.connect() as client, pickle.loads(pickle.dumps(client)) as again:
        monkeypatch.setenv("WARPLINE_SERVER", "")
        assert client.is_serving() and again.is_serving()
        assert pickle.loads(pickle.dumps(client)).is_serving()

    async def check():
        monkeypatch.setenv("WARPLINE_SERVER", daemon.address)
        async with warpline.aio.connect(timeout=30) as client:
            assert await client.is_serving()

    asyncio.run(check())
    for connect in (warpline.connect, warpline.aio.connect):
        for set_none in (lambda: monkeypatch.setenv("WARPLINE_SERVER", ""), lambda: monkeypatch.delenv("WARPLINE_SERVER")):
            set_none()
            with pytest.raises(ValueError, match=r"\$WARPLINE_SERVER is not set: connect\("):
                connect()
        monkeypatch.setenv("WARPLINE_SERVER", "http://host")
        with pytest.raises(ValueError, match="http://host.: host:port"):
            connect()


def test_clients_are_shown():
    client = warpline.connect("unix:/run/x.sock")
    assert repr(client) == "<warpline.Client unix:/run/x.sock, open>"
    client.close()
    assert repr(client) == "<warpline.Client unix:/run/x.sock, closed>"

    async def check():
        async with warpline.aio.connect("host", token="secret") as client:
            assert repr(client) == str(client) == "<warpline.aio.Client host:50051, open>"
        assert repr(client) == "<warpline.aio.Client host:50051, closed>"

    asyncio.run(check())


def test_urls_are_no_targets():
    for target in ("http://127.0.0.1:50051", "HTTPS://host", "grpc://host:1"):
        with pytest.raises(ValueError, match="host:port"):
            warpline.connect(target)
        with pytest.raises(ValueError, match="host:port"):
            warpline.aio.connect(target)


def test_run_takes_tensors(client):
    t = warpline.program().input(np.ones(3)).sum()
    for wrong in (np.ones(3), [t], None):
        with pytest.raises(TypeError, match=f"not {type(wrong).__name__}"):
            client.run(wrong)
        with pytest.raises(TypeError, match=f"not {type(wrong).__name__}"):
            client.run(t, wrong)


def test_calls_of_signal_handlers_do_not_mix_with_those_that_they_interrupt(client):
    """A handler runs where Python goes on after a call, which is where results are read."""
    large, small = np.arange(1024.0).reshape(32, 32), np.array([[7.0, 8.0, 9.0]])
    answers = []

    def handler(*_):
        answers.append(client.transpose(small))
        # Only now: where a call takes longer than that, handlers would interrupt one another without end.
        signal.setitimer(signal.ITIMER_REAL, 0.002)

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.002)
    try:
        end = time.monotonic() + 2
        while time.monotonic() < end:
            assert np.array_equal(client.transpose(large), large.T)
    finally:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert answers and all(np.array_equal(y, small.T) for y in answers)


def test_a_signal_handler_may_make_calls_while_one_begins_or_ends(client):
    # As in a handler that came while this thread held it.
    with client._connection._lock:
        assert np.array_equal(client.transpose(X), X.T)


def test_a_signal_handler_that_raises_ends_the_call(daemon):
    class Raised(Exception):
        pass

    def handler(*_):
        raise Raised

    before = signal.signal(signal.SIGALRM, handler)
    try:
        with warpline.connect(daemon.address) as c:
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            with pytest.raises(Raised):
                c.run(slow_program(daemon.backend))
            assert np.array_equal(c.transpose(X), X.T)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_names_that_c_would_end_early(client):
    with pytest.raises(ValueError, match="NUL"):
        client.is_serving("\0nonsense")
    with pytest.raises(ValueError, match="NUL"):
        client.tensor("a\0b")
    with pytest.raises(ValueError, match="NUL"):
        warpline.connect("unix:/tmp/s\0x")


def test_negative_zero_is_another_factor():
    def program(factor):
        return core.operation("scale", ("x",), (("factor", factor),), "")

    assert program(0.0) is program(0.0) and "-0.0" in program(-0.0).message
