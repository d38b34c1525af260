"""warpline.xp: values and types are those of NumPy where the standard has NumPy's, and computed late."""

import asyncio
import copy
import gc
import inspect
import operator
import threading
import time

import numpy as np
import pytest
from daemon import Daemon

import warpline
import warpline.xp as xp
from warpline.xp import _sessions

RANDOM = np.random.default_rng(11)
CODES = ["?", "i1", "u1", "i4", "u4", "i8", "u8", "f4", "f8", "c8", "c16"]
# NumPy 1 has other names for these.
NUMPY = {"acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atan2": "arctan2",
         "atanh": "arctanh", "pow": "power", "bitwise_invert": "bitwise_not", "bitwise_left_shift": "left_shift",
         "bitwise_right_shift": "right_shift", "concat": "concatenate", "permute_dims": "transpose"}
FLOATS = "acos acosh asin asinh atan atanh cos cosh exp expm1 log log10 log1p log2 sin sinh sqrt tan tanh reciprocal".split()
REAL_FLOATS = "mean std var".split()
REALS = "ceil floor trunc max min argmax argmin sort argsort".split()
NUMBERS = "abs conj negative positive real round sign square sum prod isfinite isinf isnan".split()
ANY = "all any count_nonzero flip zeros_like ones_like tril triu".split()


@pytest.fixture(scope="module")
def session(daemon):
    return xp.connect(daemon.address)


@pytest.fixture
def own_sessions(monkeypatch):
    """The default session of the other tests stays as it is."""
    monkeypatch.setattr(_sessions, "_default", [])


@pytest.fixture
def requests(session, monkeypatch):
    """Counts requests that compute."""
    made = []
    send = session.client._send
    monkeypatch.setattr(session.client, "_send", lambda *call: (made.append(1), send(*call))[1])
    return made


def array(code, *shape):
    x = RANDOM.normal(size=shape) * 3
    if code == "?":
        return x > 0
    if code[0] == "c":
        return (x + 1j * RANDOM.normal(size=shape)).astype(code)
    return np.abs(x).astype(code) if code[0] == "u" else x.astype(code)


def kinds(name):
    of = {**dict.fromkeys(FLOATS, "fc"), **dict.fromkeys(REAL_FLOATS, "f"), **dict.fromkeys(REALS, "iuf"),
          **dict.fromkeys(NUMBERS, "iufc")}
    return of.get(name, "?iufc")


def agree(got, want, rtol=1e-5):
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-6)


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("name", FLOATS + REAL_FLOATS + REALS + NUMBERS + ANY)
def test_functions_of_one_array(session, name, code):
    x = array(code, 4, 5)
    function = getattr(xp, name)
    if code[0] not in kinds(name):
        if code[0] != "c":
            with pytest.raises(TypeError):
                function(xp.asarray(x))
        return
    numpy = np.reciprocal if name == "reciprocal" else getattr(np, NUMPY.get(name, name))
    with np.errstate(all="ignore"):
        want = x / np.abs(x) if name == "sign" and code[0] == "c" else numpy(x)  # NumPy 1 has another sign
    if name in ("sum", "prod") and code in ("f4", "c8"):
        want = want.astype(code)
    if name in ("argsort", "argmax", "argmin", "count_nonzero"):
        want = np.asarray(want, np.int64)
    if name in ("ceil", "floor", "trunc", "round"):
        want = want.astype(code)
    if name == "argsort":
        want = np.argsort(x, kind="stable")
    agree(function(xp.asarray(x)), want)


@pytest.mark.parametrize("a, b, common", [
    ("i1", "i4", "i4"), ("u1", "i1", "i2"), ("u4", "i8", "i8"), ("f4", "f8", "f8"), ("f4", "c16", "c16"), ("f8", "c8", "c16"), ("?", "?", "?")])
def test_promotion(session, a, b, common):
    x, y = array(a, 3, 3), array(b, 3)
    got = xp.bitwise_or(xp.asarray(x), xp.asarray(y)) if a == "?" else xp.asarray(x) + xp.asarray(y)
    assert got.dtype == np.dtype(common) == xp.result_type(xp.asarray(x), xp.asarray(y))


