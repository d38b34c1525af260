"""The types and shapes that the library infers are those that the server gives, and it infers none for what the server
refuses."""

import itertools
import typing

import elements
import numpy as np
import pytest

import warpline
from warpline import core, inference
from warpline.arrays import operand_of
from warpline.calls import INLINE, Call
from warpline.dtypes import data_type
from warpline.names import ReduceOp


@pytest.fixture(scope="module")
def c(daemon):
    with warpline.connect(daemon.address) as connected:
        yield connected


def answer(c, program, arrays):
    """The dtypes and shapes of the server's results, or its error."""
    call = Call(program, [(name, operand_of(x, any_order=False)) for name, x in arrays.items()],
                INLINE._replace(results=[False] * len(program.outputs)))
    try:
        return [(y.dtype, y.shape) for y in c._results(call, [None] * len(program.outputs), None, None, None)]
    except warpline.InvalidArgument as error:
        return error


def compare(c, kind, fields, *inputs, refused=None):
    """Compares for one step. refused: part of the server's error, if the library does not know why the server refuses
    the step, for example because of its type."""
    arrays = {f"x{i}": np.zeros(shape, elements.ALL[name]) for i, (name, shape) in enumerate(inputs)}
    program = core.operation(kind, tuple(arrays), tuple(fields.items()), "")
    inferred = core.infer(program, [(name, data_type(x.dtype), x.shape) for name, x in arrays.items()])
    got = answer(c, program, arrays)
    if refused is not None:
        assert inferred is not None and isinstance(got, warpline.InvalidArgument) and refused in str(got)
    elif inferred is None:
        assert isinstance(got, warpline.InvalidArgument)
    else:
        assert got == inferred
    assert inference.step_kind(kind, fields.items(), [(x.dtype, x.shape) for x in arrays.values()]) == (
        inferred and inferred[0])
    return inferred


SHAPES = [(), (1,), (3,), (0,), (2, 3), (0, 3), (2, 1, 3), (2, 0, 3), (1, 2, 3, 4), (1,) * 8]


@pytest.mark.parametrize("shape", SHAPES)
def test_transpose(c, shape):
    rank = len(shape)
    for perm in {(), tuple(range(rank)), tuple(reversed(range(rank))), (*range(1, rank), 0), (0, 0), (1, 0), (0, -1), (2, 1, 0),
                 (0, 2)}:
        compare(c, "transpose", {"perm": perm} if perm else {}, ("f32", shape))


@pytest.mark.parametrize("name", elements.ALL)
def test_transpose_of_each_type(c, name):
    assert compare(c, "transpose", {}, (name, (2, 3))) == [(elements.ALL[name], (3, 2))]


FACTORS = [(2, 3), (3, 4), (3, 2), (4, 3), (0, 3), (3, 0), (5, 2, 3), (5, 3, 4), (1, 3, 4), (6, 1, 2, 3), (2, 5, 3, 4), (3,), (),
           (0, 2, 3)]


@pytest.mark.parametrize("a, b", itertools.product(FACTORS, FACTORS))
def test_gemm(c, a, b):
    for fields in ({}, {"trans_a": True}, {"trans_b": True}, {"trans_a": True, "trans_b": True}):
        compare(c, "gemm", fields, ("f32", a), ("f32", b))


def test_gemm_of_each_type(c):
    for name, out in itertools.product(elements.ALL, [None, *elements.ALL]):
        fields = {"out_data_type": f"DATA_TYPE_{out.upper()}"} if out else {}
        supported = name in elements.FLOATS and out in (None, name) or name in ("f16", "bf16") and out == "f32" or (
            name == "i8" and out in (None, "i32"))
        compare(c, "gemm", fields, (name, (2, 3)), (name, (3, 2)), refused=None if supported else "")
    compare(c, "gemm", {}, ("f32", (2, 3)), ("f64", (3, 2)), refused="f64")


def test_terms_of_gemm(c):
    """The library does not check the shapes of c and the bias."""
    a, b = ("f32", (5, 2, 3)), ("f32", (3, 4))
    for shape in ((5, 2, 4), (2, 4), (1, 2, 4)):
        compare(c, "gemm", {"beta": 1.0}, a, b, ("f32", shape))
    compare(c, "gemm", {"has_bias": True, "activation": "ACTIVATION_GELU"}, a, b, ("f32", (4,)))
    compare(c, "gemm", {"beta": 0.5, "has_bias": True}, a, b, ("f32", (2, 4)), ("f32", (4,)))
    compare(c, "gemm", {"beta": 1.0}, a, b, ("f32", (4, 2)), refused="inputs[2]")
    compare(c, "gemm", {"has_bias": True}, a, b, ("f32", (2,)), refused="inputs[2]")


OPS = [f"REDUCE_OP_{name.upper()}" for name in typing.get_args(ReduceOp)]
NEEDS_ELEMENTS = ("MIN", "MAX", "ARGMIN", "ARGMAX", "NORMINF")


