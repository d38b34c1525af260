"""Expressions of tensors, and the methods and operators that make them."""

import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from warpline.arrays import AnyOperand, Array
from warpline.arguments import Axes
from warpline.calls import Input
from warpline.dtypes import ML_DTYPES
from warpline.names import Activation, Precision, ReduceOp
from warpline.residents import Remote

if TYPE_CHECKING:
    from warpline.programs import Program

# Expressions are computed in the order in which they were made, across all programs.
_serials = itertools.count()


class Operators(Remote):
    """The methods and operators of expressions and resident tensors. Each of them returns an Expression: nothing is
    computed before a client's run, or np.asarray.

    The operators are t + u and t - u (u is an expression, a resident tensor or an array), t * 2.0 and -t (scaling), and
    t @ u (product). There is no division, because t * (1 / y) would be rounded twice.

    In t + 1 and t - 1, the number becomes an element of t's dtype. It is an input of the program, like an array. The
    client must know the dtype. It knows the dtype of inputs, and of results for which astype or dtype= names it.
    Transposing, scaling and adding keep a known dtype. Other expressions raise TypeError: add np.array(1, "f4")
    instead. A number that the dtype cannot hold raises TypeError too.

    t == u compares object identity, not elements.
    """

    @property
    def program(self) -> "Program":
        """The program that this belongs to."""
        raise NotImplementedError

    def _known_dtype(self) -> np.dtype[Any] | None:
        """Dtype of the elements; None if the client does not know it before the call."""
        raise NotImplementedError

    def __bool__(self) -> bool:
        raise TypeError(f"{self} is not true or false: test its elements, which np.asarray or a client's run gives, or "
                        "whether it `is None`")

    def transpose(self, axes: Iterable[int] | None = None, *, variant: str = "", name: str = "") -> "Expression":
        """Permutes the axes: axis i of the result is axis axes[i] of this. None: reverses all axes, as NumPy does.
        Raises TypeError if the client does not know the number of axes, for example of placeholders."""
        return self.program.transpose(self, axes, variant=variant, name=name)

    @property
    def mT(self) -> "Expression":
        """This with its last two axes swapped, for any number of axes."""
        return self.program._swapped(self)

    def reduce(self, op: ReduceOp, axis: Axes = None, *, keepdims: bool = False, dtype: npt.DTypeLike | None = None,
               ddof: int = 0, variant: str = "", name: str = "", out: None = None) -> "Expression":
        """Reduces axes, as `Client.reduce` does. `out` exists for compatibility with NumPy, and must be None."""
        if out is not None:
            raise TypeError("out is given to an expression, which is not computed here: give it to a client's run")
        return self.program.reduce(self, op, axis, keepdims=keepdims, dtype=dtype, ddof=ddof, variant=variant,
                                   name=name)

    def sum(self, axis: Axes = None, *, keepdims: bool = False, dtype: npt.DTypeLike | None = None, variant: str = "",
            name: str = "", out: None = None) -> "Expression":
        """Sum."""
        return self.reduce("sum", axis, keepdims=keepdims, dtype=dtype, variant=variant, name=name, out=out)

    def prod(self, axis: Axes = None, *, keepdims: bool = False, dtype: npt.DTypeLike | None = None, variant: str = "",
             name: str = "", out: None = None) -> "Expression":
        """Product."""
        return self.reduce("prod", axis, keepdims=keepdims, dtype=dtype, variant=variant, name=name, out=out)

    def min(self, axis: Axes = None, *, keepdims: bool = False, dtype: npt.DTypeLike | None = None, variant: str = "",
            name: str = "", out: None = None) -> "Expression":
        """Smallest element."""
        return self.reduce("min", axis, keepdims=keepdims, dtype=dtype, variant=variant, name=name, out=out)

    def max(self, axis: Axes = None, *, keepdims: bool = False, dtype: npt.DTypeLike | None = None, variant: str = "",
            name: str = "", out: None = None) -> "Expression":
        """Largest element."""
        return self.reduce("max", axis, keepdims=keepdims, dtype=dtype, variant=variant, name=name, out=out)

    def mean(self, axis: Axes = None, *, keepdims: bool = False, dtype: npt.DTypeLike | None = None, variant: str = "",
             name: str = "", out: None = None) -> "Expression":
        """Arithmetic mean."""
        return self.reduce("mean", axis, keepdims=keepdims, dtype=dtype, variant=variant, name=name, out=out)

    def var(self, axis: Axes = None, *, keepdims: bool = False, dtype: npt.DTypeLike | None = None, ddof: int = 0,
            variant: str = "", name: str = "", out: None = None) -> "Expression":
        """Variance, with NumPy's ddof."""
        return self.reduce("var", axis, keepdims=keepdims, dtype=dtype, ddof=ddof, variant=variant, name=name, out=out)

    def std(self, axis: Axes = None, *, keepdims: bool = False, dtype: npt.DTypeLike | None = None, ddof: int = 0,
            variant: str = "", name: str = "", out: None = None) -> "Expression":
        """Standard deviation, with NumPy's ddof."""
        return self.reduce("std", axis, keepdims=keepdims, dtype=dtype, ddof=ddof, variant=variant, name=name, out=out)

    def argmin(self, axis: int | None = None, *, keepdims: bool = False, variant: str = "", name: str = "",
               out: None = None) -> "Expression":
        """Index of the first smallest element."""
        return self.reduce("argmin", axis, keepdims=keepdims, variant=variant, name=name, out=out)

    def argmax(self, axis: int | None = None, *, keepdims: bool = False, variant: str = "", name: str = "",
               out: None = None) -> "Expression":
        """Index of the first largest element."""
        return self.reduce("argmax", axis, keepdims=keepdims, variant=variant, name=name, out=out)

    def any(self, axis: Axes = None, *, keepdims: bool = False, variant: str = "", name: str = "",
            out: None = None) -> "Expression":
        """True if any element is true."""
        return self.reduce("any", axis, keepdims=keepdims, variant=variant, name=name, out=out)

    def all(self, axis: Axes = None, *, keepdims: bool = False, variant: str = "", name: str = "",
            out: None = None) -> "Expression":
        """True if all elements are true."""
        return self.reduce("all", axis, keepdims=keepdims, variant=variant, name=name, out=out)

    def gemm(self, b: "Expression | Input", c: "Expression | Input | None" = None, *, alpha: float | None = None,
             beta: float | None = None, bias: "Expression | Input | None" = None, activation: Activation | None = None,
             trans_a: bool = False, trans_b: bool = False, precision: Precision | None = None,
             dtype: npt.DTypeLike | None = None, variant: str = "", name: str = "") -> "Expression":
        """Product of this and b, as `Client.gemm` computes it."""
        return self.program.gemm(self, b, c, alpha=alpha, beta=beta, bias=bias, activation=activation, trans_a=trans_a,
                                 trans_b=trans_b, precision=precision, dtype=dtype, variant=variant, name=name)

    def astype(self, dtype: npt.DTypeLike, *, name: str = "") -> "Expression":
        """Converts the elements to another data type. Floats become integers by truncation: values out of range become
        the nearest integer in range, and NaN becomes 0. Integers become narrower integers modulo 2^bits."""
        return self.program.cast(self, dtype, name=name)

    def __add__(self, other: "Expression | Input") -> "Expression":
        return self.program.add(self, other)

    def __radd__(self, other: npt.ArrayLike) -> "Expression":
        return self.program.add(other, self)

    def __sub__(self, other: "Expression | Input") -> "Expression":
        if is_number(other):
            return self.program.add(self, np.negative(self._element(other)))
        return self.program.add(self, self.program.scale(other, -1))

    def __rsub__(self, other: npt.ArrayLike) -> "Expression":
        return self.program.add(other, self.program.scale(self, -1))

    def __mul__(self, factor: float) -> "Expression":
        return self.program.scale(self, factor)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> NoReturn:
        raise TypeError("a program does not divide: t * (1 / y) scales floats, with one more rounding")

    def __neg__(self) -> "Expression":
        return self.program.scale(self, -1)

    def __matmul__(self, other: "Expression | Input") -> "Expression":
        return self.program.gemm(self, other)

    def __rmatmul__(self, other: npt.ArrayLike) -> "Expression":
        return self.program.gemm(other, self)

    def _element(self, number: Any) -> Array:
        """Converts a number to an array of this object's dtype. Raises TypeError if the dtype is not known, or cannot
        hold the number."""
        dtype = self._known_dtype()
        advice = 'give an array of the dtype that is meant, as np.array(1, "f4")'
        if dtype is None:
            raise TypeError(f"the dtype of {self} is not known before it is computed, and {number!r} has none: "
                            f"{advice}")
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