@pytest.mark.parametrize("a, b", [("i4", "f4"), ("?", "i4"), ("u8", "i8"), ("?", "f8"), ("i8", "c8")])
def test_what_is_not_promoted(session, a, b):
    with pytest.raises(TypeError, match="astype converts"):
        xp.asarray(array(a, 3)) + xp.asarray(array(b, 3))


def test_numbers(session):
    i, f, b = xp.asarray(array("i1", 3)), xp.asarray(array("f4", 3)), xp.asarray(array("?", 3))
    assert (i + 1).dtype == xp.int8 and (f + 1).dtype == xp.float32 and (2.5 - f).dtype == xp.float32 and (b & True).dtype == xp.bool
    for use in (lambda: i + 1.5, lambda: i + True, lambda: b + 1, lambda: i + 1j, lambda: i / 2, lambda: f & 1, lambda: f + np.ones(3)):
        with pytest.raises(TypeError):
            use()
    with pytest.raises(OverflowError, match="300 is out of bounds for int8"):
        i + 300
    agree(f * 2j, np.asarray(f) * np.complex64(2j))
    agree(1j - xp.astype(f, xp.float64), 1j - np.asarray(f).astype("f8"))


@pytest.mark.parametrize("key", [0, -1, slice(None, None, -2), (slice(1, 3), 2), (..., 0), None, (None, 1), (1, 2)])
def test_indices(session, key):
    x = array("f8", 4, 5)
    agree(xp.asarray(x)[key], x[key], 0)
    changed, y = x.copy(), xp.asarray(x)
    changed[key] = 7
    y[key] = 7.0
    agree(y, changed, 0)


def test_indices_that_are_arrays(session):
    x = array("f8", 4, 5)
    y, i, m = xp.asarray(x), np.array([2, 0, 2]), x > 0
    agree(y[xp.asarray(i)], x[i], 0)
    agree(y[:, xp.asarray(i)], x[:, i], 0)
    agree(y[xp.asarray(m)], x[m], 0)
    agree(y[xp.asarray(m[:, 0])], x[m[:, 0]], 0)
    agree(y[xp.asarray(m[:, 0]), 1], x[m[:, 0], 1], 0)
    assert y[xp.asarray(m)].shape == (int(m.sum()),)
    for key, value in ((m, 0.0), (m[:, 1], -1.0)):
        x[key], y[xp.asarray(key)] = value, value
        agree(y, x, 0)
    x[m] = np.arange(m.sum())
    y[xp.asarray(m)] = xp.astype(xp.arange(int(m.sum())), xp.float64)
    agree(y, x, 0)
    x[[0, 3]] = np.arange(5.0)
    y[xp.asarray([0, 3])] = xp.arange(5.0)
    agree(y, x, 0)
    with pytest.raises(TypeError, match="are not promoted"):
        xp.asarray(array("i4", 3))[0] = xp.asarray(1.5)


def test_changes_are_seen_by_all_names(session):
    x = xp.arange(3)
    y = x
    x += 1
    y[0] = 9
    assert np.asarray(x).tolist() == [9, 2, 3] and x is y
    z = x + 0
    x[1] = 0
    assert np.asarray(z).tolist() == [9, 2, 3]  # is no view
    with pytest.raises(TypeError, match="in place"):
        x += xp.asarray([[1, 2, 3]])


def test_joins_and_shapes(session):
    a, b = array("f4", 3, 4), array("f8", 3, 4)
    x, y = xp.asarray(a), xp.asarray(b)
    agree(xp.concat([x, y], axis=1), np.concatenate([a, b], 1))
    agree(xp.stack([x, y], axis=-1), np.stack([a, b], -1))
    agree(xp.permute_dims(x, (1, 0)), a.T)
    agree(x.T, a.T)
    agree(xp.reshape(x, (2, -1)), a.reshape(2, -1))
    agree(xp.squeeze(xp.expand_dims(x, axis=1), 1), a)
    agree(xp.roll(x, 2, axis=1), np.roll(a, 2, 1))
    agree(xp.repeat(x, xp.asarray([1, 0, 2]), axis=0), np.repeat(a, [1, 0, 2], 0))
    agree(xp.tile(x, (2, 1)), np.tile(a, (2, 1)))
    agree(xp.where(x > 0, x, 0.0), np.where(a > 0, a, np.float32(0)))
    agree(xp.clip(x, -1, 1), np.clip(a, -1, 1))
    agree(xp.take(x, xp.asarray([2, 0]), axis=1), a[:, [2, 0]])
    agree(xp.cumulative_sum(x, axis=1), np.cumsum(a, 1))
    agree(xp.diff(y, axis=0), np.diff(b, axis=0), 0)
    agree(x @ x.T, a @ a.T)
    agree(xp.tensordot(x, y, axes=2), np.tensordot(a, b, 2))
    agree(xp.vecdot(x, x), (a * a).sum(1))
    agree(xp.linalg.matrix_power(x @ x.T, 3), np.linalg.matrix_power(a @ a.T, 3))
    agree(xp.linalg.cross(x[:, :3], x[:, 1:]), np.cross(a[:, :3], a[:, 1:]))
    agree(xp.meshgrid(x[0, :], x[:, 0])[1], np.meshgrid(a[0], a[:, 0])[1])
    assert [part.shape for part in xp.unstack(x)] == [(4,)] * 3


