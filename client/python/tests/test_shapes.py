"""Results are foretold: against what a server answers."""

import elements
import numpy as np
import pytest

import warpline
from warpline import calls, direct, shapes
from warpline.arrays import Operand
from warpline.dtypes import DTYPES
from warpline.programs import compile_program
from warpline.v1 import warpline_pb2 as v1

OPS = [name.removeprefix("REDUCE_OP_").lower() for name, number in v1.ReduceOp.items() if number]


@pytest.fixture(scope="module")
def ask(daemon):
    """Compares what is foretold of a call with what a server without sinks answers. None where it refuses."""
    with warpline.connect(daemon.address) as client:
        def asked(call):
            foretold = call.results()
            try:
                response, request_id = client._connection.invoke(call.method, call.body, 60, None)
            except warpline.InvalidArgument:
                return None
            results = calls.decode(calls.Call(**{**vars(call), "finish": None}), response, request_id, None)
            assert [(DTYPES[kind.data_type], kind.shape) for kind in foretold] == [(y.dtype, y.shape) for y in results]
            return results

        yield asked


def gemm(a, b, c=None, trans_a=False, dtype=None):
    return direct.gemm(a, b, c, None, None, None, None, trans_a, False, None, dtype, "", calls.INLINE)


@pytest.mark.parametrize("name", elements.ALL)
def test_transposes(ask, name):
    rng = np.random.default_rng(20)
    for shape, perm in (((), None), ((3,), None), ((2, 3), None), ((4, 2, 3), None), ((4, 2, 3), (2, 0, 1)),
                        ((0, 2), None)):
        x = elements.any_bits(name, shape, rng)
        for view in (x, x.T):
            assert ask(direct.transpose(view, perm, "", calls.INLINE))


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("name", elements.REAL)
def test_reductions(ask, name, op):
    x = elements.small(name, (2, 3, 4), np.random.default_rng(21))
    answers = 0
    for view in (x, x.T, x[0, 0, 0]):
        for axis in (None, 0, -1, (0, 2)):
            for keepdims in (False, True):
                for dtype in (None, "f4", "i2"):
                    call = direct.reduce(view, op, axis, keepdims, dtype, 0, "", calls.INLINE)
                    answers += ask(call) is not None if call.results() else 0
    assert answers


@pytest.mark.parametrize("name", ["i8", *elements.FLOATS])
def test_products(ask, name):
    rng = np.random.default_rng(22)
    make = lambda *shape: elements.small(name, shape, rng)  # noqa: E731
    for a, b in ((make(2, 3), make(3, 4)), (make(5, 2, 3), make(3, 4)), (make(1, 2, 3), make(6, 3, 4)),
                 (make(2, 1, 2, 3), make(5, 3, 4)), (make(2, 0), make(0, 3))):
        for dtype in (None, "f4"):
            for trans in (False, True):
                left = np.ascontiguousarray(a.swapaxes(-1, -2)) if trans else a
                assert ask(gemm(left, b, trans_a=trans, dtype=dtype)) or dtype
    c = elements.make("i32" if name == "i8" else name, np.zeros((5, 2, 4)))
    assert ask(gemm(make(5, 2, 3), make(3, 4), c))


def test_programs(ask):
    rng = np.random.default_rng(23)
    x, y = rng.standard_normal((6, 1, 4)), rng.standard_normal((5, 4))
    p = warpline.program()
    s = p.add(x, y)
    t = s.astype("f4").transpose((1, 2, 0)) * 2.0
    assert ask(compile_program([s, t, t.sum(axis=1, keepdims=True), t.argmax(), s @ y.T, p.scale(x, 3.0)]))


def test_what_cannot_be_foretold():
    ones = np.ones((2, 3), "f4")
    for call in (direct.transpose(ones, (0, 0), "", calls.INLINE), direct.transpose(ones, (0, 7), "", calls.INLINE),
                 direct.reduce(ones, "sum", 2, False, None, 0, "", calls.INLINE),
                 gemm(ones, ones), gemm(ones, ones.T.astype("f8")), gemm(ones, ones[0]),
                 compile_program([warpline.program().add(ones, np.ones((2, 4), "f4"))]),
                 compile_program([warpline.program().add(ones, np.ones((2, 3), "f8"))]),
                 compile_program([warpline.program().cast(ones, None)])):
        assert call.results() is None
    with pytest.raises(shapes.Unknown):
        shapes.result_of("softmax", None, [Operand(ones).kind])
    # A step that reads what nobody has made.
    step = v1.Step(name="s", inputs=["nothing"], scale=v1.ScaleStep(factor=1))
    with pytest.raises(shapes.Unknown):
        shapes.outputs_of(v1.Program(steps=[step], outputs=["s"]), {})
