"""Chains of operations that run on the server as one request.

    p = warpline.program()
    c = p.gemm(a, b).transpose().sum(axis=1)
    y = client.run(c)

Nothing is computed, and no array is read, before `run`: a program can be built once and run again after its
arrays have changed. Shapes and types are checked by the server, whose errors name the step.
"""

import operator
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from warpline import calls
from warpline.arrays import Array, Operand
from warpline.calls import Axes, Call
from warpline.dtypes import DTYPES, ML_DTYPES, result_data_type
from warpline.v1 import warpline_pb2 as v1


class Tensor:
    """An input of a program or the result of one of its steps. Made by the methods of Program and Tensor.

    Operators: t + u and t - u (u: tensor or array), t * 2.0 and -t (scaling), t @ u (product).

    t + 1 and t - 1 take the number as an element of t's dtype, which must be known here: that of an input, what
    astype or dtype= names, and what transposing, scaling and adding make of those. TypeError for others, for
    which np.array(1, "f4") does, and for a number that is none of the dtype. There is no division, which
    t * (1 / y) would round twice, and no T, as the rank of a step's result is not known here.
    """

    # NumPy leaves array + tensor to us.
    __array_ufunc__ = None

    def __init__(self, program: "Program", name: str, inputs: Sequence["Tensor"] = (),
                 step: v1.Step | None = None, operand: Operand | None = None,
                 dtype: np.dtype[Any] | None = None) -> None:
        self.program = program
        self.name = name
        self._serial = program._next_serial()
        self._inputs = tuple(inputs)
        self._step = step
        self._operand = operand
        # Of the elements, where it is known before the server says it.
        self._dtype = dtype
        # The tensor of which this one is the transpose in the last two axes, if an input is sent that way.
        self._stored: Tensor | None = None

    def __repr__(self) -> str:
        return f"<warpline.Tensor {self.name}>"

    def transpose(self, perm: Iterable[int] | None = None, *, variant: str = "", name: str = "") -> "Tensor":
        """As Client.transpose: axis i is axis perm[i] of this one; None: the last two are swapped."""
        return self.program.transpose(self, perm, variant=variant, name=name)

    @property
    def mT(self) -> "Tensor":
        """With the last two axes swapped."""
        return self.transpose()

    def reduce(self, op: str, axis: Axes = None, *, keepdims: bool = False, dtype: npt.DTypeLike | None = None,
               ddof: int = 0, variant: str = "", name: str = "") -> "Tensor":
        """As Client.reduce."""
        return self.program.reduce(self, op, axis, keepdims=keepdims, dtype=dtype, ddof=ddof, variant=variant,
                                   name=name)

    def sum(self, axis: Axes = None, **options: Any) -> "Tensor":
        """Options of this and the next ones: those of reduce."""
        return self.reduce("sum", axis, **options)

    def prod(self, axis: Axes = None, **options: Any) -> "Tensor":
        return self.reduce("prod", axis, **options)

    def min(self, axis: Axes = None, **options: Any) -> "Tensor":
        return self.reduce("min", axis, **options)

    def max(self, axis: Axes = None, **options: Any) -> "Tensor":
        return self.reduce("max", axis, **options)

    def mean(self, axis: Axes = None, **options: Any) -> "Tensor":
        return self.reduce("mean", axis, **options)

    def var(self, axis: Axes = None, **options: Any) -> "Tensor":
        return self.reduce("var", axis, **options)

    def std(self, axis: Axes = None, **options: Any) -> "Tensor":
        return self.reduce("std", axis, **options)

    def argmin(self, axis: int | None = None, **options: Any) -> "Tensor":
        return self.reduce("argmin", axis, **options)

    def argmax(self, axis: int | None = None, **options: Any) -> "Tensor":
        return self.reduce("argmax", axis, **options)

    def any(self, axis: Axes = None, **options: Any) -> "Tensor":
        return self.reduce("any", axis, **options)

    def all(self, axis: Axes = None, **options: Any) -> "Tensor":
        return self.reduce("all", axis, **options)

    def gemm(self, b: "Tensor | npt.ArrayLike", c: "Tensor | npt.ArrayLike | None" = None,
             **options: Any) -> "Tensor":
        """The product of this and b, with the options of Program.gemm."""
        return self.program.gemm(self, b, c, **options)

    def astype(self, dtype: npt.DTypeLike, *, name: str = "") -> "Tensor":
        """Floats become integers by truncation, what is out of range the nearest in range, NaN 0; integers
        become narrower ones modulo 2^bits."""
        return self.program.cast(self, dtype, name=name)

    def __add__(self, other: "Tensor | npt.ArrayLike") -> "Tensor":
        return self.program.add(self, other)

    def __radd__(self, other: npt.ArrayLike) -> "Tensor":
        return self.program.add(other, self)

    def __sub__(self, other: "Tensor | npt.ArrayLike") -> "Tensor":
        if _is_number(other):
            return self.program.add(self, np.negative(self._element(other)))
        return self.program.add(self, self.program.scale(other, -1))

    def __rsub__(self, other: npt.ArrayLike) -> "Tensor":
        return self.program.add(other, self.program.scale(self, -1))

    def __mul__(self, factor: float) -> "Tensor":
        return self.program.scale(self, factor)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> NoReturn:
        raise TypeError("a program does not divide: t * (1 / y) scales floats, with one more rounding")

    def __neg__(self) -> "Tensor":
        return self.program.scale(self, -1)

    def __matmul__(self, other: "Tensor | npt.ArrayLike") -> "Tensor":
        return self.program.gemm(self, other)

    def __rmatmul__(self, other: npt.ArrayLike) -> "Tensor":
        return self.program.gemm(other, self)

    def _element(self, number: Any) -> Array:
        """A number as an array of our dtype. TypeError if that is not known, or has no such element."""
        dtype = self._dtype
        advice = 'give an array of the dtype that is meant, as np.array(1, "f4")'
        if dtype is None:
            raise TypeError(f"the dtype of {self} is not known before it is computed, and {number!r} has none: {advice}")
        kind = "f" if dtype in ML_DTYPES.values() else dtype.kind
        given = np.asarray(number)
        if given.dtype == dtype:
            return given
        if kind == "f" and given.dtype.kind not in "bc":
            return np.asarray(float(number)).astype(dtype)
        if kind in "iu" and given.dtype.kind in "iuO":
            limits = np.iinfo(dtype)
            if limits.min <= int(number) <= limits.max:
                return np.array(int(number), dtype)
        raise TypeError(f"{number!r} is not made an element of {self}, which has {dtype}: {advice}")


