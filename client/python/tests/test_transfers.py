"""Elements on their way, and what happens when something fails: with a server that fails as it is told."""

import threading
import time

import grpc
import numpy as np
import pytest
from tensor_server import abort
from test_errors import retry_after
from test_tensors import wait_until

import warpline

CODE = grpc.StatusCode
X = np.arange(3 << 20, dtype="u1")
FULL = abort(CODE.RESOURCE_EXHAUSTED, "full", retry_after(0, 1_000_000))


@pytest.fixture
def c(fake):
    with warpline.connect(fake.address, max_retries=3) as client:
        yield client


def test_every_channel_has_a_connection(fake, c):
    together = threading.Barrier(3)
    for method in ("Put", "Get"):
        fake.faults[method] = [lambda _: together.wait(30)] * 3
    with c.put(X, channels=3) as t:
        assert np.array_equal(t.numpy(channels=3), X)
    for method in ("Put", "Get"):
        assert len({peer for name, peer, _ in fake.asked if name == method}) == 3
    # Later transfers use them again. Other calls have one of their own, so as not to wait behind ranges.
    assert len({peer for _, peer, _ in fake.asked}) == 4


def test_calls_of_a_transfer_bear_its_id(fake, c):
    t = c.put(X, channels=3, request_id="mine")
    assert {id for _, _, id in fake.asked} == {"mine"} and fake.count("Put") == 3
    t.numpy(request_id="other")
    assert [id for name, _, id in fake.asked if name == "Get"] == ["other"]


@pytest.mark.parametrize("fault", [abort(CODE.UNAVAILABLE), FULL, "midway", "counted"])
@pytest.mark.parametrize("channels", [1, 3])
def test_a_range_is_put_again(fake, c, fault, channels):
    fake.faults["Put"] = [fault]
    with c.put(X, channels=channels) as t:
        assert fake.count("Put") == channels + 1
        # Only what may have been done twice is looked at.
        assert fake.count("Renew") == (fault == "counted")
        assert np.array_equal(t.numpy(), X)


@pytest.mark.parametrize("fault", [abort(CODE.UNAVAILABLE), FULL, "midway"])
@pytest.mark.parametrize("channels", [1, 3])
def test_a_range_is_got_again_from_where_it_ended(fake, c, fault, channels):
    t = c.put(X)
    fake.faults["Get"] = [fault]
    assert np.array_equal(t.numpy(channels=channels), X)
    assert fake.count("Get") == channels + 1


@pytest.mark.parametrize("fault, kind", [
    (abort(CODE.UNAVAILABLE), warpline.Unavailable), (abort(CODE.NOT_FOUND), warpline.NotFound),
    (abort(CODE.RESOURCE_EXHAUSTED), warpline.ResourceExhausted), ("counted", warpline.Unavailable),
    (abort(CODE.INVALID_ARGUMENT), warpline.InvalidArgument)])
@pytest.mark.parametrize("channels", [1, 3])
def test_a_failure_drops_the_tensor(fake, fault, kind, channels):
    with warpline.connect(fake.address, max_retries=0) as c:
        fake.faults["Put"] = [fault]
        with pytest.raises(kind):
            c.put(X, channels=channels)
        wait_until(lambda: not fake.stored)
        assert fake.count("Drop") == 1


def test_a_range_that_was_refused_in_the_second_attempt_is_missing(fake, c):
    fake.faults["Put"] = ["midway", abort(CODE.INVALID_ARGUMENT, "no")]
    with pytest.raises(warpline.InvalidArgument, match="no"):
        c.put(X, channels=3)
    wait_until(lambda: not fake.stored)


