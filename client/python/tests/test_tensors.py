"""Resident tensors as users see them, with the server of these tests and with a real one."""

import copy
import gc
import pickle
import time

import elements
import numpy as np
import pytest

import warpline


def close(a, b, **tolerance):
    """Fetches tensors: not every server here computes what np.allclose takes."""
    return np.allclose(np.asarray(a), np.asarray(b), **tolerance)


def equal(a, b):
    return np.array_equal(np.asarray(a), np.asarray(b))


@pytest.fixture
def c(address):
    with warpline.connect(address) as client:
        yield client


@pytest.fixture
def rng():
    return np.random.default_rng(17)


def ids(client):
    return {info.id for info in client.tensors()}


def wait_until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "this does not come true"
        time.sleep(0.01)


@pytest.mark.parametrize("name", elements.ALL)
def test_elements_come_back(c, name, rng):
    for shape in ((), (0, 3), (1,), (5, 7), (2, 3, 4)):
        x = elements.any_bits(name, shape, rng)
        with c.put(x) as t:
            y = t.numpy()
            assert (t.dtype, t.shape, t.ndim, t.size, t.nbytes) == (x.dtype, x.shape, x.ndim, x.size, x.nbytes)
            assert y.dtype == x.dtype and y.shape == x.shape and equal(elements.bits(y), elements.bits(x))
            assert y.flags.writeable
        with c.put(x.T) as t:
            assert equal(elements.bits(t.numpy()), elements.bits(x.T))


def test_arrays_of_many_messages_over_several_channels(c, rng):
    x = rng.integers(0, 256, (5 << 20) + 13, dtype="u1")
    for channels in (None, 1, 3, 64):
        with c.put(x, channels=channels) as t:
            assert equal(t.numpy(channels=channels), x)


def test_any_layout(c, rng):
    base = rng.standard_normal((300, 40, 50))
    for view in (base.T, base[::2], base[:, ::-1], base.astype(">f8"), np.broadcast_to(base[0], (3, 40, 50)),
                 base[..., 1:]):
        with c.put(view, channels=2) as t:
            assert equal(t.numpy(), view)
            for out in (np.zeros(view.shape), np.zeros(view.shape, order="F"), np.zeros((*view.shape, 2))[..., 0]):
                assert t.numpy(out=out) is out and equal(out, view)
    with c.put([[1, 2], [3, 4]]) as t:
        assert t.numpy().tolist() == [[1, 2], [3, 4]]
        with pytest.raises(ValueError, match="out is"):
            t.numpy(out=np.zeros((2, 2), "f4"))


def test_numpy_reads_them(c, rng):
    x = rng.standard_normal((4, 5)).astype("f4")
    with c.put(x) as t:
        assert equal(np.asarray(t), x) and np.asarray(t).dtype == "f4"
        assert np.asarray(t, "f8").dtype == "f8"
        assert close(np.asarray(t @ t.T), x @ x.T, rtol=1e-5, atol=1e-5)
        with pytest.raises(ValueError, match="copy"):
            t.__array__(copy=False)


def test_they_stand_where_arrays_may(c, rng):
    x, y = rng.standard_normal((6, 4)), rng.standard_normal((4, 5))
    with c.put(x) as t, c.put(y) as u:
        assert close(c.gemm(t, u), x @ y) and close(c.gemm(x, u), x @ y)
        assert close(c.gemm(u, x, trans_a=True, trans_b=True), y.T @ x.T)
        assert equal(c.transpose(t), x.T) and equal(c.transpose(t, (1, -2)), x.T)
        assert close(c.reduce(t, "sum", -1), x.sum(1))
        p = warpline.program()
        assert close(c.run(p.gemm(t, y).sum(axis=0) + p.gemm(x, u)), (x @ y).sum(0) + x @ y)
        # And expressions of them.
        assert close(c.gemm(t, t.T), x @ x.T) and close(c.gemm(u.T, x.T), y.T @ x.T)
        assert close(c.transpose(t @ u), (x @ y).T) and close(c.reduce(t @ y, "max", 0), (x @ y).max(0))
        with c.gemm(t.T, x, keep=True) as d:
            assert close(d, x.T @ x)


def test_operators(c, rng):
    x, y = rng.integers(-9, 9, (6, 4)).astype("f4"), rng.integers(-9, 9, (4, 6)).astype("f4")
    with c.put(x) as t, c.put(y) as u:
        for got, want in [(t @ u, x @ y), (t @ y, x @ y), (x @ u, x @ y), (t + u.T, x + y.T), (t - x, 0 * x),
                          (x - t, 0 * x), (2 * t, 2 * x), (-t, -x), (t + 1, x + 1), (1 - t, 1 - x), (t.T, x.T),
                          (t.mT @ u.mT, x.T @ y.T), (t.sum(axis=1), x.sum(1)), (t.max(), x.max()),
                          ((t @ u) + (t @ y), 2 * (x @ y)), (t.transpose((1, 0)).sum(axis=0), x.sum(1))]:
            assert equal(c.run(got), want)
        assert equal(c.run(t * 2 - 1), 2 * x - 1)