def _is_number(x: Any) -> bool:
    """Without a dtype that anyone has chosen: Python's, and what NumPy makes when it computes or indexes."""
    return isinstance(x, (int, float, complex, np.generic))


class Program:
    """A graph of tensors that grows by the methods here and those of Tensor. For one thread.

    Every method takes arrays for tensors; an array that is used twice is sent once. Every step takes
    name: 1 to 64 letters, digits, '_', '.' or '-', all different; "": one made of the operation and a number,
    and variant: one implementation of it, "": the server's choice.
    """

    def __init__(self) -> None:
        self._serial = 0
        # Of tensors: what callers chose, and what we did.
        self._given: set[str] = set()
        self._made: set[str] = set()
        # What is sent, by where the elements lie and how: views of one array that look alike are one input.
        self._sources: dict[Any, Tensor] = {}
        # Inputs whose axes are not in the order in which they are sent, by what is sent and how it is permuted.
        self._inputs: dict[tuple[Tensor, tuple[int, ...]], Tensor] = {}

    def input(self, x: npt.ArrayLike) -> Tensor:
        """An array as a tensor. The elements are read when the program is run."""
        operand = Operand(x)
        source = self._source(operand.stored)
        if operand.in_order:
            return source
        # Sent as it lies in memory; its axes are brought into their order on the device.
        key = (source, operand.perm)
        if key not in self._inputs:
            tensor = self.transpose(source, operand.perm)
            tensor._stored = source if operand.swaps_last_two else None
            self._inputs[key] = tensor
        return self._inputs[key]

    def transpose(self, x: Tensor | npt.ArrayLike, perm: Iterable[int] | None = None, *, variant: str = "",
                  name: str = "") -> Tensor:
        """As Client.transpose."""
        tensor, step = self._tensor(x), v1.TransposeStep(perm=calls.perm_of(perm))
        return self._step("transpose", [tensor], step, variant, name, tensor._dtype)

    def gemm(self, a: Tensor | npt.ArrayLike, b: Tensor | npt.ArrayLike,
             c: Tensor | npt.ArrayLike | None = None, *, alpha: float | None = None, beta: float | None = None,
             bias: Tensor | npt.ArrayLike | None = None, activation: str | None = None, trans_a: bool = False,
             trans_b: bool = False, precision: str | None = None, dtype: npt.DTypeLike | None = None,
             variant: str = "", name: str = "") -> Tensor:
        """As Client.gemm."""
        (left, a_swapped), (right, b_swapped) = self._matrix(a), self._matrix(b)
        beta = calls.beta_of(beta, c is not None)
        inputs = [left, right]
        # A step has no place for a c that is not read.
        if c is not None and beta != 0:
            inputs.append(self._tensor(c))
        if bias is not None:
            inputs.append(self._tensor(bias))
        step = v1.GemmStep(
            trans_a=bool(trans_a) != a_swapped, trans_b=bool(trans_b) != b_swapped, alpha=alpha, beta=beta,
            precision=calls.precision_of(precision), has_bias=bias is not None,
            activation=calls.activation_of(activation), out_data_type=result_data_type(dtype))
        return self._step("gemm", inputs, step, variant, name, _dtype_of(step.out_data_type))

    def reduce(self, x: Tensor | npt.ArrayLike, op: str, axis: Axes = None, *, keepdims: bool = False,
               dtype: npt.DTypeLike | None = None, ddof: int = 0, variant: str = "", name: str = "") -> Tensor:
        """As Client.reduce."""
        step = v1.ReduceStep(op=calls.reduce_op(op), axes=calls.axes_of(axis), keepdims=keepdims, ddof=ddof,
                             out_data_type=result_data_type(dtype))
        return self._step("reduce", [self._tensor(x)], step, variant, name, _dtype_of(step.out_data_type))

    def cast(self, x: Tensor | npt.ArrayLike, dtype: npt.DTypeLike, *, variant: str = "",
             name: str = "") -> Tensor:
        """As Tensor.astype; of any element type but complex and 8-bit floats, to any such."""
        step = v1.CastStep(data_type=result_data_type(dtype))
        return self._step("cast", [self._tensor(x)], step, variant, name, _dtype_of(step.data_type))

    def scale(self, x: Tensor | npt.ArrayLike, factor: float, *, variant: str = "", name: str = "") -> Tensor:
        """factor * x, of the dtype of x: any but bool, complex and 8-bit floats. Integers take an integer
        factor in [-2^53, 2^53] and count modulo 2^bits."""
        tensor, step = self._tensor(x), v1.ScaleStep(factor=_factor(factor))
        return self._step("scale", [tensor], step, variant, name, tensor._dtype)

    def add(self, x: Tensor | npt.ArrayLike, y: Tensor | npt.ArrayLike, *, variant: str = "",
            name: str = "") -> Tensor:
        """x + y, both of one dtype, any but complex and 8-bit floats; shapes are broadcast. Integers count
        modulo 2^bits, bool is "or". One of them may be a number, as in Tensor's operators."""
        if _is_number(y):
            left = self._tensor(x)
            right = self.input(left._element(y))
        else:
            right = self._tensor(y)
            left = self.input(right._element(x)) if _is_number(x) else self._tensor(x)
        dtype = right._dtype if left._dtype is None else left._dtype
        return self._step("add", [left, right], v1.AddStep(), variant, name, dtype)

    def _next_serial(self) -> int:
        self._serial += 1
        return self._serial

    def _tensor(self, x: Tensor | npt.ArrayLike) -> Tensor:
        if not isinstance(x, Tensor):
            return self.input(x)
        if x.program is not self:
            raise ValueError(f"{x} belongs to another program")
        return x

    def _source(self, array: Array) -> Tensor:
        """Of an array as it is sent."""
        key = (array.ctypes.data, array.dtype, array.shape, array.strides)
        if key not in self._sources:
            operand = Operand(array, any_order=False)
            self._sources[key] = Tensor(self, self._new_name("x"), operand=operand, dtype=_dtype_of(operand.data_type))
        return self._sources[key]

    def _matrix(self, x: Tensor | npt.ArrayLike) -> tuple[Tensor, bool]:
        """A factor of a product, and whether it is to be transposed for it."""
        tensor = self._tensor(x)
        return (tensor, False) if tensor._stored is None else (tensor._stored, True)

    def _step(self, operation: str, inputs: Sequence[Tensor], fields: Any, variant: str, name: str,
              dtype: np.dtype[Any] | None) -> Tensor:
        if name in self._made:
            raise ValueError(f"the name {name!r} was made for an earlier tensor, which was given none")
        step = v1.Step(name=name or self._new_name(operation), inputs=[t.name for t in inputs], variant=variant,
                       **{operation: fields})
        if name:
            self._given.add(name)
        return Tensor(self, step.name, inputs, step, dtype=dtype)

    def _new_name(self, kind: str) -> str:
        while (name := f"{kind}{self._serial}") in self._given:
            self._serial += 1
        self._made.add(name)
        return name


