"""warpline.xp in threads and tasks: looks at one time, settings, and lines that are counted."""

import asyncio
import threading

import numpy as np
import pytest

import warpline.xp as xp

RANDOM = np.random.default_rng(13)


@pytest.fixture(scope="module")
def session(daemon):
    return xp.connect(daemon.address)


def in_threads(*functions):
    """Runs the functions at one time, and raises what one of them has raised."""
    raised = []

    def run(function):
        try:
            function()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def test_a_view_is_read_while_another_thread_computes_it(session):
    for _ in range(40):
        x = RANDOM.normal(size=1500)
        view = xp.reshape(xp.sort(xp.asarray(x))[10:1010], (10, 100))
        in_threads(lambda: np.testing.assert_array_equal(np.asarray(view), np.sort(x)[10:1010].reshape(10, 100)),
                   lambda: xp.compute(view))


def test_the_first_arrays_of_two_threads_have_one_session(session, monkeypatch):
    monkeypatch.setenv("WARPLINE_SERVER", session.address)
    for _ in range(10):
        monkeypatch.setattr(xp._sessions, "_default", [])
        made = []
        in_threads(*[lambda: made.append(xp.asarray([1.0]))] * 4)
        assert float(sum(made[1:], made[0])[0]) == 4


def test_profiles_within_each_other(session):
    x = xp.asarray(RANDOM.normal(size=1000))
    with xp.profile() as outer:
        with xp.profile() as inner:
            float(xp.sum(x))
        float(xp.sum(x * 2))
    assert (outer.total.requests, inner.total.requests) == (2, 1)


def test_settings_are_those_of_a_task(session):
    x = xp.asarray(np.eye(3))

    async def computes_here(ready, done):
        with xp.config(fallback="numpy"):
            ready.set()
            await done.wait()
            return np.asarray(xp.linalg.inv(x))

    async def is_refused(ready, done):
        await ready.wait()
        try:
            with pytest.raises(xp.Refused):
                xp.linalg.inv(x)
        finally:
            done.set()

    async def both():
        ready, done = asyncio.Event(), asyncio.Event()
        return await asyncio.gather(computes_here(ready, done), is_refused(ready, done))

    np.testing.assert_array_equal(asyncio.run(both())[0], np.eye(3))


def test_a_look_of_a_task_counts_for_its_line(session):
    x = xp.asarray(RANDOM.normal(size=1000))

    async def look():
        with xp.profile() as costs:
            await xp.compute_async(xp.sort(x))
            await asyncio.create_task(xp.compute_async(xp.cumulative_sum(x)))
        return costs

    lines = asyncio.run(look()).lines
    assert len(lines) == 2 and all(line.file == __file__ for line in lines)