class Operation(NamedTuple):
    """The operation of a step."""

    # Name of the field in the step's message, such as "gemm".
    kind: str
    # The message in that field.
    fields: Any
    variant: str


class Expression(Operators):
    """An input of a program, or the result of one of its steps. The methods of Program make expressions, and so do the
    methods and operators of resident tensors, placeholders and expressions. np.asarray(e) computes an expression of
    resident tensors, with the client of these tensors.

    name: Name of the expression; "" if it has none.
    """

    def __init__(self, program: "Program", name: str = "", inputs: Sequence["Expression"] = (),
                 operation: Operation | None = None, operand: AnyOperand | None = None,
                 dtype: np.dtype[Any] | None = None) -> None:
        """An input has no operation. A placeholder has no operand either."""
        self.name = name
        self._program = program
        self._serial = next(_serials)
        self._inputs = tuple(inputs)
        self._operation = operation
        self._operand = operand
        self._dtype = dtype
        # For an input that is sent with its last two axes swapped: the expression in the order in which it is sent.
        self._stored: Expression | None = None

    def __repr__(self) -> str:
        kind = self._operation.kind if self._operation else "input"
        return f"<warpline.Expression {self.name or kind}>"

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        return computed_array(self._program._compute(self), dtype, copy)

    @property
    def program(self) -> "Program":
        """The program that this belongs to."""
        return self._program

    @property
    def T(self) -> "Expression":
        """This with all axes reversed, as `transpose` does."""
        return self.transpose()

    def _known_dtype(self) -> np.dtype[Any] | None:
        return self._dtype


def computed_array(array: Array, dtype: npt.DTypeLike | None, copy: bool | None) -> Array:
    """Converts fetched elements for `__array__`. Raises ValueError if copy is False, because fetching has copied
    them."""
    if copy is False:
        raise ValueError("the elements are on the server: an array of them is a copy")
    return array if dtype is None else array.astype(dtype, copy=False)


def is_number(x: Any) -> bool:
    """True for numbers without a dtype that the caller chose: Python's numbers, and NumPy scalars."""
    return isinstance(x, (int, float, complex, np.generic))
