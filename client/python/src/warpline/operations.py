"""The operations of both clients, each of which is declared once: they differ in how a call is made."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, Literal, NamedTuple, TypedDict, TypeVar, Unpack, overload

import numpy.typing as npt

from warpline import direct, targets
from warpline.arguments import Axes
from warpline.arrays import Array
from warpline.calls import Call, Input, Progress, Report
from warpline.names import Activation, Precision, ReduceOp
from warpline.operators import Operators
from warpline.programs import Program
from warpline.residents import Resident

# What a call returns for an array, and for a tensor that stays on the server: of the asynchronous client coroutines.
_A = TypeVar("_A")
_T = TypeVar("_T")


class CallOptions(TypedDict, total=False):
    """What calls of one operation take beside `keep`; `Client` says what each of them means."""

    out: Array | None
    ttl: float | None
    timeout: float | None
    request_id: str | None
    report: Report | None
    progress: Progress | None


_NAMES = frozenset(CallOptions.__annotations__)


class Settings(NamedTuple):
    """How a call is sent."""

    timeout: float
    request_id: str
    report: Report | None
    progress: Progress | None


def settings_of(options: CallOptions, timeout: float) -> Settings:
    """The settings in `options`, with defaults for the rest. timeout: the client's own."""
    given = options.get("timeout")
    return Settings(timeout if given is None else targets.check_timeout(given),
                    targets.check_request_id(options.get("request_id")), options.get("report"), options.get("progress"))


def check_names(method: str, options: CallOptions) -> None:
    """Raises TypeError for an option that there is not."""
    for name in options:
        if name not in _NAMES:
            raise TypeError(f"{method}() got an unexpected keyword argument {name!r}")