def test_sets(session):
    x = np.array([3, 1, 3, 2, 1])
    values, places, inverse, counts = xp.unique_all(xp.asarray(x))
    want = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    for got, expected in zip((values, places, inverse, counts), want):
        agree(got, expected, 0)
    agree(xp.nonzero(xp.asarray(x - 1))[0], np.nonzero(x - 1)[0], 0)


def test_creation(session):
    for got, want in ((xp.zeros((2, 3)), np.zeros((2, 3))), (xp.full(2, 7), np.full(2, 7)), (xp.arange(2, 11, 3), np.arange(2, 11, 3)),
                      (xp.linspace(0, 1, 5), np.linspace(0, 1, 5)), (xp.eye(3, 4, k=1), np.eye(3, 4, 1)),
                      (xp.asarray([[1, 2], [3, 4]], dtype=xp.float32), np.array([[1, 2], [3, 4]], "f4")), (xp.asarray([]), np.zeros(0)),
                      (xp.ones((0, 3), dtype=xp.int8), np.ones((0, 3), "i1")), (xp.asarray(True), np.array(True))):
        agree(got, want, 0)
    x = np.arange(3)
    y = xp.asarray(x)
    x[0] = 9
    assert np.asarray(y).tolist() == [0, 1, 2]  # the elements were copied


def test_values_are_computed_when_they_are_looked_at(session, requests):
    big = RANDOM.normal(size=(500, 4))
    x = xp.asarray(big)
    z = (x - xp.mean(x, axis=0)) / xp.std(x, axis=0)
    assert requests == []
    agree(xp.sort(z[:, 0])[:3], np.sort((big[:, 0] - big[:, 0].mean()) / big[:, 0].std())[:3])
    assert len(requests) == 1
    assert bool(xp.all(xp.abs(xp.mean(z, axis=0)) < 1e-9)) and float(z[0, 0]) and int(xp.argmax(z[:, 1])) >= 0 and len(requests) == 4
    p = z.T @ z
    first, again = float(p[0, 0]), float(p[1, 1])
    assert len(requests) == 5 and first == pytest.approx(500) == again  # p is small: one fetch has it all


def test_what_is_read_again_is_computed_once(session, requests):
    x = xp.asarray(RANDOM.normal(size=(300, 300)))
    p = x @ x
    q = p + 1
    float(xp.sum(p))
    assert p._x._operation is None  # stays on the server, since q reads it
    float(xp.sum(q))
    assert len(requests) == 2


def test_places_of_a_small_array_take_one_request(session, requests):
    m = RANDOM.normal(size=(5, 6))
    x = xp.exp(xp.asarray(m))
    want = np.exp(m)
    assert [[float(x[i, j]) for j in range(6)] for i in range(5)] == pytest.approx(want)
    for key in ((slice(None, None, -1), slice(4, None, -2)), (slice(-3, -1), None, 2), (Ellipsis, slice(1, 4)), (3, slice(10, 2, -3)),
                (slice(2, 2), 1)):
        agree(x[key], want[key])
    agree(xp.reshape(x[1:4, ::2], (-1,))[2:], want[1:4, ::2].reshape(-1)[2:])
    assert len(requests) == 1


