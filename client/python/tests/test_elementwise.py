"""Elementwise operators and functions: they give what NumPy gives, and neighbours are one step."""

import json
import operator
import warnings

import numpy as np
import pytest

import warpline
from warpline import elementwise
from warpline.graphs import graph_of


@pytest.fixture(scope="module")
def client(daemon):
    with warpline.connect(daemon.address) as connected:
        yield connected


def steps_of(*expressions):
    """The kinds of the steps, of maps with the number of their nodes."""
    steps = json.loads(graph_of(expressions).program.message)["steps"]
    return [f"map {len(step['map']['nodes'])}" if "map" in step else next(k for k in step if k in (
        "transpose", "gemm", "reduce", "cast", "scale", "add")) for step in steps]


INTEGERS = np.array([[-7, -3, -1], [0, 1, 2], [3, 5, 100]])
TYPES = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]
BINARY = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.eq,
          operator.ne, operator.lt, operator.le, operator.gt, operator.ge, np.maximum, np.minimum]


def array(dtype, values=INTEGERS):
    return (np.abs(values) if np.dtype(dtype).kind == "u" else values).astype(dtype)


def same(got, want):
    assert got.dtype == want.dtype and got.shape == want.shape
    if want.dtype.kind == "f":
        np.testing.assert_allclose(got, want, rtol=4 * np.finfo(want.dtype).eps)
    else:
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("function", BINARY, ids=lambda f: f.__name__)
def test_binary_operators(client, function, dtype):
    x, y = array(dtype), array(dtype, INTEGERS.T[::-1])
    with np.errstate(all="ignore"):
        p = warpline.program()
        if np.dtype(dtype).kind == "f" and function in (operator.floordiv, operator.mod):
            y = np.where(y == 0, 2, y).astype(dtype)
        same(client.run(function(p.input(x), y)), function(x, y))
        same(client.run(function(x, p.input(y))), function(x, y))
        if function not in (operator.sub, operator.floordiv, operator.mod):
            same(client.run(function(p.input(x), 3)), function(x, 3))
            same(client.run(function(2, p.input(np.maximum(y, 1)))), function(2, np.maximum(y, 1)))


@pytest.mark.parametrize("dtype", [t for t in TYPES if t[0] != "f"])
def test_bits_of_integers(client, dtype):
    x, y = array(dtype), array(dtype, INTEGERS.T % 7)
    p = warpline.program()
    for function in (operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift):
        same(client.run(function(p.input(x), y)), function(x, y))
    same(client.run(~p.input(x)), ~x)


def test_shifts_by_the_width_and_more(client):
    x = np.array([-5, 5, 1], "i4")
    t = warpline.program().input(x)
    assert client.run(t << 32).tolist() == [0, 0, 0] and client.run(t >> 40).tolist() == [-1, 0, 0]


def test_divisions_of_integers_by_zero(client):
    t = warpline.program().input(np.array([-5, 0, 7]))
    assert client.run(t // 0).tolist() == client.run(t % 0).tolist() == [0, 0, 0]
    least = np.array([np.iinfo("i8").min])
    assert client.run(warpline.program().input(least) // -1) == least


def test_powers(client):
    x = np.array([1.5, 2, -3], "f4")
    t, i = warpline.program().input(x), warpline.program().input(np.array([-2, 0, 3]))
    same(client.run(t ** 2), x ** 2)
    same(client.run(abs(t) ** 0.5), np.abs(x) ** 0.5)
    same(client.run(t ** 3), x ** np.float32(3))
    same(client.run(2.0 ** t), np.float32(2) ** x)
    assert client.run(i ** 3).tolist() == [-8, 0, 27]
    with pytest.raises(warpline.InvalidArgument, match="the power of an integer is -1"):
        client.run(i ** -1)


UNARY = ["exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "sin", "cos", "tan", "arcsin", "arccos",
         "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "floor", "ceil", "trunc", "rint", "absolute",
         "negative", "sign", "isnan", "isinf", "isfinite", "signbit", "square", "reciprocal"]


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_numpy(client, name):
    function = getattr(np, name)
    for dtype in ("f4", "f8"):
        x = np.array([-np.inf, -2.5, -1, -0.5, -0.0, 0.0, 0.25, 0.5, 1, 1.5, 3, np.inf, np.nan], dtype)
        with np.errstate(all="ignore"):
            got, want = client.run(function(warpline.program().input(x))), function(x)
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=8 * np.finfo(dtype).eps, atol=np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "u2", "i4", "u8"])
def test_functions_of_integers_give_floats_as_in_numpy(client, dtype):
    x = np.array([0, 1, 1] if dtype == "?" else [0, 1, 5], dtype)
    got, want = client.run(np.exp(warpline.program().input(x))), np.exp(x)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=2 * np.finfo(want.dtype).eps)
    assert client.run(warpline.program().input(x) / 2).dtype == (x / 2).dtype