def _dtype_of(number: v1.DataType) -> np.dtype[Any] | None:
    """None for the operation's own choice."""
    return DTYPES.get(number)


def _factor(factor: Any) -> Any:
    """A factor for the wire, where it is an f64. ValueError for an integer that might not be one."""
    try:
        integer = operator.index(factor)
    except TypeError:
        return factor  # No integer: protobuf takes real numbers and refuses the rest.
    if abs(integer) > 1 << 53:
        raise ValueError(f"factor is {integer}: an integer lies in [-2^53, 2^53]; floats take a float beyond that")
    return integer


def program() -> Program:
    """A new, empty program."""
    return Program()


def compile_program(outputs: Sequence[Tensor]) -> Call:
    """The request that computes these tensors of one program: their steps, and the arrays that these read."""
    if not outputs:
        raise ValueError("there is no tensor to compute")
    for tensor in outputs:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"run takes tensors of a program (warpline.program), not {type(tensor).__name__}")
    needed: dict[Tensor, None] = {}
    todo = list(outputs)
    while todo:
        tensor = todo.pop()
        if tensor.program is not outputs[0].program:
            raise ValueError(f"{tensor} belongs to another program than {outputs[0]}")
        if tensor not in needed:
            needed[tensor] = None
            todo += tensor._inputs
    ordered = sorted(needed, key=lambda tensor: tensor._serial)
    message = v1.Program(steps=[t._step for t in ordered if t._step is not None],
                         outputs=[t.name for t in outputs])
    return calls.run(message, [(t.name, t._operand) for t in ordered if t._operand is not None])