def test_k_means(session, requests):
    points = RANDOM.normal(size=(400, 3))
    x = xp.asarray(points)
    centres, want = x[:4, :], points[:4].copy()
    for _ in range(20):
        nearest = xp.argmin(xp.sum((x[:, None, :] - centres[None, :, :]) ** 2, axis=-1), axis=1)
        members = xp.astype(nearest[:, None] == xp.arange(4)[None, :], x.dtype)
        centres = (members.T @ x) / xp.sum(members, axis=0)[:, None]
        of = ((points[:, None] - want[None]) ** 2).sum(-1).argmin(1)
        want = np.stack([points[of == i].mean(0) for i in range(4)])
    agree(centres, want)
    assert len(requests) == 3


def test_dropped_arrays_leave_the_server(session):
    x = xp.asarray(RANDOM.normal(size=(100, 10)))
    before = len(session.client.tensors())
    y = x
    for _ in range(500):
        y = y * 0.5 + x
    xp.compute(y)
    del y
    gc.collect()
    end = time.monotonic() + 30
    while len(session.client.tensors()) > before + 2:  # the client drops tensors a little later
        assert time.monotonic() < end
        time.sleep(0.01)


def test_what_the_server_lacks(session):
    z = xp.asarray(np.array([1 + 1j, 2]))
    with pytest.raises(xp.Refused, match="cumulative_prod of complex numbers"):
        xp.cumulative_prod(z)
    with xp.config(fallback="numpy"):
        agree(xp.cumulative_prod(z), np.cumprod(np.array([1 + 1j, 2])))
    with pytest.raises(NotImplementedError):
        xp.cumulative_prod(z)


def test_namespace(session):
    x = xp.asarray([1.0, 2.0])
    assert x.__array_namespace__() is xp and x.__array_namespace__(api_version="2024.12") is xp
    with pytest.raises(ValueError, match="2024.12 is the latest"):
        x.__array_namespace__(api_version="2035.01")
    info = xp.__array_namespace_info__()
    assert info.default_dtypes()["integral"] == xp.int64 and set(info.dtypes(kind="bool")) == {"bool"}
    assert info.devices() and x.device in info.devices() and xp.zeros(3, device=x.device).device == x.device
    assert np.from_dlpack(x).tolist() == [1, 2] and x.to_device("cpu").tolist() == [1, 2]
    agree(xp.from_dlpack(np.arange(3.0)), np.arange(3.0), 0)
    assert repr(x).startswith("Array([1., 2.], shape=(2,), dtype=float64, device=")
    large = xp.zeros((400, 5))
    assert "..." in repr(large) and large._x._operation is not None  # looking at a corner fetches no more
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    with pytest.raises(TypeError, match="array of no axes"):
        bool(x)


def test_elements_that_do_not_fit_the_fallback(session):
    """Decompositions and transforms are refused, or NumPy's."""
    m = RANDOM.normal(size=(6, 4))
    x, square = xp.asarray(m), m.T @ m
    y, v = xp.asarray(square), RANDOM.normal(size=4)
    with pytest.raises(xp.Refused, match=r"the server has no linalg\.svd: xp\.config\(fallback='numpy'\)"):
        xp.linalg.svd(x)
    with pytest.raises(xp.Refused, match=r"no fft\.rfft"):
        xp.fft.rfft(x)
    with xp.config(fallback="numpy"):
        u, s, vh = xp.linalg.svd(x, full_matrices=False)
        agree((u * s) @ vh, m)
        agree(xp.linalg.svdvals(x), np.linalg.svd(m, compute_uv=False))
        values, vectors = xp.linalg.eigh(y)
        agree(y @ vectors, np.asarray(values) * np.asarray(vectors))
        agree(xp.linalg.eigvalsh(y), np.linalg.eigvalsh(square))
        q, r = xp.linalg.qr(x)
        agree(q @ r, m)
        lower = xp.linalg.cholesky(y)
        agree(lower @ lower.T, square)
        agree(xp.linalg.cholesky(y, upper=True), np.asarray(lower).T)
        agree(y @ xp.linalg.inv(y), np.eye(4))
        agree(xp.linalg.matrix_power(y, -2) @ y @ y, np.eye(4))
        agree(xp.linalg.pinv(x) @ x, np.eye(4))
        agree(xp.linalg.solve(y, xp.asarray(v)), np.linalg.solve(square, v))
        agree(xp.linalg.solve(y, xp.asarray(m.T)), np.linalg.solve(square, m.T))
        agree(xp.linalg.det(y), np.linalg.det(square))
        sign, log = xp.linalg.slogdet(-y)
        agree(sign * xp.exp(log), np.linalg.det(-square))
        assert int(xp.linalg.matrix_rank(xp.asarray(np.outer(v, v)))) == 1
        for name in ("fft", "ifft", "rfft", "ihfft", "fftn", "ifftn", "rfftn"):
            agree(getattr(xp.fft, name)(x), getattr(np.fft, name)(m))
        for name in ("irfft", "hfft", "irfftn"):
            agree(getattr(xp.fft, name)(x), getattr(np.fft, name)(m))
        assert xp.fft.fft(xp.astype(x, xp.float32)).dtype == xp.complex64
    for name in ("fftshift", "ifftshift"):
        agree(getattr(xp.fft, name)(x), getattr(np.fft, name)(m), 0)
        agree(getattr(xp.fft, name)(x, axes=0), getattr(np.fft, name)(m, 0), 0)
    agree(xp.fft.fftfreq(7, d=0.5), np.fft.fftfreq(7, 0.5), 0)
    agree(xp.fft.rfftfreq(7, d=0.5), np.fft.rfftfreq(7, 0.5), 0)


