import elements
import numpy as np
import pytest

import warpline

AXES = [None, 0, 1, -1, (0, 2), (2, 1, 0)]
SHAPE = (5, 13, 7)


def output(name, op):
    """The type of a result."""
    if op in ("argmin", "argmax", "count_nonzero"):
        return "i64"
    if op in ("any", "all"):
        return "bool"
    if name in elements.FLOATS or op in ("min", "max"):
        return name
    if op in ("sum", "prod", "sumsq"):
        return "u64" if name[0] == "u" else "i64"
    return "f64"


def integers(x):
    """For sums modulo 2^64; floats as they are."""
    return x if x.dtype.kind == "f" else x.astype("u8" if x.dtype.kind == "u" else "i8")


REFERENCE = {
    "sum": lambda x, **o: integers(x).sum(**o),
    "prod": lambda x, **o: integers(x).prod(**o),
    "sumsq": lambda x, **o: (integers(x) ** 2).sum(**o),
    "norm1": lambda x, **o: np.abs(x.astype("f8")).sum(**o),
    "norm2": lambda x, **o: np.sqrt((x.astype("f8") ** 2).sum(**o)),
    "norminf": lambda x, **o: np.abs(x.astype("f8")).max(**o),
    "mean": lambda x, **o: x.astype("f8").mean(**o),
    "var": lambda x, **o: x.astype("f8").var(**o),
    "std": lambda x, **o: x.astype("f8").std(**o),
    "logsumexp": lambda x, **o: np.log(np.exp(x.astype("f8")).sum(**o)),
    **{op: getattr(np, op) for op in ("min", "max", "any", "all", "count_nonzero", "argmin", "argmax")},
}


def bound(x, name, op, want, out, count):
    """How far a result may be off: exact for what is not a float, else the accumulator's rounding and our own."""
    if out not in elements.EPS:
        return 0
    if op in ("min", "max", "norminf"):
        return elements.EPS[out] * np.abs(want)
    accumulator = elements.EPS["f64" if name not in ("f16", "bf16", "f32") else "f32"]
    total = np.abs(want) if op == "prod" else np.max(np.abs(x.astype("f8")), initial=1) * count
    total = total * np.max(np.abs(x.astype("f8")), initial=1) if op in ("sumsq", "var") else total
    if op in ("mean", "norm2", "std", "var"):
        total = total / max(count, 1) ** 0.5
    if op == "logsumexp":
        total = np.abs(want) + 20
    return 4 * (count + 2) * accumulator * total + 2 * elements.EPS[out] * np.abs(want)


def check(client, x, name, op, axis, keepdims=False, **options):
    y = client.reduce(x, op, axis, keepdims=keepdims, **options)
    v = elements.values(x)
    with np.errstate(over="ignore"):
        want = np.asarray(REFERENCE[op](v, axis=axis, keepdims=keepdims, **options))
    out = output(name, op)
    assert y.dtype == elements.ALL[out] and y.shape == want.shape
    if out in elements.EPS:
        count = v.size // max(want.size, 1)
        error = np.abs(elements.values(y) - want.astype("f8"))
        assert np.all(error <= bound(v, name, op, want, out, count)), f"off by {np.max(error)}"
    else:
        assert np.array_equal(y, want.astype(y.dtype))


@pytest.mark.parametrize("op", REFERENCE)
@pytest.mark.parametrize("name", elements.REAL)
def test_every_operation_and_type(client, name, op):
    rng = np.random.default_rng(6)
    x = elements.make(name, rng.uniform(0.9, 1.1, SHAPE)) if op == "prod" and name in elements.FLOATS else (
        elements.small(name, SHAPE, rng))
    for axis in AXES:
        if op in ("argmin", "argmax") and isinstance(axis, tuple) and len(axis) < x.ndim:
            continue
        if op in ("argmin", "argmax") and isinstance(axis, tuple):
            axis = None
        check(client, x, name, op, axis)
        check(client, x, name, op, axis, keepdims=True)
    check(client, x[0, 0, 0], name, op, None)


@pytest.mark.parametrize("name", elements.INTEGERS)
def test_sums_are_modular(client, name):
    x = elements.any_bits(name, (50, 9), np.random.default_rng(7))
    for op in ("sum", "prod", "sumsq", "min", "max", "argmin", "argmax", "count_nonzero"):
        check(client, x, name, op, 0)


