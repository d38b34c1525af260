"""The types and shapes that the library infers are those that the server gives, and it refuses what the server refuses,
with the same words."""

import itertools
import re
import typing

import elements
import grpc
import numpy as np
import pytest
import wire
from messages import DTYPES, run_request, v1

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


@pytest.fixture(scope="module")
def run(daemon):
    """The method Run of the server, without the library, which would refuse some requests itself."""
    with grpc.insecure_channel(daemon.address) as channel:
        yield channel.unary_unary("/warpline.v1.KernelService/Run", request_serializer=v1.RunRequest.SerializeToString,
                                  response_deserializer=v1.RunResponse.FromString)


def answer(run, program, arrays):
    """The dtypes and shapes of the server's results; or the text of its error, and its details as bytes."""
    operands = [(name, operand_of(x, any_order=False)) for name, x in arrays.items()]
    try:
        outputs = run(run_request(Call(program, operands, INLINE))).outputs
    except grpc.RpcError as error:
        assert error.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNIMPLEMENTED), error
        text = re.fullmatch(r"(.*) \(request [^()]*\)", error.details(), re.DOTALL)[1]
        return text, dict(error.trailing_metadata())["grpc-status-details-bin"]
    return [(DTYPES[y.tensor.data_type], tuple(y.tensor.shape)) for y in outputs]


def violation(field, text):
    """A google.rpc.BadRequest.FieldViolation."""
    values = field.encode(), text.encode()
    return b"".join(wire.length_prefix(i + 1, len(value)) + value for i, value in enumerate(values))


def compare(run, kind, fields, *inputs):
    """Compares for one step. Returns what is inferred; None if it is refused."""
    arrays = {f"x{i}": np.zeros(shape, elements.ALL[name]) for i, (name, shape) in enumerate(inputs)}
    program = core.operation(kind, tuple(arrays), tuple(fields.items()), "")
    got = answer(run, program, arrays)
    kinds = [(x.dtype, x.shape) for x in arrays.values()]
    try:
        inferred = core.infer(program, [(name, data_type(x.dtype), x.shape) for name, x in arrays.items()])
    except (warpline.InvalidArgument, warpline.Unimplemented) as error:
        text, details = got
        assert error.message == text and not error.answered
        assert [each.description for each in error.violations] == [text]
        assert violation(error.violations[0].field, text) in details
        with pytest.raises(type(error), match=re.escape(text)):
            inference.step_kind(kind, tuple(fields.items()), tuple(kinds))
        return None
    assert got == inferred
    assert inference.step_kind(kind, tuple(fields.items()), tuple(kinds)) == inferred[0]
    return inferred


SHAPES = [(), (1,), (3,), (0,), (2, 3), (0, 3), (2, 1, 3), (2, 0, 3), (1, 2, 3, 4), (1,) * 8]


@pytest.mark.parametrize("shape", SHAPES)
def test_transpose(run, shape):
    rank = len(shape)
    for perm in {(), tuple(range(rank)), tuple(reversed(range(rank))), (*range(1, rank), 0), (0, 0), (1, 0), (0, -1), (2, 1, 0),
                 (0, 2)}:
        compare(run, "transpose", {"perm": perm} if perm else {}, ("f32", shape))


@pytest.mark.parametrize("name", elements.ALL)
def test_transpose_of_each_type(run, name):
    assert compare(run, "transpose", {}, (name, (2, 3))) == [(elements.ALL[name], (3, 2))]


FACTORS = [(2, 3), (3, 4), (3, 2), (4, 3), (0, 3), (3, 0), (5, 2, 3), (5, 3, 4), (1, 3, 4), (6, 1, 2, 3), (2, 5, 3, 4), (3,), (),
           (0, 2, 3)]


@pytest.mark.parametrize("a, b", itertools.product(FACTORS, FACTORS))
def test_gemm(run, a, b):
    for fields in ({}, {"trans_a": True}, {"trans_b": True}, {"trans_a": True, "trans_b": True}):
        compare(run, "gemm", fields, ("f32", a), ("f32", b))


def test_gemm_of_each_type(run):
    for name, out in itertools.product(elements.ALL, [None, *elements.ALL]):
        fields = {"out_data_type": f"DATA_TYPE_{out.upper()}"} if out else {}
        supported = name != "bool" and name not in elements.F8 and out in (None, name) or (name, out) in (
            ("f16", "f32"), ("bf16", "f32"), ("i8", "i32"))
        assert bool(compare(run, "gemm", fields, (name, (2, 3)), (name, (3, 2)))) is supported
    assert not compare(run, "gemm", {}, ("f32", (2, 3)), ("f64", (3, 2)))