def test_functions_of_numpy_take_arrays_of_the_server(session, requests):
    m = RANDOM.normal(size=(5, 3))
    x = xp.asarray(m)
    for function, more in ((np.sum, {"axis": 0}), (np.mean, {"axis": 1, "keepdims": True}), (np.var, {"ddof": 1}), (np.exp, {}),
                           (np.sort, {"axis": 0}), (np.max, {}), (np.argmin, {"axis": 1}), (np.reshape, {}), (np.transpose, {})):
        args = (15,) if function is np.reshape else ((1, 0),) if function is np.transpose else ()
        got = function(x, *args, **more)
        assert isinstance(got, xp.Array)
        agree(got, function(m, *args, **more))
    agree(np.mean(x, 0), m.mean(0))
    agree(np.transpose(x), m.T, 0)
    agree(np.squeeze(x[:, None]), m, 0)
    for got, want in zip(np.broadcast_arrays(x, x[0]), np.broadcast_arrays(m, m[0])):
        agree(got, want, 0)
    agree(np.concatenate((x, x), 1), np.concatenate((m, m), 1), 0)
    agree(np.concatenate([x, x], axis=1), np.concatenate([m, m], axis=1), 0)
    agree(np.where(x > 0, x, 0.0), np.where(m > 0, m, 0.0), 0)
    agree(np.float64(2) * x, 2 * m)
    agree(np.linalg.norm(m), np.linalg.norm(m))
    assert np.shape(x) == (5, 3) and np.ndim(x) == 2 and np.size(x) == 15
    made = len(requests)
    with pytest.raises(TypeError, match="xp.asarray brings it to the server"):
        m + x
    for refused in (lambda: np.cov(x), lambda: np.add.reduce(x), lambda: np.sum(x, axis=0, initial=3)):
        with pytest.raises(xp.Refused, match="the server has no numpy"):
            refused()
    assert len(requests) == made
    with xp.config(fallback="numpy"):
        agree(np.cov(x), np.cov(m))
        agree(np.add.reduce(x), m.sum(0))
        agree(np.sum(x, axis=0, initial=3), m.sum(0) + 3)
        with pytest.raises(TypeError, match="writes into an array"):  # an array of a server does not change so
            np.fill_diagonal(x, 0)
        agree(x, m, 0)
    # What the standard lacks, but the server computes.
    agree(np.median(x, axis=0), np.median(m, axis=0))
    agree(np.nanmean(x), m.mean())
    agree(np.pad(x, 1), np.pad(m, 1), 0)
    agree(np.bincount(xp.asarray([1, 4, 1])), np.bincount([1, 4, 1]), 0)


def line_here(offset=0):
    return f"{__file__}:{inspect.currentframe().f_back.f_lineno + offset}"


