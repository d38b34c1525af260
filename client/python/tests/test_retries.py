"""Calls that are made again: when, how often, and with what."""

import asyncio
import contextlib
import threading

import fake_server
import numpy as np
import pytest
from shared_arrays import LARGE, MIB, filled, values
from tensor_server import CODE, abort
from test_errors import X, message, refuse, response, retry_after
from test_tensors import wait_until

import warpline
from warpline.targets import MAX_RETRIES

pytestmark = pytest.mark.usefixtures("usual_sizes")

# Of a status that our server would send, so that gRPC has not made it up.
ANSWERED = message((1, 14))


@contextlib.contextmanager
def failing(*failures):
    """A server whose calls fail so, one after the other, and succeed then. A failure is a code, a code and the details,
    or the text of an INTERNAL. Yields the address, and the request ids that it has seen."""
    seen, left = [], list(failures)

    def answer(method, request, context):
        if method.endswith("/Check"):
            return b""
        seen.append(dict(context.invocation_metadata())["x-request-id"])
        failure = left.pop(0) if left else None
        if isinstance(failure, tuple):
            refuse(context, failure[0], "on purpose", failure[1])
        elif isinstance(failure, str):
            context.abort(CODE.INTERNAL, failure)
        elif failure is not None:
            context.abort(failure, "on purpose")
        return response()

    with fake_server.serving(answer) as address:
        yield address, seen


@pytest.fixture(params=["blocking", "asyncio"])
def transposed(request):
    """transposed(address, connect's arguments): a call of either client. Gives its result."""
    def blocking(address, timeout=None, **arguments):
        with warpline.connect(address, **arguments) as client:
            return client.transpose(X, timeout=timeout, request_id="same").tolist()

    def with_asyncio(address, timeout=None, **arguments):
        async def call():
            async with warpline.aio.connect(address, **arguments) as client:
                return (await client.transpose(X, timeout=timeout, request_id="same")).tolist()

        return asyncio.run(call())

    return blocking if request.param == "blocking" else with_asyncio


def test_unless_told_otherwise_unavailable_is_tried_again(transposed):
    with failing(CODE.UNAVAILABLE, (CODE.UNAVAILABLE, ANSWERED), (CODE.UNAVAILABLE, retry_after(0, 5_000_000)),
                 (CODE.RESOURCE_EXHAUSTED, retry_after(0, 6_000_000)), (CODE.ABORTED, retry_after(0, 7_000_000)),
                 CODE.CANCELLED) as (address, seen):
        assert transposed(address) == [1] and seen == ["same"] * (MAX_RETRIES + 1)


def test_a_stream_reset_as_its_window_was_lowered_is_tried_again(transposed):
    with failing("Received RST_STREAM with error code 1") as (address, seen):
        assert transposed(address) == [1] and seen == ["same"] * 2


def test_no_more_often_than_that(transposed):
    for arguments, count in (({}, MAX_RETRIES + 1), ({"max_retries": 2}, 3), ({"max_retries": 0}, 1)):
        with failing(*[(CODE.UNAVAILABLE, retry_after(0, 0))] * 20) as (address, seen):
            with pytest.raises(warpline.Unavailable):
                transposed(address, **arguments)
            assert len(seen) == count


@pytest.mark.parametrize("failure", [
    CODE.RESOURCE_EXHAUSTED, CODE.ABORTED, (CODE.CANCELLED, ANSWERED), CODE.INTERNAL, CODE.INVALID_ARGUMENT,
    CODE.FAILED_PRECONDITION, (CODE.INTERNAL, retry_after(0, 0)), "Received RST_STREAM with error code 11"])
def test_nothing_else_is(transposed, failure):
    with failing(failure) as (address, seen):
        with pytest.raises(warpline.Error):
            transposed(address)
        assert len(seen) == 1


def test_not_beyond_the_timeout(transposed):
    """The error comes at once, as waiting for so long would be in vain."""
    for code in (CODE.UNAVAILABLE, CODE.RESOURCE_EXHAUSTED):
        with failing((code, retry_after(6000, 0))) as (address, seen):
            with pytest.raises(warpline.Error) as caught:
                transposed(address, timeout=5000)
            assert caught.value.retry_after == 6000 and len(seen) == 1