def test_terms_of_gemm(run):
    a, b = ("f32", (5, 2, 3)), ("f32", (3, 4))
    for shape in ((5, 2, 4), (2, 4), (1, 2, 4)):
        assert compare(run, "gemm", {"beta": 1.0}, a, b, ("f32", shape))
    assert compare(run, "gemm", {"has_bias": True, "activation": "ACTIVATION_GELU"}, a, b, ("f32", (4,)))
    assert compare(run, "gemm", {"beta": 0.5, "has_bias": True}, a, b, ("f32", (2, 4)), ("f32", (4,)))
    assert compare(run, "gemm", {}, a, b, ("f32", (2, 4)))  # a C that is not read
    for fields, *terms in [({"beta": 1.0}, (4, 2)), ({"has_bias": True}, (2,)), ({"beta": 1.0},), ({"has_bias": True},),
                           ({}, (2, 5)), ({"beta": 1.0}, (4,)), ({"beta": 1.0}, (2, 5, 2, 4))]:
        assert not compare(run, "gemm", fields, a, b, *[("f32", shape) for shape in terms])
    assert not compare(run, "gemm", {"alpha": 0.5}, ("i8", (2, 3)), ("i8", (3, 2)))
    assert not compare(run, "gemm", {"activation": "ACTIVATION_RELU"}, ("i8", (2, 3)), ("i8", (3, 2)))


OPS = [f"REDUCE_OP_{name.upper()}" for name in typing.get_args(ReduceOp)]

@pytest.mark.parametrize("op", OPS)
def test_reduce(run, op):
    for shape in SHAPES:
        for axes in [(), (0,), (-1,), (1,), (0, -1), (0, 1), (-2, 2), (7,), (8,), (-9,)]:
            for keepdims in (False, True):
                compare(run, "reduce", {"op": op, "axes": axes, "keepdims": keepdims}, ("f32", shape))
    for ddof in (-1, 1):
        assert bool(compare(run, "reduce", {"op": op, "ddof": ddof}, ("f32", (2,)))) is (ddof > 0 and op.endswith(("VAR", "STD")))


@pytest.mark.parametrize("op", OPS)
def test_reduce_of_each_type(run, op):
    agreed = 0
    for name, out in itertools.product(elements.ALL, [None, *elements.ALL]):
        fields = {"op": op, **({"out_data_type": f"DATA_TYPE_{out.upper()}"} if out else {})}
        if compare(run, "reduce", fields, (name, (2, 3))):
            agreed += 1
        else:
            assert name not in elements.REAL or out is not None
    assert agreed >= len(elements.REAL)


def test_cast_and_scale(run):
    for name, other in itertools.product(elements.ALL, elements.ALL):
        supported = not {name, other} & set(elements.F8) and (name not in elements.COMPLEX or other in [*elements.COMPLEX, "bool"])
        assert bool(compare(run, "cast", {"data_type": f"DATA_TYPE_{other.upper()}"}, (name, (2, 0)))) is supported
    for shape in SHAPES:
        compare(run, "cast", {"data_type": "DATA_TYPE_I8"}, ("f32", shape))
        compare(run, "scale", {"factor": 2}, ("f32", shape))
    for name in elements.ALL:
        supported = name in elements.REAL and name != "bool"
        assert bool(compare(run, "scale", {"factor": 3}, (name, (2, 3)))) is supported
    assert not compare(run, "scale", {"factor": 1.5}, ("i32", (2, 3)))


@pytest.mark.parametrize("left, right", itertools.product(SHAPES, SHAPES))
def test_add(run, left, right):
    inferred = compare(run, "add", {}, ("f64", left), ("f64", right))
    try:
        assert inferred == [(np.dtype("f8"), np.broadcast_shapes(left, right))]
    except ValueError:
        assert inferred is None


def test_add_of_each_type(run):
    for name in elements.ALL:
        assert bool(compare(run, "add", {}, (name, (2, 3)), (name, (3,)))) is (name in elements.REAL)
    assert not compare(run, "add", {}, ("f32", (2, 3)), ("f64", (3,)))


def test_programs(c):
    """Random ones, of several steps and outputs. What does not fit is refused in its line, without the server."""
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
            try:
                made.append(unary[rng.integers(len(unary))](x) if rng.random() < 0.5 else
                            binary[rng.integers(len(binary))](x, y))
            except ValueError as error:
                assert not getattr(error, "answered", False)
                refused += 1
        outputs = [x for x in made[-2:] if x._operation]
        if not outputs:
            continue
        got = c.run(*outputs)
        agreed += 1
        for x, y in zip(outputs, got if isinstance(got, tuple) else (got,)):
            assert (x.dtype, x.shape) == (y.dtype, y.shape)
    assert agreed > 50 and refused > 50