def test_profile_tells_what_lines_cost(session):
    m = RANDOM.normal(size=(100, 5))
    with xp.profile() as p:
        x = xp.asarray(m)
        put = line_here(-1)
        y = xp.exp(x - xp.mean(x, axis=0))
        float(xp.sum(y))
        looked = line_here(-1)
        with xp.config(fallback="numpy"):
            xp.linalg.svd(xp.reshape(x, (10, 50)))
            fell = line_here(-1)
    costs = {str(line): cost for line, cost in p.lines.items()}
    assert set(costs) == {put, looked, fell}
    assert costs[put].requests == 1 and costs[put].sent_bytes == m.nbytes and costs[put].kernels == 0
    assert costs[looked].requests == 1 and costs[looked].received_bytes == 8 and costs[looked].kernels >= 2
    assert 0 < costs[looked].device_seconds < costs[looked].seconds
    assert costs[fell].fallbacks == 1 and costs[fell].received_bytes == m.nbytes
    assert p.total.requests == sum(cost.requests for cost in costs.values()) and looked in str(p)
    xp.sum(x)
    assert len(p.lines) == 3


def test_errors_name_lines(session):
    x = xp.asarray(np.ones((4, 4)))
    picked = xp.take(x, xp.asarray([1, 9]), axis=0) + 1
    line = line_here(-1)
    with pytest.raises(ValueError, match="made at") as error:
        xp.compute(xp.sum(picked))
    assert line in str(error.value)


def test_a_lost_lease_is_told(session):
    x = xp.asarray(RANDOM.normal(size=(50, 50)))
    session.client.tensor(x._x._operand.tensor.id).drop()
    with pytest.raises(xp.LeaseLost, match="the array is lost: make it again"):
        float(xp.sum(x))
    with pytest.raises(xp.LeaseLost):
        np.asarray(x)


def test_a_lost_server_is_told(own_sessions):
    with Daemon() as daemon:
        session = xp.connect(daemon.address, max_retries=0)
        x = xp.asarray(RANDOM.normal(size=(50, 50)), device=session)
    with pytest.raises(xp.ServerLost, match="make them again"):
        float(xp.sum(x))
    with pytest.raises(ConnectionError):
        np.asarray(x)


def test_a_full_server_is_told(own_sessions):
    with Daemon("--resident-bytes=1000000") as daemon:
        session = xp.connect(daemon.address, max_retries=0)
        with pytest.raises(xp.QuotaFull, match="drop arrays"):
            xp.asarray(np.zeros(1 << 20), device=session)


def test_threads_compute_together(session):
    m = RANDOM.normal(size=(200, 20))
    x = xp.asarray(m)
    shared = xp.exp(x * 0.5)
    found = []

    def work(i):
        y = shared
        for _ in range(20):
            y = y * 0.5 + x
        found.append((i, float(y[i, 0]), np.asarray(shared)))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    for i, value, whole in found:
        assert value == pytest.approx(np.exp(m[i, 0] * 0.5) * 0.5**20 + m[i, 0] * (2 - 0.5**19))
        np.testing.assert_allclose(whole, np.exp(m * 0.5))


def test_compute_async(session):
    x = xp.asarray(RANDOM.normal(size=(100, 10)))
    y, z = x @ x.T, xp.sum(x)

    async def both():
        await asyncio.gather(xp.compute_async(y), xp.compute_async(z))

    asyncio.run(both())
    assert y._x._operation is None and z._x._operation is None