def test_functions_of_two_operands(client):
    x, y = np.array([1.0, -2, 0.5, np.nan]), np.array([2.0, 3, -0.0, 1])
    t, u = warpline.program().input(x), y
    for function in (np.arctan2, np.hypot, np.logaddexp, np.copysign, np.nextafter, np.remainder):
        same(client.run(function(t, u)), function(x, y))


def test_logic(client):
    a, b = np.array([True, True, False, False]), np.array([True, False, True, False])
    p = warpline.program()
    t = p.input(a)
    for function in (operator.and_, operator.or_, operator.xor, np.logical_and, np.logical_or, np.logical_xor, operator.add,
                     operator.mul):
        same(client.run(function(t, b)), function(a, b))
    same(client.run(~t), ~a)
    x = np.array([0.0, 2, np.nan, -1])
    same(client.run(np.logical_and(p.input(x), b)), np.logical_and(x, b))
    with pytest.raises(TypeError, match="boolean subtract"):
        t - b


def test_where_and_clip(client):
    x = np.array([-2.0, -0.5, 0, 3, np.nan], "f4")
    t = warpline.program().input(x)
    for where in (np.where, warpline.where):
        same(client.run(where(t > 0, t, 0)), np.where(x > 0, x, np.float32(0)))
        same(client.run(where(t > 0, 1, 0)), np.where(x > 0, 1, 0))
        same(client.run(where(t, x, t * 2)), np.where(x, x, x * 2))
    same(client.run(np.clip(t, -1, 1)), np.clip(x, -1, 1))
    same(client.run(t.clip(max=0)), np.clip(x, None, 0))
    with pytest.raises(TypeError, match="where takes a tensor or an expression"):
        warpline.where(x > 0, x, 0)


def test_complex_numbers(client):
    x, y = np.array([1 + 2j, -3j, 2.5]), np.array([2 - 1j, 4, 1j])
    t = warpline.program().input(x)
    for function in (operator.add, operator.sub, operator.mul, operator.truediv):
        np.testing.assert_allclose(client.run(function(t, y)), function(x, y), rtol=1e-15)
    for got, want in ((t.real, x.real), (t.imag, x.imag), (t.conj(), x.conj()), (-t, -x), (t == y, x == y), (t * 2j, x * 2j),
                      (abs(t), np.abs(x))):
        same(client.run(got), want)
    functions = (np.exp, np.expm1, np.log, np.log1p, np.log2, np.log10, np.sqrt, np.sin, np.cos, np.tan, np.arcsin, np.arccos,
                 np.arctan, np.sinh, np.cosh, np.tanh, np.arcsinh, np.arccosh, np.arctanh)
    for function in functions:
        np.testing.assert_allclose(client.run(function(t * 0.3)), function(x * 0.3), rtol=1e-14)
    np.testing.assert_allclose(client.run(np.sign(t)), x / abs(x), rtol=1e-15)
    same(client.run(np.rint(t * 1.3)), np.rint(x * 1.3))
    with pytest.raises(TypeError, match="numpy.exp2 is not computed on the server: .* is no array before it is computed"):
        np.exp2(t)
    with client.put(x) as resident, pytest.warns(warpline.WarplinePerformanceWarning, match="numpy.exp2"):
        np.testing.assert_array_equal(np.exp2(resident), np.exp2(x))