@pytest.mark.parametrize("channels", [1, 3])
def test_one_failure_cancels_the_others(fake, channels):
    """One call fails while the others hang: all of them end."""
    others, ended = threading.Semaphore(0), threading.Semaphore(0)

    def hang(context):
        context.add_callback(ended.release)
        others.release()
        time.sleep(0.01)
        while context.is_active():
            time.sleep(0.01)

    def fail(context):
        for _ in range(channels - 1):
            assert others.acquire(timeout=30)
        context.abort(CODE.INTERNAL, "defect")

    for method, start in (("Put", lambda c: c.put(X, channels=channels)), ("Get", None)):
        with warpline.connect(fake.address) as c:
            t = c.put(X)
            start = start or (lambda _: t.numpy(channels=channels))
            fake.faults[method] = [hang] * (channels - 1) + [fail]
            with pytest.raises(warpline.Internal, match="defect"):
                start(c)
            for _ in range(channels - 1):
                assert ended.acquire(timeout=30)
            wait_until(lambda: set(fake.stored) == {t.id})


def test_the_timeout_is_that_of_the_whole(fake):
    def slow(context):
        while context.is_active():
            time.sleep(0.01)

    with warpline.connect(fake.address, max_retries=1000) as c:
        t = c.put(X)
        for method, start in (("Put", lambda: c.put(X, timeout=0.3)), ("Get", lambda: t.numpy(timeout=0.3))):
            fake.faults[method] = [slow]
            with pytest.raises(warpline.DeadlineExceeded):
                start()
        # Attempts end with it too.
        fake.faults["Get"] = [abort(CODE.UNAVAILABLE)] * 100
        with pytest.raises((warpline.Unavailable, warpline.DeadlineExceeded)):
            t.numpy(timeout=0.3)
        assert len(fake.faults["Get"]) > 1


def test_closing_cancels_transfers(fake):
    going = threading.Event()

    def hang(context):
        going.set()
        while context.is_active():
            time.sleep(0.01)

    with warpline.connect(fake.address) as c:
        t = c.put(X)
        t.release()
        fake.faults["Get"] = [hang]
        thread = threading.Thread(target=lambda: (going.wait(30), c.close()))
        thread.start()
        with pytest.raises(warpline.Cancelled):
            t.numpy()
        thread.join()
        for use in (t.numpy, lambda: c.put(X), lambda: t.numpy(channels=3), c.tensors):
            with pytest.raises(warpline.Cancelled, match="closed"):
                use()


def test_closing_ends_the_wait_for_the_next_attempt(fake):
    with warpline.connect(fake.address, timeout=5000) as c:
        t = c.put(X)
        t.release()
        fake.asked.clear()
        fake.faults["Get"] = [abort(CODE.UNAVAILABLE, "later", retry_after(1000, 0))]
        failed = []

        def work():
            with pytest.raises(warpline.Cancelled, match="closed"):
                t.numpy()
            failed.append(True)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        end = time.monotonic() + 60
        while not fake.count("Get"):
            assert time.monotonic() < end, "no call of Get came"
            time.sleep(0.01)
        c.close()
        thread.join(30)
        assert failed


@pytest.mark.parametrize("fault", ["skewed", "short"])
def test_elements_that_are_not_where_they_should_be(fake, c, fault):
    t = c.put(X)
    fake.faults["Get"] = [fault]
    with pytest.raises(warpline.Internal, match="not valid"):
        t.numpy()


def test_incomplete_tensors_are_not_read(fake, c):
    t = c.put(X)
    fake.stored[t.id].ranges[:] = [(0, 5)]
    assert c.tensors()[0].missing_bytes == X.nbytes - 5
    for use in (t.numpy, lambda: c.reduce(t, "sum")):
        with pytest.raises(warpline.InvalidArgument, match="missing"):
            use()


def test_responses_without_the_tensor_that_was_to_stay(fake, c):
    fake.result, kept = (lambda array, options, context, name="": kept(array, v1_none, context, name)), fake.result
    v1_none = type("Options", (), {"sinks": []})
    for call in (lambda: c.transpose(np.ones((2, 2)), keep=True),
                 lambda: c.run(warpline.program().input(np.ones(3)).sum(), keep=True)):
        with pytest.raises(warpline.Internal, match="not on the server"):
            call()