@pytest.mark.parametrize("op", ["var", "std"])
def test_ddof(client, op):
    x = np.random.default_rng(8).standard_normal((6, 9))
    for ddof in (0, 1, 3):
        check(client, x, "f64", op, 1, ddof=ddof)
    assert np.isnan(client.reduce(np.ones((3, 1)), op, 1, ddof=1)).all()


def test_results_of_another_type(client):
    rng = np.random.default_rng(9)
    x = rng.integers(-9, 9, (4, 30)).astype("i2")
    for dtype in ("i4", "f4", "f8", "i1"):
        y = client.reduce(x, "sum", 1, dtype=dtype)
        assert y.dtype == dtype and np.array_equal(y, x.sum(1).astype(dtype))
    half = elements.small("f16", (3, 40), rng)
    y = client.reduce(half, "sum", 1, dtype="f4")
    assert y.dtype == np.float32 and np.allclose(y, half.astype("f8").sum(1), rtol=1e-5)
    y = client.reduce(half, "mean", dtype="bfloat16")
    assert y.dtype == warpline.bfloat16 and y.shape == ()


def test_nan_and_ties(client):
    x = np.array([[1, np.nan, 3, np.nan], [5, 2, 2, 5], [-np.inf, np.inf, 0, 0]], "f4")
    for op in ("min", "max", "argmin", "argmax", "any", "all", "count_nonzero", "sum"):
        with np.errstate(invalid="ignore"):
            want = getattr(np, op)(x, axis=1)
        y = client.reduce(x, op, 1)
        assert y.dtype == elements.ALL[output("f32", op)]
        assert np.array_equal(y, want, equal_nan=op in ("min", "max", "sum"))


def test_empty_axes(client):
    x = np.zeros((3, 0), "f4")
    for op, want in [("sum", 0), ("prod", 1), ("any", False), ("all", True), ("count_nonzero", 0), ("norm1", 0),
                     ("norm2", 0), ("sumsq", 0), ("logsumexp", -np.inf)]:
        assert client.reduce(x, op, 1).tolist() == [want] * 3
    for op in ("mean", "var", "std"):
        assert np.isnan(client.reduce(x, op, 1)).all()
    for op in ("min", "max", "argmin", "argmax", "norminf"):
        with pytest.raises(warpline.InvalidArgument):
            client.reduce(x, op, 1)
    assert client.reduce(x, "min", 0).shape == (0,)


def test_every_layout(client):
    base = np.random.default_rng(10).integers(0, 1000, (6, 5, 8))
    views = [base.T, base.transpose(1, 2, 0), base[..., :7], base[..., 1:].swapaxes(1, 2), base[::2], base[:, ::-1],
             base.astype(">i8")]
    for view in views:
        for axis in AXES + [(0, 1), (1, 2)]:
            for keepdims in (False, True):
                want = view.sum(axis=axis, keepdims=keepdims)
                assert np.array_equal(client.reduce(view, "sum", axis, keepdims=keepdims), want)
        for axis in (None, 0, 1, 2):
            assert np.array_equal(client.reduce(view, "argmax", axis), view.argmax(axis))


def test_axes_of_any_kind(client):
    x = np.arange(24.0).reshape(2, 3, 4)
    p = warpline.program()
    for view in (x, x.T):
        for make in (list, tuple, np.array, iter, set):
            assert np.array_equal(client.reduce(view, "sum", make([0, 2])), view.sum((0, 2)))
            assert np.array_equal(client.run(p.reduce(view, "sum", make([0, 2]))), view.sum((0, 2)))
        for axis in (np.int64(1), np.array(1)):
            assert np.array_equal(client.reduce(view, "sum", axis), view.sum(1))
    for axis in (1.0, "1", [1.0]):
        with pytest.raises(TypeError):
            client.reduce(x, "sum", axis)


def test_words(client):
    with pytest.raises(ValueError, match="logsumexp"):
        client.reduce(np.ones(3), "median")
    with pytest.raises(ValueError, match="empty"):
        client.reduce(np.ones(3), "sum", ())