def test_powers_of_complex_numbers(client):
    x = np.array([1j, 1 + 2j, -0.5 - 1j, 0, 0, 2])
    y = np.array([2, 0.5 + 1j, -3, 0, 2, 120])
    p = warpline.program()
    np.testing.assert_allclose(client.run(p.input(x) ** y), x ** y, rtol=1e-14)
    assert client.run(p.input(x) ** 2)[0] == -1  # whole powers are products
    assert np.isnan(client.run(p.input(x) ** -1.0)[3])


def test_order_of_complex_numbers(client):
    x = np.array([[2 + 1j, 1 + 3j, 1 - 1j, 2 + 1j], [0, complex(np.nan, 1), -1j, complex(-0.0, -2)],
                  [complex(np.nan, 0), complex(1, np.nan), complex(0, np.nan), complex(np.nan, np.nan)]])
    p = warpline.program()
    for axis in (0, 1):
        same(client.run(np.argsort(p.input(x), axis=axis)), np.argsort(x, axis=axis, kind="stable"))
    same(client.run(np.sort(p.input(x[0]))), np.sort(x[0]))
    values, places, inverse, counts = client.run(*np.unique(p.input(x[0]), True, True, True))
    want = np.unique(x[0], True, True, True)
    for got, expected in zip((values, places, inverse, counts), want):
        same(got, expected.reshape(got.shape))


def test_broadcasting(client):
    x, y, z = np.arange(6.0).reshape(2, 3), np.arange(3.0), np.arange(8.0).reshape(4, 2, 1)
    p = warpline.program()
    same(client.run(p.input(x) * y + z), x * y + z)
    with pytest.raises(warpline.InvalidArgument, match="cannot be broadcast"):
        client.run(p.input(x) + np.arange(4.0))


def test_neighbours_are_one_step():
    p = warpline.program()
    x, m = p.input(np.ones((4, 3), "f4")), p.input(np.ones(3, "f4"))
    assert steps_of((x - m) / 2 + 1) == ["map 5"]
    assert steps_of((x - x.mean(axis=0)) / x.std(axis=0)) == ["reduce", "reduce", "map 2"]
    # Both are returned.
    y = x * 2
    assert steps_of(y, y + 1) == ["map 4"]  # with two results
    # A map of fewer elements is computed once, and not for each element of the larger one.
    assert steps_of(x + np.exp(m)) == ["map 1", "map 1"]
    # Several readers in one map.
    y = np.exp(x)
    assert steps_of(y / (y + 1)) == ["map 4"]
    # Readers in different steps.
    assert steps_of(y.sum() + (y * 2).sum()) == ["map 1", "reduce", "map 2", "reduce", "map 1"]
    assert steps_of(x.astype("f8")) == ["cast"] and steps_of(x.astype("f8") + 1) == ["map 3"]
    # What has a name, or a variant, is a step of its own.
    named = p.elementwise("exp", x, name="e")
    assert steps_of(named + 1) == ["map 1", "map 2"]


def test_long_chains_are_cut(client):
    x = np.full(5, 0.5)
    e, want = warpline.program().input(x), x
    for i in range(300):
        e, want = e * 0.5 + i, want * 0.5 + i
    assert len(steps_of(e)) > 1
    same(client.run(e), want)


def test_many_inputs_are_cut(client):
    p, arrays = warpline.program(), [np.full(3, float(i)) for i in range(100)]
    e = p.input(arrays[0])
    for x in arrays[1:]:
        e = e + x
    assert len(steps_of(e)) > 3
    same(client.run(e), sum(arrays))


