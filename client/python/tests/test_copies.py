import threading

import numpy as np
import pytest

from warpline import copies


@pytest.mark.parametrize("chunk", [1, 100, 1 << 12, 1 << 30])
@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (1, 1), (1000,), (1, 1, 700), (3, 1, 500), (2, 3, 400), (90, 7),
                                   (1, 5, 6, 7)])
def test_every_layout(chunk, shape, monkeypatch):
    monkeypatch.setattr(copies, "_CHUNK_BYTES", chunk)
    monkeypatch.setattr(copies, "_threads", lambda: 4)
    values = np.random.default_rng(1).integers(0, 1 << 30, shape)
    layouts = [values, np.array(values, order="F"), np.stack([values, values], -1)[..., 0], values.astype(">i8")]
    for source in [*layouts, np.broadcast_to(values.flat[0] if values.size else 7, shape)]:
        for to in (np.zeros(shape, int), np.zeros(shape[::-1], int).T, np.zeros((*shape, 2), int)[..., 1]):
            copies.copy(to, source)
            assert np.array_equal(to, source)


def test_work_is_shared_by_threads_and_done_once(monkeypatch):
    monkeypatch.setattr(copies, "_threads", lambda: 3)
    both, done = threading.Barrier(2, timeout=30), []

    def work(i):
        if i < 2:
            both.wait()  # Two threads at once, or never.
        done.append(i)

    copies.in_threads([lambda i=i: work(i) for i in range(50)])
    assert sorted(done) == list(range(50))


def test_failures_are_raised_when_nobody_works_any_more(monkeypatch):
    monkeypatch.setattr(copies, "_threads", lambda: 3)
    running, seen = [], []

    def fail():
        raise KeyError("first")

    def work(i):
        running.append(i)
        seen.append(i)
        running.remove(i)

    with pytest.raises(KeyError):
        copies.in_threads([lambda i=i: work(i) for i in range(20)] + [fail] + [lambda i=i: work(i) for i in range(20)])
    assert not running and len(seen) <= 40