def test_results_stay(c, rng):
    x = rng.standard_normal((6, 4))
    with c.put(x) as t:
        with c.gemm(t, x.T, keep=True) as d, c.transpose(x, keep=True, ttl=60) as y, \
                c.reduce(x.T, "sum", 0, keep=True) as s:
            assert isinstance(d, warpline.Tensor) and d.shape == (6, 6) and d.dtype == x.dtype
            assert close(d, x @ x.T) and equal(y, x.T) and close(s, x.sum(1))
            assert {d.id, y.id, s.id} <= ids(c)
            product, total = c.run(d @ d, (d @ d).sum(), keep=(True, False))
            assert isinstance(total, np.ndarray)
            assert close(product, (x @ x.T) @ (x @ x.T)) and close(total, np.sum(product.numpy()))
            both = c.run(d @ d, d.sum(), keep=True, ttl=60)
            assert all(isinstance(one, warpline.Tensor) for one in both)
            assert close(c.run(both[0] - product), 0)
        assert not {d.id, y.id, s.id} & ids(c)


def test_placeholders(c, rng):
    x, w = warpline.placeholder("x", "f8"), rng.standard_normal((4, 5))
    p = warpline.program((x @ w).sum(axis=1), x + 1)
    for rows in (3, 6):
        a = rng.standard_normal((rows, 4))
        with c.put(a) as t:
            for given in (a, np.asfortranarray(a), t):
                product, more = c.run(p, x=given)
                assert close(product, (a @ w).sum(1)) and close(more, a + 1)
            assert close(c.run(x @ w, x=t), a @ w)
    for wrong in ({}, {"y": w}, {"x": w, "y": w}):
        with pytest.raises(TypeError, match="placeholders are"):
            c.run(p, **wrong)
    with pytest.raises(TypeError, match="float64"):
        c.run(p, x=np.ones((3, 4), "f4"))
    # Two that are called alike are not told apart.
    with pytest.raises(ValueError, match="alike; a placeholder .* is one object"):
        c.run(x + warpline.placeholder("x"), x=w)


def test_names_of_placeholders():
    for name in ("", "a b", "x" * 65, "é", "out", "keep", "timeout"):
        with pytest.raises(ValueError, match="placeholder"):
            warpline.placeholder(name)
    with pytest.raises(TypeError, match="run"):
        np.asarray(warpline.placeholder("x"))


def test_arguments_that_do_not_go_together(c):
    x = np.ones((2, 2))
    p = warpline.program()
    s, t = p.input(x).sum(), p.input(x).max()
    for wrong in ("10m", [1], 1j):
        with pytest.raises(TypeError, match="ttl is .* a number of seconds"):
            c.put(x, ttl=wrong)
    with pytest.raises(ValueError, match="begins with '@'"):
        c.tensor("@0123")
    for wrong in (lambda: c.transpose(x, ttl=5), lambda: c.gemm(x, x, keep=True, out=x), lambda: c.put(x, ttl=0),
                  lambda: c.put(x, ttl=float("nan")), lambda: c.put(x, ttl=float("inf")), lambda: c.put(x, channels=0),
                  lambda: c.put(x, channels=65), lambda: c.run(s, t, keep=(True,)), lambda: c.run(s, keep="yes"),
                  lambda: c.run(s, t, keep=(True, False), out=(x, None)), lambda: c.run(warpline.program()),
                  lambda: c.transpose(x, keep=True, ttl=-1)):
        with pytest.raises(ValueError):
            wrong()
    with c.put(x) as tensor:
        for wrong in (lambda: c.put(tensor), lambda: c.put(tensor.T), lambda: c.run(x),
                      lambda: c.put(np.array([None])), lambda: c.tensor(tensor), lambda: c.run(tensor.id)):
            with pytest.raises(TypeError):
                wrong()


def test_drop(c):
    t = c.put(np.ones(3))
    assert t.id in ids(c)
    t.drop()
    assert t.id not in ids(c)
    t.drop()  # Once more is no error.
    for use in (t.numpy, t.renew, lambda: c.reduce(t, "sum"), lambda: c.tensor(t.id)):
        with pytest.raises(warpline.NotFound):
            use()
    with pytest.raises(RuntimeError, match="mine"), c.put(np.ones(3)) as t:
        raise RuntimeError("mine")
    wait_until(lambda: t.id not in ids(c))