def test_operations_by_name(client):
    p = warpline.program()
    assert client.run(p.elementwise("erf", np.zeros(2))).tolist() == [0, 0]
    for name in ("constant", "cast", "nothing"):
        with pytest.raises(TypeError, match=f"there is no elementwise operation '{name}'"):
            p.elementwise(name, np.zeros(2))
    with pytest.raises(TypeError, match="exp takes 1 operands, not 2"):
        p.elementwise("exp", np.zeros(2), 1)
    with pytest.raises(TypeError, match="add of numbers needs no server"):
        p.elementwise("add", 1, 2)


def test_every_operation_of_the_table_runs(client):
    p = warpline.program()
    operand = {"b": np.array([True, False]), "i": np.array([1, 2]), "f": np.array([0.5, 1.0]), "c": np.array([1j, 2])}
    for name, row in elementwise.ROWS.items():
        if row.operands == 0 or name == "cast":
            continue
        for kind in set(row.takes) & set(operand):
            x = operand[kind]
            assert client.run(p.elementwise(name, *[x] * row.operands)).shape == (2,), (name, kind)


@pytest.mark.parametrize("dtype", ["f4", "i4", "?"])
def test_reductions_with_a_mask(client, dtype):
    x = (np.arange(24).reshape(4, 6) % 5).astype(dtype)
    mask = np.arange(24).reshape(4, 6) % 3 == 0
    with client.put(x) as t, client.put(mask) as m:
        for chosen, where in ((m, mask), (mask, mask), (t != 0, x != 0), (mask[:, :1], mask[:, :1])):
            for axis in (None, 0, 1):
                for function in (np.sum, np.prod, np.mean, np.any, np.all):
                    with np.errstate(all="ignore"), warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        want = function(x, axis=axis, where=where)
                    same(client.run(function(t, axis=axis, where=chosen)), np.asarray(want))
        with pytest.raises(ValueError, match="max with where needs an initial"):
            t.reduce("max", where=m)
        for options in ({"name": "s"}, {"variant": "reference"}):
            with pytest.raises(TypeError, match="which have no variant"):
                t.sum(where=m, **options)
    with pytest.raises(TypeError, match="needs the shape"):
        warpline.placeholder("p", "f4").mean(where=mask)


def test_a_masked_mean_of_f16_does_not_overflow(client):
    x = np.full(100_000, 3, "f2")
    with client.put(x) as t:
        same(np.asarray(t.mean(where=t > 0)), np.asarray(np.mean(x, where=x > 0)))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_bits_do_not_depend_on_the_place_or_on_the_map(client, dtype):
    x = np.linspace(-4, 4, 1100).astype(dtype)
    with client.put(x) as t, np.errstate(all="ignore"):
        for op, row in elementwise.ROWS.items():
            if row.operands != 1 or "f" not in row.takes or op == "cast":
                continue
            def function(y, op=op):
                return y.program.elementwise(op, y)
            alone = client.run(function(t))
            for part in (slice(1, None), slice(3, 20), slice(7, 8), slice(None, None, -1), slice(None, None, 3)):
                assert client.run(function(t[part])).tobytes() == alone[part].tobytes(), (op, part)
            among = client.run(warpline.where(function(t) == function(t), function(t), function(t)))
            assert among.tobytes() == alone.tobytes(), op


@pytest.mark.parametrize("dtype", ["u1", "i4", "i8"])
def test_comparisons_with_integers_that_the_type_does_not_hold(client, dtype):
    x = np.array([0, 3, 100], dtype)
    with client.put(x) as t:
        for number in (-2**70, 2**70, np.iinfo(dtype).max + 1, np.iinfo(dtype).min - 1):
            for function in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge):
                assert client.run(function(t, number)).tolist() == [function(int(i), number) for i in x]
                assert client.run(function(number, t)).tolist() == [function(number, int(i)) for i in x]