def op_of(name):
    return name.removeprefix("REDUCE_OP_")


@pytest.mark.parametrize("op", OPS)
def test_reduce(c, op):
    for shape in SHAPES:
        rank = len(shape)
        for axes in [(), (0,), (-1,), (1,), (0, -1), (0, 1), (-2, 2), (7,), (8,), (-9,)]:
            # The library does not check these.
            refused = None
            resolved = [a + rank if a < 0 else a for a in axes]
            valid = all(0 <= a < rank for a in resolved)
            count = int(np.prod([shape[a] for a in resolved or range(rank)])) if valid else 1
            if valid and len(set(resolved)) < len(resolved):
                refused = "axes"
            elif valid and op_of(op).startswith("ARG") and 1 < len(resolved) < rank:
                refused = "axes"
            elif valid and op_of(op) in NEEDS_ELEMENTS and count == 0:
                refused = ""
            for keepdims in (False, True):
                compare(c, "reduce", {"op": op, "axes": axes, "keepdims": keepdims}, ("f32", shape), refused=refused)


@pytest.mark.parametrize("op", OPS)
def test_reduce_of_each_type(c, op):
    """Only the server knows which types an operation supports."""
    agreed = 0
    for name, out in itertools.product(elements.ALL, [None, *elements.ALL]):
        fields = {"op": op, **({"out_data_type": f"DATA_TYPE_{out.upper()}"} if out else {})}
        array = np.zeros((2, 3), elements.ALL[name])
        program = core.operation("reduce", ("x",), tuple(fields.items()), "")
        inferred, got = core.infer(program, [("x", data_type(array.dtype), array.shape)]), answer(c, program, {"x": array})
        if isinstance(got, warpline.InvalidArgument):
            assert name not in elements.REAL or out is not None
        else:
            assert got == inferred
            agreed += 1
    assert agreed >= len(elements.REAL)


def test_cast_and_scale(c):
    for name, other in itertools.product(elements.ALL, elements.ALL):
        supported = name in elements.REAL and other in elements.REAL
        compare(c, "cast", {"data_type": f"DATA_TYPE_{other.upper()}"}, (name, (2, 0)),
                refused=None if supported else "")
    for shape in SHAPES:
        compare(c, "cast", {"data_type": "DATA_TYPE_I8"}, ("f32", shape))
        compare(c, "scale", {"factor": 2}, ("f32", shape))
    for name in elements.ALL:
        compare(c, "scale", {"factor": 3}, (name, (2, 3)),
                refused=None if name in elements.REAL and name != "bool" else "")
    compare(c, "scale", {"factor": 1.5}, ("i32", (2, 3)), refused="factor")


@pytest.mark.parametrize("left, right", itertools.product(SHAPES, SHAPES))
def test_add(c, left, right):
    inferred = compare(c, "add", {}, ("f64", left), ("f64", right))
    try:
        assert inferred == [(np.dtype("f8"), np.broadcast_shapes(left, right))]
    except ValueError:
        assert inferred is None


def test_add_of_each_type(c):
    for name in elements.ALL:
        compare(c, "add", {}, (name, (2, 3)), (name, (3,)), refused=None if name in elements.REAL else "")
    compare(c, "add", {}, ("f32", (2, 3)), ("f64", (3,)), refused="f64")


def test_programs(c):
    """Random ones, of several steps and outputs. A shape that is not known is one that the server refuses."""
    rng = np.random.default_rng(17)
    inputs = [np.zeros(shape, dtype) for shape, dtype in [((3, 4), "f4"), ((4, 3), "f8"), ((2, 4, 4), "f4"), ((), "i4"),
                                                          ((4,), "u1"), ((1, 3, 4), "f2"), ((0, 4), "f4")]]
    unary = [lambda x: x.mT, lambda x: x.sum(axis=0), lambda x: x.mean(axis=-1, keepdims=True), lambda x: x.astype("f4"),
             lambda x: x * 2, lambda x: x + 1.5, lambda x: x.any(axis=-2), lambda x: x.argmax()]
    binary = [lambda x, y: x + y, lambda x, y: x @ y, lambda x, y: x - y, lambda x, y: x @ y.mT]
    agreed = refused = 0
    for _ in range(300):
        p = warpline.program()
        made = [p.input(x) for x in inputs]
        for _ in range(rng.integers(1, 6)):
            x, y = made[rng.integers(len(made))], made[rng.integers(len(made))]
            made.append(unary[rng.integers(len(unary))](x) if rng.random() < 0.5 else binary[rng.integers(len(binary))](x, y))
        outputs = [x for x in made[-2:] if x._operation]
        try:
            got = c.run(*outputs)
        except warpline.InvalidArgument:
            refused += 1
            continue
        agreed += 1
        for x, y in zip(outputs, got if isinstance(got, tuple) else (got,)):
            assert (x.dtype, x.shape) == (y.dtype, y.shape)
    assert agreed > 50 and refused > 50
