"""The pool of a client that calls: who keeps what, and what happens where there is no room."""

import gc
import threading

import numpy as np
import pytest
from daemon import Daemon
from shared_arrays import LARGE, MIB, filled, shared, values
from test_tensors import wait_until

import warpline

pytestmark = pytest.mark.usefixtures("usual_sizes")


@pytest.fixture
def client(unix):
    with warpline.connect(unix, timeout=30, shared_memory="always") as connected:
        yield connected


def test_kept_results_beyond_a_quarter_are_copied_out(unix):
    with warpline.connect(unix, pool_bytes=16 * MIB, shared_memory="always") as client:
        x = values((256, 512))  # 1 MiB
        kept = [client.transpose(x * i) for i in range(8)]
        assert [shared(client, y) for y in kept] == [True] * 4 + [False] * 4
        assert all(np.array_equal(y, (x * i).T) for i, y in enumerate(kept))
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
        assert regions.seen == [("Run", 0, 1, 0)]
    with warpline.connect(regions.address, pool_bytes=MIB, shared_memory="always") as client:
        with pytest.raises(warpline.ResourceExhausted, match="pool_bytes"):
            client.transpose(x)
        # What had been taken has been given back.
        assert np.allclose(client.reduce(x, "sum", 0), x.sum(0))


def test_less_room_than_a_usual_region_has(tmp_path):
    """The quota of an owner, of which GetInfo says nothing."""
    (tmp_path / "tokens.toml").write_text('[owner.anonymous]\nregion-bytes = "32M"\n')
    x = values((512, 512))
    with Daemon(f"--listen=unix:{tmp_path}/s", f"--tokens={tmp_path}/tokens.toml") as daemon:
        with warpline.connect(daemon.address, shared_memory="always", max_retries=0) as client:
            kept = [client.transpose(x * i) for i in range(30)]
            assert shared(client, kept[0]) and all(np.array_equal(y, (x * i).T) for i, y in enumerate(kept))


def test_the_room_that_other_clients_leave(tmp_path):
    x = values((512, 512))
    # These three share a connection, so the server takes them for one client, which may have 9/16 of all.
    with (Daemon(f"--listen=unix:{tmp_path}/s", "--region-bytes=178M") as daemon,
          warpline.connect(daemon.address, shared_memory="always") as first,
          warpline.connect(daemon.address, shared_memory="always", max_retries=0) as second,
          warpline.connect(daemon.address, shared_memory="always", max_retries=0) as third):
        for client in (first, second, third):
            assert np.array_equal(client.transpose(x), x.T)


def test_the_room_of_a_client_that_has_closed(tmp_path):
    x = values((500, 500))
    with Daemon(f"--listen=unix:{tmp_path}/s", "--region-bytes=40M") as daemon:
        for mode in ("auto", "always"):
            for _ in range(20):
                with warpline.connect(daemon.address, shared_memory=mode, max_retries=0) as client:
                    assert np.array_equal(client.transpose(x), x.T)
        assert daemon.total("warpline_request_duration_seconds_count", 'source="region"') == 40


def test_each_call_has_its_own_refusal(tmp_path):
    with (Daemon(f"--listen=unix:{tmp_path}/s", "--region-bytes=7300K") as daemon,
          warpline.connect(daemon.address) as other,
          warpline.connect(daemon.address, shared_memory="always", max_retries=0) as client):
        held = other.empty(4 * MIB, "u1")
        assert shared(other, held)
        with pytest.raises(warpline.ResourceExhausted, match="48000000|48001024"):
            client.empty(48_000_000, "u1")
        with pytest.raises(warpline.ResourceExhausted, match="bytes of shared regions"):
            client.transpose(values((300, 200)))


def test_who_finds_no_room_is_told_once(tmp_path):
    x = values()
    with (Daemon(f"--listen=unix:{tmp_path}/s", "--region-bytes=7300K") as daemon,
          warpline.connect(daemon.address) as other, warpline.connect(daemon.address) as client):
        held = other.empty(4 * MIB, "u1")
        with pytest.warns(RuntimeWarning, match="elements travel in messages: .* bytes of shared regions") as told:
            for _ in range(3):
                assert np.array_equal(client.transpose(x), x.T)
        assert len(told) == 1 and shared(other, held)


@pytest.mark.parametrize("limit", [0, 4096])
def test_servers_with_no_or_little_memory_to_share(regions, limit, recwarn):
    regions.max_region_bytes = limit
    x = values()
    with warpline.connect(regions.address) as client:
        assert np.array_equal(client.transpose(x), x.T)
        assert regions.seen == [("Run", 1, 0, 0)]
        a = filled(client, x)
        assert np.array_equal(client.transpose(a), x.T)
    # Who finds a server without shared memory may not have asked for any.
    assert len(recwarn) == (1 if limit else 0)
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