class Operations(Generic[_A, _T]):
    """The operations, one request each."""

    def _call(self, make: Callable[..., Call], arguments: Sequence[Any], operands: int, keep: bool,
              options: CallOptions) -> Any:
        """Makes a call of the arguments, the first `operands` of which are arrays and the like, and sends it."""
        raise NotImplementedError

    def _run(self, expressions: Sequence[Operators | Program | Array], inputs: dict[str, Input], keep: bool | Sequence[bool],
             free_after: Sequence[Resident], out: Array | Sequence[Array | None] | None, options: CallOptions) -> Any:
        raise NotImplementedError

    @overload
    def transpose(self, x: Input, axes: Iterable[int] | None = ..., *, variant: str = ..., keep: Literal[False] = ...,
                  **options: Unpack[CallOptions]) -> _A: ...

    @overload
    def transpose(self, x: Input, axes: Iterable[int] | None = ..., *, variant: str = ..., keep: Literal[True],
                  **options: Unpack[CallOptions]) -> _T: ...

    def transpose(self, x: Input, axes: Iterable[int] | None = None, *, variant: str = "", keep: bool = False,
                  **options: Unpack[CallOptions]) -> _A | _T:
        """Permutes the axes of an array.

        x: Array of any element type and rank 0 to 8.
        axes: The new order: axis i of the result is axis axes[i] of x. -1 is the last axis. None: reverses all axes,
            as NumPy does. None raises TypeError if x is an expression whose number of axes the client does not know.
        """
        return self._call(direct.transpose, (x, axes, variant), 1, keep, options)

    @overload
    def gemm(self, a: Input, b: Input, c: Input | None = ..., *, alpha: float | None = ..., beta: float | None = ...,
             bias: Input | None = ..., activation: Activation | None = ..., trans_a: bool = ..., trans_b: bool = ...,
             precision: Precision | None = ..., dtype: npt.DTypeLike | None = ..., variant: str = ...,
             keep: Literal[False] = ..., **options: Unpack[CallOptions]) -> _A: ...

    @overload
    def gemm(self, a: Input, b: Input, c: Input | None = ..., *, alpha: float | None = ..., beta: float | None = ...,
             bias: Input | None = ..., activation: Activation | None = ..., trans_a: bool = ..., trans_b: bool = ...,
             precision: Precision | None = ..., dtype: npt.DTypeLike | None = ..., variant: str = ...,
             keep: Literal[True], **options: Unpack[CallOptions]) -> _T: ...

    def gemm(self, a: Input, b: Input, c: Input | None = None, *, alpha: float | None = None,
             beta: float | None = None, bias: Input | None = None, activation: Activation | None = None,
             trans_a: bool = False, trans_b: bool = False, precision: Precision | None = None,
             dtype: npt.DTypeLike | None = None, variant: str = "", keep: bool = False,
             **options: Unpack[CallOptions]) -> _A | _T:
        """Multiplies matrices: activation(alpha * op(a) @ op(b) + beta * c + bias), of shape [batch..., m, n]. op(x) is
        x, or x with its last two axes swapped. Views such as a.T are sent in memory order, and the server swaps their
        axes.

        a: Array of shape [batch..., m, k], or [batch..., k, m] with trans_a; of integers, float16, bfloat16,
            float32, float64, complex64 or complex128. Integers are multiplied modulo 2^bits of the result.
        b: Array of shape [batch..., k, n], or [batch..., n, k] with trans_b. The batch axes of a and b are broadcast
            as by np.matmul.
        c: Array of shape [batch..., m, n]. Its batch axes are broadcast.
        alpha: Factor of the product. None: 1.
        beta: Factor of c. None: 1 if there is a c, else 0.
        bias: Array of shape [n]. It is added to every row. Only of floats.
        activation: Function that is applied to each element at the end. None: no function. Only of floats. "gelu" is the tanh form.
        trans_a: If true, the last two axes of a are swapped.
        trans_b: If true, the last two axes of b are swapped.
        precision: Arithmetic of float32. None: "ieee".
        dtype: Data type of the result. None: int32 for int8, else that of a and b. float16 and bfloat16 may also give
            float32, and int8 may give int8.

        Operands of different dtypes are promoted as by NumPy 2: the server casts a and b to np.result_type of their
        dtypes, then c and bias to the result's dtype, or all of them to that of c or bias if it is wider. With dtype=,
        c and bias are cast only to a wider type.
        """
        given = (a, b, c, bias, alpha, beta, activation, trans_a, trans_b, precision, dtype, variant)
        return self._call(direct.gemm, given, 4, keep, options)

    @overload
    def matmul(self, a: Input, b: Input, *, dtype: npt.DTypeLike | None = ..., keep: Literal[False] = ...,
               **options: Unpack[CallOptions]) -> _A: ...

    @overload
    def matmul(self, a: Input, b: Input, *, dtype: npt.DTypeLike | None = ..., keep: Literal[True],
               **options: Unpack[CallOptions]) -> _T: ...

    def matmul(self, a: Input, b: Input, *, dtype: npt.DTypeLike | None = None, keep: bool = False,
               **options: Unpack[CallOptions]) -> _A | _T:
        """Multiplies matrices: a @ b, of shape [batch..., m, n]. `gemm` has the details and more options."""
        return self._call(direct.matmul, (a, b, dtype), 2, keep, options)

    @overload
    def reduce(self, x: Input, op: ReduceOp, axis: Axes = ..., *, keepdims: bool = ...,
               dtype: npt.DTypeLike | None = ..., ddof: int = ..., variant: str = ..., keep: Literal[False] = ...,
               **options: Unpack[CallOptions]) -> _A: ...

    @overload
    def reduce(self, x: Input, op: ReduceOp, axis: Axes = ..., *, keepdims: bool = ...,
               dtype: npt.DTypeLike | None = ..., ddof: int = ..., variant: str = ..., keep: Literal[True],
               **options: Unpack[CallOptions]) -> _T: ...

    def reduce(self, x: Input, op: ReduceOp, axis: Axes = None, *, keepdims: bool = False,
               dtype: npt.DTypeLike | None = None, ddof: int = 0, variant: str = "", keep: bool = False,
               **options: Unpack[CallOptions]) -> _A | _T:
        """Reduces an array over some of its axes. Results equal NumPy's, except for the differences listed in
        docs/operations.md#results-and-numpy.

        x: Array of any element type except 8-bit floats. Complex numbers have sum, prod and mean.
        op: The reduction. If the axes have no elements, min, max, argmin, argmax and norminf raise InvalidArgument.
        axis: One axis, several axes, or None for all axes. argmin and argmax take one axis or all.
        keepdims: If true, the reduced axes stay, with size 1.
        dtype: Data type of the result. None: the operation's default. argmin, argmax, any, all and count_nonzero
            support no other.
        ddof: NumPy's ddof, for var and std. It must be 0 for all other reductions.
        """
        return self._call(direct.reduce, (x, op, axis, keepdims, dtype, ddof, variant), 1, keep, options)

    def run(self, *expressions: Operators | Program | Array, out: Array | Sequence[Array | None] | None = None,
            keep: bool | Sequence[bool] = False, ttl: float | None = None, timeout: float | None = None,
            request_id: str | None = None, report: Report | None = None, progress: Progress | None = None,
            free_after: Sequence[Resident] = (), **inputs: Input) -> Any:
        """Computes expressions, or the outputs of a program, in one request. Returns one result for one expression, and
        a tuple for several. Only the necessary steps are sent, at most 256, and each of their inputs once. Intermediate
        results stay on the server's device.

        expressions: Expressions of one program, or of resident tensors; or one Program that has outputs. An expression
            that is given several times is computed and sent once. Its results are one array, or one Tensor. (To a
            checker of types NumPy's functions return arrays: here they are expressions.)
        out: For one result, an array. For several results, a sequence of arrays and None.
        keep: If true, results stay on the server. For several results, a sequence can set it for each result.
        free_after: Tensors, at most 256, that the server drops when the request has succeeded. They may be inputs of
            it. They cost no call of their own. The request is not repeated if its response is lost.
        inputs: For each placeholder, by its name, an array or a resident tensor. Raises TypeError if names are missing
            or unknown.
        """
        options: CallOptions = {"ttl": ttl, "timeout": timeout, "request_id": request_id, "report": report,
                                "progress": progress}
        return self._run(expressions, inputs, keep, free_after, out, options)

    def sum(self, x: Input, axis: Axes = None, *, keepdims: bool = False, dtype: npt.DTypeLike | None = None,
            **options: Unpack[CallOptions]) -> _A:
        """Sum."""
        return self.reduce(x, "sum", axis, keepdims=keepdims, dtype=dtype, **options)

    def prod(self, x: Input, axis: Axes = None, *, keepdims: bool = False, dtype: npt.DTypeLike | None = None,
             **options: Unpack[CallOptions]) -> _A:
        """Product."""
        return self.reduce(x, "prod", axis, keepdims=keepdims, dtype=dtype, **options)

    def mean(self, x: Input, axis: Axes = None, *, keepdims: bool = False, dtype: npt.DTypeLike | None = None,
             **options: Unpack[CallOptions]) -> _A:
        """Arithmetic mean."""
        return self.reduce(x, "mean", axis, keepdims=keepdims, dtype=dtype, **options)

    def var(self, x: Input, axis: Axes = None, *, ddof: int = 0, keepdims: bool = False,
            dtype: npt.DTypeLike | None = None, **options: Unpack[CallOptions]) -> _A:
        """Variance, with NumPy's ddof."""
        return self.reduce(x, "var", axis, keepdims=keepdims, dtype=dtype, ddof=ddof, **options)

    def std(self, x: Input, axis: Axes = None, *, ddof: int = 0, keepdims: bool = False,
            dtype: npt.DTypeLike | None = None, **options: Unpack[CallOptions]) -> _A:
        """Standard deviation, with NumPy's ddof."""
        return self.reduce(x, "std", axis, keepdims=keepdims, dtype=dtype, ddof=ddof, **options)

    def min(self, x: Input, axis: Axes = None, *, keepdims: bool = False, **options: Unpack[CallOptions]) -> _A:
        """Smallest element."""
        return self.reduce(x, "min", axis, keepdims=keepdims, **options)

    def max(self, x: Input, axis: Axes = None, *, keepdims: bool = False, **options: Unpack[CallOptions]) -> _A:
        """Largest element."""
        return self.reduce(x, "max", axis, keepdims=keepdims, **options)

    def argmin(self, x: Input, axis: int | None = None, *, keepdims: bool = False,
               **options: Unpack[CallOptions]) -> _A:
        """Index of the first smallest element."""
        return self.reduce(x, "argmin", axis, keepdims=keepdims, **options)

    def argmax(self, x: Input, axis: int | None = None, *, keepdims: bool = False,
               **options: Unpack[CallOptions]) -> _A:
        """Index of the first largest element."""
        return self.reduce(x, "argmax", axis, keepdims=keepdims, **options)

    def any(self, x: Input, axis: Axes = None, *, keepdims: bool = False, **options: Unpack[CallOptions]) -> _A:
        """True if any element is true."""
        return self.reduce(x, "any", axis, keepdims=keepdims, **options)

    def all(self, x: Input, axis: Axes = None, *, keepdims: bool = False, **options: Unpack[CallOptions]) -> _A:
        """True if all elements are true."""
        return self.reduce(x, "all", axis, keepdims=keepdims, **options)