def test_what_leaves_elements_as_they_are_can_be_computed(client):
    x = np.arange(6, dtype="f4").reshape(2, 3)
    with client.put(x) as t:
        for e in (+t, np.positive(t), t.clip(), t.real, t.conj(), t[...], t.astype("f4")):
            same(np.asarray(e), x)
        same(np.asarray(t.imag), np.zeros_like(x))
        same(np.asarray(np.isreal(t)), np.ones(x.shape, bool))
        same(np.asarray(np.zeros_like(t)), np.zeros_like(x))
        same(np.asarray(np.full_like(t + 1, 7)), np.full_like(x, 7))


def test_numbers_of_python(client):
    with client.put(np.arange(4.0)) as t:
        assert float(t.sum()) == 6.0 and int(t[3]) == 3 and t.mean().item() == 1.5 and complex(t[1]) == 1
        assert (t + 1).size == 4 and warpline.placeholder("x").size is None


def test_products_of_vectors(client):
    a, v = np.arange(12.0).reshape(3, 4), np.arange(4.0)
    with client.put(a) as t, client.put(v) as u:
        same(np.asarray(t @ v), a @ v)
        same(np.asarray(v @ t.T), v @ a.T)
        same(np.asarray(u @ u), np.asarray(v @ v))
        same(np.asarray(np.matmul(t, u)), a @ v)
        same(np.asarray(t[None] @ u), a[None] @ v)


def test_results_that_read_the_same_come_from_one_map(client):
    x, y = array("f4"), array("f4", INTEGERS.T.copy()) + np.float32(0.5)
    p = warpline.program()
    t, u = p.input(x), p.input(y)
    assert steps_of(t + u, t - u, t < 0) == ["map 4"]  # three nodes and a constant
    for got, want in zip(client.run(t + u, t - u, t < 0), (x + y, x - y, x < 0)):
        same(got, want)
    # One of another, which a third reads; in any order.
    doubled = t * 2
    assert steps_of(doubled, doubled + u) == steps_of(doubled + u, doubled) == ["map 3"]
    for got, want in zip(client.run(doubled + u, doubled), (2 * x + y, 2 * x)):
        same(got, want)
    # What only they read.
    difference = t - u
    assert steps_of(difference * difference, abs(difference)) == ["map 3"]
    for got, want in zip(client.run(*divmod(t, u)), np.divmod(x, y)):
        same(got, want)
    for got, want in zip(client.run(*np.divmod(7, u)), np.divmod(np.float32(7), y)):
        same(got, want)


def test_results_that_gain_nothing_together_stay_apart(client):
    p = warpline.program()
    t, u, row = p.input(array("f4")), p.input(array("f4", INTEGERS[::-1].copy())), p.input(np.ones(3, "f4"))
    assert len(steps_of(t + 1, u + 1)) == 2  # nothing in common
    assert len(steps_of(t + row, row + 1)) == 2  # of two shapes
    total = (t + 1).sum()
    assert len(steps_of(t + 1, t - total)) == 3  # a reduction lies between them
    named = warpline.elementwise.make("add", p, (t, u), name="sum")
    assert len(steps_of(named, t - u)) == 2
    many = [t + i for i in range(9)]
    assert len(steps_of(*many)) == 2  # a map has eight results
    for i, got in enumerate(client.run(*many)):
        same(got, array("f4") + i)
    with pytest.raises(warpline.InvalidArgument, match="program.outputs: 257 are above the limit of 256"):
        client.run(*[t + i for i in range(257)])


def test_results_of_one_map_go_where_each_is_wanted(client):
    x = np.arange(12, dtype="f8").reshape(3, 4)
    t = client.put(x)
    out = np.empty_like(x)
    kept, _ = client.run(t + 1, t * 3, keep=[True, False], out=[None, out])
    np.testing.assert_array_equal(out, 3 * x)
    np.testing.assert_array_equal(kept.numpy(), x + 1)
