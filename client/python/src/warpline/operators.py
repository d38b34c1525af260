"""The methods and operators of expressions and resident tensors."""

import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from warpline import composed, einsum, elementwise, indexing, ordering, products, reductions, selecting, views
from warpline.arguments import Axes
from warpline.arrays import Array
from warpline.calls import Input
from warpline.downloads import note_download
from warpline.implements import FUNCTIONS, NotHere
from warpline.names import Activation, Precision, ReduceOp
from warpline.residents import Remote

if TYPE_CHECKING:
    from warpline.expressions import Expression
    from warpline.programs import Program


class Operators(Remote):
    """The methods and operators of expressions and resident tensors. Each of them returns an Expression: nothing is
    computed before a client's run, or np.asarray.

    Arithmetic, comparison and bit operators work element by element, on expressions, resident tensors, arrays and
    numbers, whose shapes are broadcast: t * u + 1, t / u, t ** 2, t > 0, ~m & k. t @ u is the matrix product. Functions
    of NumPy that the server has return expressions, too: np.exp(t), np.maximum(t, u), np.where(t > 0, t, 0).

    Operands of different dtypes are promoted as by NumPy 2, whatever NumPy is installed: the server casts them to
    np.result_type of their dtypes. Python's numbers are weak. If t is float32, t + 1.5 is float32. If t is int32, t + 1
    is int32, t + 1.5 is float64, and t + 2**40 raises OverflowError. NumPy's scalars are not weak: for a float32 t,
    t + np.float64(1) is float64. Without the package ml_dtypes, bfloat16 and 8-bit floats have a common type with
    themselves and Python's numbers only, and raise TypeError otherwise.

    A placeholder without a dtype is not promoted: the server refuses an array of another type than the step's other
    operand. Adding one of Python's numbers to it raises TypeError.

    t == u compares elements: `t is u` tells whether they are one object.
    """

    @property
    def program(self) -> "Program":
        """The program that this belongs to."""
        raise NotImplementedError

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """Data type of the elements. None if a placeholder without a dtype leaves it open."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Sizes of the axes. None if a placeholder leaves them open, or if a step does not fit its inputs, which a
        client's run will refuse."""
        raise NotImplementedError

    @property
    def ndim(self) -> int | None:
        """Number of axes. None where `shape` is."""
        return None if self.shape is None else len(self.shape)

    def __bool__(self) -> bool:
        if self.shape != ():
            raise TypeError(f"{self} is not true or false: its any() and all() are, or whether it `is None`")
        return bool(self.item())

    def __index__(self) -> int:
        if self.shape != () or self.dtype is None or self.dtype.kind not in "iu":
            raise TypeError(f"{self} is no integer, as an integer of rank 0 is")
        return operator.index(self.item())

    def __round__(self, ndigits: int | None = None) -> Any:
        if self.shape != ():
            raise TypeError(f"{self} is not one number: np.round rounds elements")
        return round(self.item(), ndigits)

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec and self.shape == () else format(repr(self), spec)

    def __contains__(self, x: Any) -> bool:
        return bool((self == x).any())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def item(self) -> Any:
        """The one element of an expression or tensor, computed or fetched, as a number of Python."""
        return np.asarray(self).item()

    def __dlpack__(self, *, stream: None = None, max_version: Any = None, dl_device: Any = None,
                   copy: bool | None = None) -> Any:
        """The computed or fetched elements for `from_dlpack` of NumPy, PyTorch and the like. They are in host memory.
        Raises BufferError for copy=False, and for other devices than the CPU."""
        if copy is False or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError("the elements are on the server: an array of them is a copy in host memory")
        return np.asarray(self).__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's device of what `__dlpack__` gives: the CPU."""
        return 1, 0

    def transpose(self, axes: Any = None, *more: int, variant: str = "", name: str = "") -> "Expression":
        """Permutes the axes: axis i of the result is axis axes[i] of this; transpose(1, 0) is transpose((1, 0)). None:
        reverses all axes, as NumPy does.
        Raises TypeError if the client does not know the number of axes, for example of placeholders."""
        given = (axes, *more) if more else axes
        return self.program.transpose(self, given, variant=variant, name=name)

    @property
    def mT(self) -> "Expression":
        """This with its last two axes swapped, for any number of axes."""
        return self.program._swapped(self)

    def reduce(self, op: ReduceOp, axis: Axes = None, *, keepdims: bool = False, dtype: npt.DTypeLike | None = None,
               ddof: float = 0, variant: str = "", name: str = "", out: None = None, where: Any = True,
               initial: Any = None) -> "Expression":
        """Reduces axes, as `Client.reduce` does. `out` exists for compatibility with NumPy, and must be None. `where` is a
        mask that is broadcast: the elements for which it is true are reduced. `initial` counts as one more element of
        sum, prod, min and max. With where, initial, or a ddof that is no integer there are several steps, without
        variant and name."""
        if out is not None:
            raise TypeError("out is given to an expression, which is not computed here: give it to a client's run")
        return reductions.make(self, op, axis, keepdims, dtype, ddof, variant, name, where, initial)

    def sum(self, axis: Axes = None, *, keepdims: bool = False, dtype: npt.DTypeLike | None = None,
            variant: str = "", name: str = "", out: None = None, where: Any = True, initial: Any = None) -> \
            "Expression":
        """Sum."""
        return self.reduce("sum", axis, keepdims=keepdims, dtype=dtype, variant=variant, name=name, out=out,
                           where=where, initial=initial)

    def prod(self, axis: Axes = None, *, keepdims: bool = False, dtype: npt.DTypeLike | None = None,
             variant: str = "", name: str = "", out: None = None, where: Any = True, initial: Any = None) -> \
            "Expression":
        """Product."""
        return self.reduce("prod", axis, keepdims=keepdims, dtype=dtype, variant=variant, name=name, out=out,
                           where=where, initial=initial)

    def min(self, axis: Axes = None, *, keepdims: bool = False, variant: str = "", name: str = "", out: None = None,
            where: Any = True, initial: Any = None) -> "Expression":
        """Smallest element."""
        return self.reduce("min", axis, keepdims=keepdims, variant=variant, name=name, out=out, where=where,
                           initial=initial)

    def max(self, axis: Axes = None, *, keepdims: bool = False, variant: str = "", name: str = "", out: None = None,
            where: Any = True, initial: Any = None) -> "Expression":
        """Largest element."""
        return self.reduce("max", axis, keepdims=keepdims, variant=variant, name=name, out=out, where=where,
                           initial=initial)

    def mean(self, axis: Axes = None, *, keepdims: bool = False, dtype: npt.DTypeLike | None = None,
             variant: str = "", name: str = "", out: None = None, where: Any = True) -> "Expression":
        """Arithmetic mean."""
        return self.reduce("mean", axis, keepdims=keepdims, dtype=dtype, variant=variant, name=name, out=out,
                           where=where)

    def var(self, axis: Axes = None, *, keepdims: bool = False, dtype: npt.DTypeLike | None = None, ddof: float = 0,
            variant: str = "", name: str = "", out: None = None, where: Any = True) -> "Expression":
        """Variance, with NumPy's ddof."""
        return self.reduce("var", axis, keepdims=keepdims, dtype=dtype, ddof=ddof, variant=variant, name=name,
                           out=out, where=where)

    def std(self, axis: Axes = None, *, keepdims: bool = False, dtype: npt.DTypeLike | None = None, ddof: float = 0,
            variant: str = "", name: str = "", out: None = None, where: Any = True) -> "Expression":
        """Standard deviation, with NumPy's ddof."""
        return self.reduce("std", axis, keepdims=keepdims, dtype=dtype, ddof=ddof, variant=variant, name=name,
                           out=out, where=where)

    def argmin(self, axis: int | None = None, *, keepdims: bool = False, variant: str = "", name: str = "",
               out: None = None) -> "Expression":
        """Index of the first smallest element."""
        return self.reduce("argmin", axis, keepdims=keepdims, variant=variant, name=name, out=out)

    def argmax(self, axis: int | None = None, *, keepdims: bool = False, variant: str = "", name: str = "",
               out: None = None) -> "Expression":
        """Index of the first largest element."""
        return self.reduce("argmax", axis, keepdims=keepdims, variant=variant, name=name, out=out)

    def any(self, axis: Axes = None, *, keepdims: bool = False, variant: str = "", name: str = "",
            out: None = None, where: Any = True) -> "Expression":
        """True if any element is true."""
        return self.reduce("any", axis, keepdims=keepdims, variant=variant, name=name, out=out, where=where)

    def all(self, axis: Axes = None, *, keepdims: bool = False, variant: str = "", name: str = "",
            out: None = None, where: Any = True) -> "Expression":
        """True if all elements are true."""
        return self.reduce("all", axis, keepdims=keepdims, variant=variant, name=name, out=out, where=where)

    def gemm(self, b: "Expression | Input", c: "Expression | Input | None" = None, *, alpha: float | None = None,
             beta: float | None = None, bias: "Expression | Input | None" = None, activation: Activation | None = None,
             trans_a: bool = False, trans_b: bool = False, precision: Precision | None = None,
             dtype: npt.DTypeLike | None = None, variant: str = "", name: str = "") -> "Expression":
        """Product of this and b, as `Client.gemm` computes it."""
        return self.program.gemm(self, b, c, alpha=alpha, beta=beta, bias=bias, activation=activation, trans_a=trans_a,
                                 trans_b=trans_b, precision=precision, dtype=dtype, variant=variant, name=name)

    def __getitem__(self, key: Any) -> "Expression":
        """The elements that integers, slices, None, ... and arrays of indices choose, as in NumPy. Indices of an array that
        are out of range are an error of the server. A mask alone gives the elements for which it is true, as an output
        of a run."""
        key = indexing.own_key(key)
        if indexing.is_mask(key):
            return selecting.masked(self, key)
        return indexing.item(self, key)

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise TypeError("tensors and expressions never change: warpline.set_slice(t, key, values) and np.where(mask, values, "
                        "t) give changed copies")

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"{self} has no axis whose size is known")
        return self.shape[0]

    def __iter__(self) -> Iterator["Expression"]:
        return (self[i] for i in range(len(self)))

    def reshape(self, *shape: Any, order: str = "C", copy: None = None) -> "Expression":
        """The elements in row-major order with another shape, of which one size may be -1."""
        sizes = shape[0] if len(shape) == 1 else shape
        return views.reshape(self, sizes, order, copy=copy)

    def ravel(self) -> "Expression":
        """All elements in row-major order, along one axis."""
        return views.reshape(self, -1)

    def flatten(self, order: str = "C") -> "Expression":
        """As ravel()."""
        return views.reshape(self, -1, order)

    def squeeze(self, axis: Axes = None) -> "Expression":
        """Without axes of size 1: the given ones, or all of them."""
        return views.squeeze(self, axis)

    def swapaxes(self, axis1: int, axis2: int) -> "Expression":
        """With two axes swapped."""
        return views.swapaxes(self, axis1, axis2)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> "Expression":
        """The diagonals of the matrices that two axes span, along the last axis."""
        return views.diagonal(self, offset, axis1, axis2)

    def take(self, indices: Any, axis: int | None = None, out: None = None, mode: str = "raise") -> "Expression":
        """The elements that indices choose along an axis, as `np.take`. None: of all elements in a row."""
        return indexing.take(self, indices, axis, out, mode)

    def nonzero(self) -> "tuple[Expression, ...]":
        """The places of elements that are not 0, as `np.nonzero`. What reads them is computed by another request."""
        return selecting.nonzero(self)

    def repeat(self, repeats: Any, axis: int | None = None) -> "Expression":
        """Each element several times, as `np.repeat`."""
        return indexing.repeat(self, repeats, axis)

    def cumsum(self, axis: int | None = None, dtype: npt.DTypeLike | None = None, out: None = None) -> "Expression":
        """Running sums along an axis, as `np.cumsum`. None: of all elements in a row."""
        return ordering.cumsum(self, axis, dtype, out)

    def cumprod(self, axis: int | None = None, dtype: npt.DTypeLike | None = None, out: None = None) -> "Expression":
        """Running products along an axis, as `np.cumprod`. None: of all elements in a row."""
        return ordering.cumprod(self, axis, dtype, out)

    def argsort(self, axis: int | None = -1, kind: Any = None, order: None = None, *, stable: bool | None = None,
                descending: bool = False) -> "Expression":
        """The places of the sorted elements along an axis, as `np.argsort`. None: of all elements in a row."""
        return ordering.argsort(self, axis, kind, order, stable=stable, descending=descending)

    def searchsorted(self, v: Any, side: str = "left", sorter: Any = None) -> "Expression":
        """The places of v in this sorted vector, as `np.searchsorted`."""
        return ordering.searchsorted(self, v, side, sorter)

    def astype(self, dtype: npt.DTypeLike, *, name: str = "") -> "Expression":
        """Converts the elements to another data type. Floats become integers by truncation: values out of range become
        the nearest integer in range, and NaN becomes 0. Integers become narrower integers modulo 2^bits."""
        return self.program.cast(self, dtype, name=name)

    def _apply(self, op: str, *operands: Any) -> "Expression":
        """An elementwise operation on these operands, one of which is this object."""
        made: Expression = elementwise.apply(op, self.program, operands)
        return made

    def __add__(self, other: Any) -> "Expression":
        return self._apply("add", self, other)

    def __radd__(self, other: Any) -> "Expression":
        return self._apply("add", other, self)

    def __sub__(self, other: Any) -> "Expression":
        return self._apply("subtract", self, other)

    def __rsub__(self, other: Any) -> "Expression":
        return self._apply("subtract", other, self)

    def __mul__(self, other: Any) -> "Expression":
        return self._apply("multiply", self, other)

    def __rmul__(self, other: Any) -> "Expression":
        return self._apply("multiply", other, self)

    def __truediv__(self, other: Any) -> "Expression":
        return self._apply("divide", self, other)

    def __rtruediv__(self, other: Any) -> "Expression":
        return self._apply("divide", other, self)

    def __floordiv__(self, other: Any) -> "Expression":
        return self._apply("floor_divide", self, other)

    def __rfloordiv__(self, other: Any) -> "Expression":
        return self._apply("floor_divide", other, self)

    def __mod__(self, other: Any) -> "Expression":
        return self._apply("remainder", self, other)

    def __rmod__(self, other: Any) -> "Expression":
        return self._apply("remainder", other, self)

    def __divmod__(self, other: Any) -> "tuple[Expression, Expression]":
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> "tuple[Expression, Expression]":
        return other // self, other % self

    def __pow__(self, other: Any) -> "Expression":
        return self._apply("pow", self, other)

    def __rpow__(self, other: Any) -> "Expression":
        return self._apply("pow", other, self)

    def __and__(self, other: Any) -> "Expression":
        return self._apply("bitwise_and", self, other)

    def __rand__(self, other: Any) -> "Expression":
        return self._apply("bitwise_and", other, self)

    def __or__(self, other: Any) -> "Expression":
        return self._apply("bitwise_or", self, other)

    def __ror__(self, other: Any) -> "Expression":
        return self._apply("bitwise_or", other, self)

    def __xor__(self, other: Any) -> "Expression":
        return self._apply("bitwise_xor", self, other)

    def __rxor__(self, other: Any) -> "Expression":
        return self._apply("bitwise_xor", other, self)

    def __lshift__(self, other: Any) -> "Expression":
        return self._apply("bitwise_left_shift", self, other)

    def __rlshift__(self, other: Any) -> "Expression":
        return self._apply("bitwise_left_shift", other, self)

    def __rshift__(self, other: Any) -> "Expression":
        return self._apply("bitwise_right_shift", self, other)

    def __rrshift__(self, other: Any) -> "Expression":
        return self._apply("bitwise_right_shift", other, self)

    def __invert__(self) -> "Expression":
        return self._apply("bitwise_invert", self)

    def __neg__(self) -> "Expression":
        return self._apply("negative", self)

    def __pos__(self) -> "Expression":
        return elementwise.positive(self)

    def __abs__(self) -> "Expression":
        return self._apply("abs", self)

    def __eq__(self, other: object) -> "Expression":  # type: ignore[override]
        if other is None:
            return NotImplemented
        return self._apply("equal", self, other)

    def __ne__(self, other: object) -> "Expression":  # type: ignore[override]
        if other is None:
            return NotImplemented
        return self._apply("not_equal", self, other)

    def __lt__(self, other: Any) -> "Expression":
        return self._apply("less", self, other)

    def __le__(self, other: Any) -> "Expression":
        return self._apply("less_equal", self, other)

    def __gt__(self, other: Any) -> "Expression":
        return self._apply("greater", self, other)

    def __ge__(self, other: Any) -> "Expression":
        return self._apply("greater_equal", self, other)

    # np.clip, np.transpose and the like call the methods of their names.
    _functions = FUNCTIONS

    # By identity: sets and dicts ask for equality only of objects with one hash.
    __hash__ = object.__hash__

    @property
    def real(self) -> "Expression":
        """Real part."""
        return self._apply("real", self)

    @property
    def imag(self) -> "Expression":
        """Imaginary part of complex numbers."""
        return self._apply("imag", self)

    def conj(self) -> "Expression":
        """Complex conjugate."""
        return self._apply("conj", self)

    def clip(self, min: Any = None, max: Any = None, *, out: None = None) -> "Expression":
        """The elements, moved into [min, max]. None: no limit. `out` exists for compatibility with NumPy, and must be
        None."""
        if out is not None:
            raise TypeError("out is given to an expression, which is not computed here: give it to a client's run")
        return elementwise.clip(self, min, max)

    def round(self, decimals: int = 0, *, out: None = None) -> "Expression":
        """The elements rounded to so many decimals, half to even, as `np.round`."""
        if out is not None:
            raise TypeError("out is given to an expression, which is not computed here: give it to a client's run")
        if decimals > 0 and self.dtype is not None and self.dtype.kind in "biu":
            return elementwise.positive(self)
        scale = 10.0 ** abs(decimals)
        if self.dtype is not None and self.dtype.kind in "iu" and decimals < 0:
            # NumPy computes in float64, and the result is modulo 2^bits.
            return (self._apply("round", self / scale) * scale).astype(np.int64).astype(self.dtype)
        if decimals > 0:
            return self._apply("round", self * scale) / scale
        return self._apply("round", self / scale) * scale if decimals < 0 else self._apply("round", self)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        if ufunc is np.matmul and method == "__call__" and not keywords:
            return self._product(inputs[0], inputs[1])
        if ufunc is getattr(np, "vecdot", None) and method == "__call__":  # a ufunc since NumPy 2
            return products.vecdot(*inputs, **keywords)
        if method == "at" or keywords.get("out"):
            what = f"numpy.{ufunc.__name__}{'.at' if method == 'at' else ''}"
            raise TypeError(f"{what} writes into an array: tensors never change, and a client's run writes into its out")
        if method in ("accumulate", "reduce", "outer"):
            try:
                return getattr(reductions, method)(ufunc, *inputs, **keywords)
            except NotHere:
                pass
        return elementwise.call_of_ufunc(self.program, ufunc, method, inputs, keywords)

    def __matmul__(self, other: "Expression | Input") -> "Expression":
        return self._product(self, other)

    def __rmatmul__(self, other: npt.ArrayLike) -> "Expression":
        return self._product(other, self)

    def _product(self, a: Any, b: Any) -> "Expression":
        """The matrix product. As in NumPy, a vector is a row on the left and a column on the right."""
        left, right = self.program._expression(a), self.program._expression(b)
        row, column = left.ndim == 1, right.ndim == 1
        if not row and not column:
            return self.program.gemm(a, b)
        product = self.program.gemm(left[None, :] if row else a, right[:, None] if column else b)
        shape = product.shape
        if shape is None:
            return product
        kept = shape[:-2] + (() if row else shape[-2:-1]) + (() if column else shape[-1:])
        return views.reshape(product, kept)


def computed_array(array: Array, dtype: npt.DTypeLike | None, copy: bool | None) -> Array:
    """Converts fetched elements for `__array__`. Raises ValueError if copy is False, because fetching has copied
    them."""
    if copy is False:
        raise ValueError("the elements are on the server: an array of them is a copy")
    note_download()
    return array if dtype is None else array.astype(dtype, copy=False)