def test_what_the_standards_own_tests_found(session):
    small, wide = np.array([200, 100], "u1"), xp.asarray([2**63 + 1, 1], dtype=xp.uint64)
    assert int(wide[0]) == 2**63 + 1
    for function in (xp.sum, xp.prod, xp.cumulative_sum, xp.cumulative_prod):
        got = function(xp.asarray(small), dtype=xp.uint8)
        agree(got, getattr(np, {"cumulative_sum": "cumsum", "cumulative_prod": "cumprod"}.get(function.__name__, function.__name__))(
            small, dtype="u1"), 0)
    m = np.arange(6.0).reshape(2, 3)
    x = xp.asarray(m)
    for mask in (True, False):
        agree(x[xp.asarray(mask)], m[np.array(mask)], 0)
        agree(xp.asarray(3.0)[xp.asarray(mask)], np.array(3.0)[np.array(mask)], 0)
    assert xp.can_cast(xp.bool, xp.float64) and not xp.can_cast(xp.float64, xp.int64)
    for limits in (xp.finfo(xp.float32), xp.finfo(xp.complex64), xp.finfo(xp.asarray([1.0], dtype=xp.float32))):
        assert type(limits.eps) is float and limits.bits == 32 and limits.dtype == xp.float32
    assert xp.iinfo(xp.int8)[:3] == (8, 127, -128)
    agree(xp.expand_dims(x, 1), m[:, None], 0)
    special = np.array([1, complex(np.nan, 0), complex(0, np.nan), complex(np.inf, np.nan), complex(1, -np.inf)])
    for name in ("isnan", "isinf", "isfinite"):
        agree(getattr(xp, name)(xp.asarray(special)), getattr(np, name)(special), 0)
    z = np.array([[1 + 1j, 2], [1 + 1j, -3]])
    found, want = xp.unique_all(xp.asarray(z)), np.unique(z, return_index=True, return_inverse=True, return_counts=True)
    for got, expected in zip(found, want):
        agree(got, expected.reshape(got.shape), 0)
    agree(xp.unique_counts(xp.asarray(z)).counts, want[3], 0)
    with xp.config(fallback="numpy"):
        for ord in (2, -2, "nuc"):
            agree(xp.linalg.matrix_norm(x, ord=ord), np.linalg.norm(m, ord))
        agree(xp.cumulative_prod(xp.asarray(z), axis=1), z.cumprod(1))
        agree(xp.cumulative_prod(xp.asarray(z[0]), include_initial=True), np.array([1, 1 + 1j, 2 + 2j]))


def test_what_a_last_review_found(session):
    narrow = xp.asarray(np.array([1, 100], np.int8))
    agree(xp.clip(narrow, xp.asarray([-1000, 50]), xp.asarray([1000, 1000])), np.array([1, 100], np.int8).clip(np.array([1, 50], np.int8)), 0)
    agree(xp.clip(narrow, np.int64(-1000), np.int64(50)), np.array([1, 50], np.int8), 0)
    x = xp.asarray(np.arange(12.0).reshape(3, 4))
    mask = xp.asarray(np.array([True, False, True]))
    x[mask, 0] = -1.0
    agree(x[:, 0], np.array([-1.0, 4.0, -1.0]), 0)
    for key in (xp.asarray(np.ones(4, bool)), xp.asarray(np.ones((3, 3), bool))):
        with pytest.raises(IndexError, match="a mask of the shape"):
            x[key]
        with pytest.raises(IndexError, match="a mask of the shape"):
            x[key] = 0.0
    agree(x[[True, False, True]], np.asarray(x)[[0, 2]], 0)
    nothing = xp.asarray(np.zeros((0, 4), bool))
    assert x[nothing].shape == (0,) and x[xp.asarray(np.zeros(0, bool))].shape == (0, 4)
    same = xp.asarray(x, copy=True)
    same[nothing] = 1.0
    agree(same, np.asarray(x), 0)
    assert x[True].shape == (1, 3, 4) and x[False].shape == (0, 3, 4)
    square = xp.eye(2)
    power = xp.linalg.matrix_power(square, 1)
    power += 1
    agree(square, np.eye(2), 0)
    assert np.isnan(float(xp.var(xp.asarray([1.0, 2.0, 3.0]), correction=3)))
    for copied in (copy.copy(x), copy.deepcopy(x)):
        copied += 1
        agree(copied, np.asarray(x) + 1, 0)
    writable = np.asarray(xp.asarray(np.ones(5000)) * 2)
    writable[0] = 0
    with pytest.raises(TypeError, match="an index is an integer"):
        operator.index(xp.asarray(True))
    assert xp.full(3, np.float32(1)).dtype == xp.float32 and xp.full(3, xp.asarray(True)).dtype == xp.bool
    agree(np.cumsum(x), np.asarray(x).cumsum())
    agree(np.take(x, [0, 1], axis=0), np.asarray(x)[:2], 0)
    agree(np.cbrt(x), np.cbrt(np.asarray(x)))
    index = xp.asarray([1 << 40])
    taken = xp.take(xp.asarray(np.ones(1000)), index)
    with pytest.raises(warpline.InvalidArgument, match=r"made at .*test_xp\.py:\d+"):
        float(taken[0])
    with pytest.raises(warpline.InvalidArgument, match=r"made at .*test_xp\.py:\d+"):
        x[index] = 1.0
        float(x[0, 0])