def test_dropping_what_a_closed_client_had(address):
    with warpline.connect(address) as client:
        t, u = client.put(np.ones(3)), client.put(np.ones(3))
    t.drop()
    with u:
        pass
    with pytest.raises(warpline.Cancelled, match="the client is closed"):
        t.numpy()


def test_closed_clients(address):
    client = warpline.connect(address)
    client.close()
    for use in (lambda: client.empty(3), client.__enter__, lambda: client.put(np.ones(3)), client.info):
        with pytest.raises(warpline.Cancelled, match="the client is closed"):
            use()


def test_garbage_is_dropped(c):
    t = c.put(np.ones(3))
    e, id = t.sum(), t.id
    del t
    gc.collect()
    assert id in ids(c) and c.run(e) == 3
    del e
    gc.collect()
    wait_until(lambda: id not in ids(c))


def test_what_is_released_stays(address):
    with warpline.connect(address) as other:
        with warpline.connect(address) as client:
            t, gone = client.put(np.arange(3.0), ttl=300), client.put(np.ones(2))
            id = t.release()
            assert id == t.id
            del t
        assert gone.id not in ids(other)
        with other.tensor(id) as t:
            assert equal(t, [0, 1, 2]) and t.shape == (3,)
        del t
        gc.collect()
        assert id in ids(other)
        t = other.tensor(id, renew=True)
        assert 300 < t.renew(400).ttl <= 400
        t.drop()
        assert id not in ids(other)


def test_lists(c):
    before = ids(c)
    kept = [c.put(np.ones((2, i), "f4"), ttl=100) for i in range(8)]
    infos = c.tensors()
    assert [info.id for info in infos] == sorted(info.id for info in infos)
    found = {info.id: info for info in infos}
    assert found.keys() == before | {t.id for t in kept}
    for i, t in enumerate(kept):
        info = found[t.id]
        assert (info.dtype, info.shape, info.nbytes, info.missing_bytes) == (np.dtype("f4"), (2, i), 8 * i, 0)
        assert 0 < info.ttl <= 100 and info.device == t.device


def test_ids_are_not_shown(c):
    t = c.put(np.ones((2, 3), "f4"))
    for text in (repr(t), str(t), repr(t.T), repr(c.tensor(t.id)), repr(c.tensors())):
        assert t.id not in text
    assert repr(t) == f"<warpline.Tensor ...{t.id[-8:]} float32[2, 3] on device {t.device}>"
    assert t.id[-8:] in repr(c.tensors())


def test_pickling_a_tensor(c):
    t = c.put(np.ones(3))
    for save in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match=r"only this process renews .* t.release\(\) .* client.tensor\(id\)"):
            save(t)
    t.drop()


def test_leases_are_renewed(c):
    with c.put(np.ones(3), ttl=4) as t:
        def left():
            return next(info.ttl for info in c.tensors() if info.id == t.id)

        least = left()

        def renewed():
            nonlocal least
            now, before = left(), least
            least = min(now, least)
            return now > before

        wait_until(renewed)


def test_what_the_server_refuses(c):
    with pytest.raises(warpline.InvalidArgument):
        c.put(np.ones(3), ttl=1e9)
    with pytest.raises((warpline.FailedPrecondition, warpline.NotFound, warpline.InvalidArgument)):
        c.tensor("nonesuch")


def test_memory_that_cannot_be_written_is_no_out(c):
    data = np.arange(6, dtype="f4").tobytes()
    with c.put(np.ones(6, "f4")) as t:
        with pytest.raises(ValueError, match="writeable"):
            t.numpy(out=np.frombuffer(data, "f4"))
        with pytest.raises(TypeError, match="out is a list"):
            t.numpy(out=[0.0] * 6)
    assert data == np.arange(6, dtype="f4").tobytes()


def test_a_run_drops_what_it_is_the_last_to_use(daemon):
    x = np.arange(6.0).reshape(2, 3)
    with warpline.connect(daemon.address) as c:
        t, other = c.put(x), c.put(x)
        y = c.run(t @ t.T, keep=True, free_after=[t])
        assert ids(c) == {y.id, other.id}
        with pytest.raises(warpline.NotFound):
            t.numpy()
        t.drop()
        assert equal(c.run(y + 0, free_after=(y, other)), x @ x.T)
        assert not ids(c)
        with pytest.raises(TypeError, match="free_after is a Tensor: a sequence"):
            c.run(other.T, free_after=other)
        with pytest.raises(TypeError, match=r"free_after\[1\] is a str: a resident tensor"):
            c.run(c.put(x).T, free_after=[y, "id"])


@pytest.mark.parametrize("keep", [1, "yes", [True, False], None])
def test_keep_is_true_or_false(c, keep):
    with pytest.raises(ValueError, match="keep is .*: True, False, or one of them for each of 1 results"):
        c.run(c.put(np.ones(2)) + 0, keep=keep)