def test_numbers_of_retries_that_are_none():
    for connect in (warpline.connect, warpline.aio.connect):
        for wrong, kind in (("3", TypeError), (1.5, TypeError), (None, TypeError), (-1, ValueError)):
            with pytest.raises(kind, match=f"max_retries is {wrong!r}"):
                connect("host:1", max_retries=wrong)


def test_closing_ends_the_wait_for_the_next_attempt():
    async def with_asyncio(address, seen):
        client = warpline.aio.connect(address, timeout=5000)
        task = asyncio.create_task(client.transpose(X))
        await asyncio.to_thread(wait_until, lambda: seen)
        await client.close()
        with pytest.raises(warpline.Cancelled, match="closed"):
            await task

    with failing(*[(CODE.UNAVAILABLE, retry_after(1000, 0))] * 2) as (address, seen):
        client, failed = warpline.connect(address, timeout=5000), []

        def work():
            with pytest.raises(warpline.Cancelled, match="closed"):
                client.transpose(X)
            failed.append(True)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        wait_until(lambda: seen)
        client.close()
        thread.join(30)
        assert failed
        seen.clear()
        asyncio.run(with_asyncio(address, seen))


# --- In shared memory


class Twice:
    """Makes the next Run of a RegionServer write its result and fail all the same. died: its regions too."""

    def __init__(self, server, died=False):
        def run(request, context):
            original(request, context)
            server.Run = original
            if died:
                server.drop_regions()
            context.abort(CODE.UNAVAILABLE, "the answer was lost")

        original, server.Run = server.Run, run


@pytest.fixture
def watched(regions):
    with warpline.connect(regions.address, timeout=30, pool_bytes=16 * MIB) as connected:
        yield connected


def test_each_attempt_of_a_call_has_another_number(regions, watched):
    out = watched.empty(LARGE[::-1])
    for died in (False, True):
        Twice(regions, died)
        x = values()
        assert watched.transpose(x, out=out) is out and np.array_equal(out, x.T)
    assert len(set(regions.withdrawals)) == len(regions.withdrawals)
    assert regions.seen == [("Run", 0, 1, 1)] * 4


@pytest.mark.parametrize("died", [False, True])
@pytest.mark.parametrize("shape", [(10, 10), (400, 400)])
def test_operands_that_the_first_attempt_has_overwritten(regions, watched, shape, died):
    """They lie, or were copied from, where the first attempt was to write: what is sent again is what they were."""
    for view in (lambda a: a[::-1], lambda a: a, lambda a: a[:, ::-1], lambda a: a.T):
        x = values(shape)
        a = filled(watched, x)
        Twice(regions, died)
        assert watched.transpose(view(a), out=a) is a
        assert np.array_equal(a, view(x).T)


def test_two_results_and_an_operand_in_one_array(regions, watched):
    x = values((400, 400))
    a = filled(watched, x)
    Twice(regions)
    half = watched.transpose(a[:200, ::-1], out=a.reshape(800, 200)[400:])
    assert np.array_equal(half, x[:200, ::-1].T) and np.array_equal(a[:200], x[:200])


def test_there_is_no_wait_for_an_attempt_that_nobody_makes(regions):
    """The server does not say that it is over, and the error is not one that another attempt could mend."""
    regions.confirms = False
    with warpline.connect(regions.address, timeout=5000) as client:
        client.transpose(values())
        regions.faults["Run"] = [abort(CODE.INTERNAL)]
        with pytest.raises(warpline.Internal):
            client.transpose(values())
        wait_until(lambda: regions.withdrawals)


def test_closing_ends_the_wait_for_the_end_of_an_attempt(regions):
    regions.confirms = False
    client, failed = warpline.connect(regions.address, timeout=5000), []
    client.transpose(values())
    regions.faults["Run"] = [abort(CODE.UNAVAILABLE)]

    def work():
        with pytest.raises(warpline.Cancelled, match="closed"):
            client.transpose(values())
        failed.append(True)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    wait_until(lambda: regions.withdrawals)
    client.close()
    thread.join(30)
    assert failed
    wait_until(lambda: not regions.regions)
