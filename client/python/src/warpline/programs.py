"""Chains of operations that run on the server as one request.

    p = warpline.program()
    c = p.gemm(a, b).transpose().sum(axis=1)
    y = client.run(c)

Nothing is computed, and no array is read, before `run`. A program can be built once and run again after its
arrays have changed. Placeholders take new arrays in each run:

    x = warpline.placeholder("x")
    p = warpline.program((x @ weights).max(axis=1))
    y = client.run(p, x=array)

The server checks shapes and types. Its errors name the step by the name that the caller gave, or by kind and number.
"""

import operator
import re
import weakref
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, cast

import numpy as np
import numpy.typing as npt

from warpline import arguments, elementwise, free, graphs, promotion
from warpline.arrays import AnyOperand, Array, Operand, operand_of
from warpline.arguments import Axes, fields_of
from warpline.calls import Input
from warpline.dtypes import result_data_type
from warpline.expressions import Expression, Operation
from warpline.inference import step_dtype
from warpline.names import Activation, Precision, ReduceOp
from warpline.operators import Operators
from warpline.residents import Remote, Resident, ResidentOperand


class Program:
    """A graph of expressions. The methods here and those of Expression add steps. Only one thread at a time may use a
    program.

    Every method takes arrays, resident tensors, and expressions that do not belong to another program. An array that is
    used twice is sent once.

    outputs: The expressions that client.run(program) computes.
    name: Name of the step: 1 to 64 letters, digits, '_', '.' or '-', unique in the program. "": the run makes a name
        from the operation and a number.
    variant: Name of the implementation to run. "": the server's choice.
    """

    def __init__(self, outputs: Sequence[Operators] = ()) -> None:
        """See warpline.program."""
        # Arrays and tensors to send, by address and layout: equal views of one array are one input.
        # References are weak: only the expressions keep an array alive.
        self._sources: weakref.WeakValueDictionary[Any, Expression] = weakref.WeakValueDictionary()
        # Inputs that the device permutes after they are sent, by source and permutation.
        self._permuted: weakref.WeakValueDictionary[Any, Expression] = weakref.WeakValueDictionary()
        # Casts that promotion has made, by expression and data type.
        self._promoted: weakref.WeakValueDictionary[Any, Expression] = weakref.WeakValueDictionary()
        self.outputs = tuple(x if isinstance(x, Expression) else self._expression(x) for x in outputs)
        # The expressions that the last run has computed, and their graph.
        self._graph: tuple[list[Expression], graphs.Graph] | None = None

    def __repr__(self) -> str:
        outputs = ", ".join(x._description() for x in self.outputs)
        return f"<warpline.Program {outputs or 'without outputs'}>"

    def input(self, x: Input) -> Expression:
        """Makes an expression of an array or a resident tensor. The elements are read when the program runs."""
        operand = operand_of(x)
        source = self._source(operand)
        return source if operand.in_order else self._permutation(source, operand.perm, operand.swaps_last_two)

    def transpose(self, x: Operators | Input, axes: Iterable[int] | None = None, *, variant: str = "",
                  name: str = "") -> Expression:
        """Permutes axes, as `Client.transpose` does."""
        given = self._expression(x)
        rank = given.ndim
        if axes is not None:
            perm = arguments.perm_of(axes, rank)
        elif rank is not None:
            perm = arguments.reversed_axes(rank)
        else:
            reason = f"({given._refusal})" if given._refusal else "before it is computed"
            raise TypeError(f"the rank of {given} is not known {reason}: mT swaps the last two axes, transpose(axes) any")
        return self._transposed(given, perm, variant, name)

    def gemm(self, a: Operators | Input, b: Operators | Input,
             c: Operators | Input | None = None, *, alpha: float | None = None, beta: float | None = None,
             bias: Operators | Input | None = None, activation: Activation | None = None, trans_a: bool = False,
             trans_b: bool = False, precision: Precision | None = None, dtype: npt.DTypeLike | None = None,
             variant: str = "", name: str = "") -> Expression:
        """Multiplies matrices, as `Client.gemm` does."""
        (left, a_swapped), (right, b_swapped) = self._matrix(a), self._matrix(b)
        beta = arguments.beta_of(beta, c is not None)
        # With beta == 0, c is not read, and so not sent.
        terms = [self._expression(x) for x in (c if beta != 0 else None, bias) if x is not None]
        out = result_data_type(dtype)
        known = [x.dtype for x in terms if x.dtype is not None]
        if left.dtype is not None and right.dtype is not None and len(known) == len(terms):
            factors, result, out = promotion.product_types(left.dtype, right.dtype, tuple(known), out)
            left, right = self._cast(left, factors), self._cast(right, factors)
            terms = [self._cast(x, result) if promotion.common(dtype_of_x, result) == result else x
                     for x, dtype_of_x in zip(terms, known)]
        step = fields_of(
            trans_a=arguments.flag_of("trans_a", trans_a) != a_swapped,
            trans_b=arguments.flag_of("trans_b", trans_b) != b_swapped,
            alpha=arguments.factor_of("alpha", alpha), beta=beta,
            precision=arguments.precision_of(precision), has_bias=bias is not None,
            activation=arguments.activation_of(activation), out_data_type=out)
        return self._step("gemm", [left, right, *terms], step, variant, name, graphs.dtype_of(out))

    def reduce(self, x: Operators | Input, op: ReduceOp, axis: Axes = None, *, keepdims: bool = False,
               dtype: npt.DTypeLike | None = None, ddof: int = 0, variant: str = "", name: str = "") -> Expression:
        """Reduces axes, as `Client.reduce` does."""
        step = fields_of(op=arguments.reduce_op(op), axes=arguments.axes_of(axis),
                         keepdims=arguments.flag_of("keepdims", keepdims),
                         ddof=arguments.ddof_of(ddof), out_data_type=result_data_type(dtype))
        return self._step("reduce", [self._expression(x)], step, variant, name, graphs.dtype_of(result_data_type(dtype)))

    def cast(self, x: Operators | Input, dtype: npt.DTypeLike, *, variant: str = "",
             name: str = "") -> Expression:
        """Converts elements to another data type, as `Expression.astype` does. Neither type may be an 8-bit float, and
        complex numbers become complex numbers or bool only."""
        number = result_data_type(dtype)
        return self._step("cast", [self._expression(x)], fields_of(data_type=number), variant, name, graphs.dtype_of(number))

    def scale(self, x: Operators | Input, factor: float, *, variant: str = "", name: str = "") -> Expression:
        """Multiplies x by a number, and keeps the dtype of x: any except bool, complex types and 8-bit floats. (The
        operator x * number promotes x first, as NumPy 2 does: a float makes float64 of integers.)
        Integers take an integer factor in [-2^53, 2^53], and are multiplied modulo 2^bits."""
        given, step = self._expression(x), fields_of(factor=_factor(factor))
        return self._step("scale", [given], step, variant, name)

    def add(self, x: Operators | Input, y: Operators | Input, *, variant: str = "",
            name: str = "") -> Expression:
        """Adds x and y, whose dtypes may differ: they are promoted as by NumPy 2. The common dtype is any except complex
        types and 8-bit floats. Shapes are broadcast. Integers are added modulo 2^bits, and the sum of bools is "or".
        Either x or y may be a number, as in t + 1."""
        return elementwise.make("add", self, (x, y), variant, name)

    def elementwise(self, op: str, *operands: Operators | Input, variant: str = "", name: str = "") -> Expression:
        """An elementwise operation of arrays, tensors, expressions and numbers, which are promoted as by NumPy and
        broadcast. Raises TypeError for an operation that does not exist.

        op: Its name in docs/array-api.md, such as "exp" or "where".
        """
        if op not in elementwise.ROWS or op in ("constant", "cast", "index"):
            raise TypeError(f"there is no elementwise operation {op!r}")
        return elementwise.make(op, self, operands, variant, name)

    def _constant(self, fields: Any, dtype: np.dtype[Any]) -> Expression:
        """A number in a map."""
        return Expression(self, "", (), Operation("constant", fields, ""), dtype=dtype)

    def _cast(self, x: Expression, dtype: np.dtype[Any]) -> Expression:
        """x itself if it has the dtype, else a cast of it: the same one for the same x."""
        if x.dtype == dtype:
            return x
        key = (x._serial, dtype)
        found = self._promoted.get(key)
        if found is None:
            found = self._promoted[key] = self.cast(x, dtype)
        return found

    def _swapped(self, x: Operators) -> Expression:
        """Swaps the last two axes of x, for any number of axes."""
        return self._transposed(self._expression(x), [])

    def _swapped_tensor(self, x: Resident) -> Expression:
        """Swaps the last two axes of a tensor of rank 2 or more. As a factor of a product, the result costs no
        step."""
        source = self._source(operand_of(x))
        perm = (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)
        return self._permutation(source, perm, True)

    def _transposed(self, x: Expression, perm: Sequence[int], variant: str = "", name: str = "") -> Expression:
        """perm: the permutation as the API has it; empty swaps the last two axes."""
        return self._step("transpose", [x], fields_of(perm=list(perm)), variant, name)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> NoReturn:
        raise TypeError("a program is no array: a client's run computes its outputs")

    def _expression(self, x: Operators | Input) -> Expression:
        if not isinstance(x, Expression):
            return self.input(cast(Input, x))
        if graphs.common([self, x.program]) is None:
            raise ValueError(f"{x} belongs to another program")
        return x

    def _source(self, operand: AnyOperand) -> Expression:
        """The expression of an operand, with its axes in the order in which they are sent."""
        key: Any
        if isinstance(operand, ResidentOperand):
            key = id(operand.tensor)
        else:
            array = operand.stored
            key = (array.ctypes.data, array.dtype, array.shape, array.strides)
            operand = Operand(array, any_order=False)
        source = self._sources.get(key)
        # A tensor may have the id of one that has gone, whose expression has its elements here now.
        if source is None or isinstance(operand, ResidentOperand) and getattr(source._operand, "tensor", None) is not operand.tensor:
            source = Expression(self, operand=operand, dtype=graphs.dtype_of(operand.data_type))
            self._sources[key] = source
        return source

    def _permutation(self, source: Expression, perm: tuple[int, ...], swaps_last_two: bool) -> Expression:
        """An input that is sent in memory order; the device permutes its axes."""
        key = (source._serial, perm)
        permuted = self._permuted.get(key)
        if permuted is None:
            permuted = self._transposed(source, perm)
            permuted._stored = source if swaps_last_two else None
            self._permuted[key] = permuted
        return permuted

    def _matrix(self, x: Operators | Input) -> tuple[Expression, bool]:
        """A factor of a product, and True if the product must transpose it."""
        factor = self._expression(x)
        return (factor, False) if factor._stored is None else (factor._stored, True)

    def _step(self, kind: str, inputs: Sequence[Expression], fields: Any, variant: str, name: str,
              dtype: np.dtype[Any] | None = None) -> Expression:
        """dtype: that of the result, if the caller has chosen it."""
        program = self if all(x._program is self for x in inputs) else graphs.common([self, *[x.program for x in inputs]])
        if program is None:
            raise ValueError(f"the inputs of a {kind} belong to different programs: {inputs}")
        if dtype is None:
            dtype = step_dtype(kind, tuple(fields.items()), tuple(x.dtype for x in inputs))
        made = Expression(program, name, inputs, Operation(kind, fields, variant), dtype=dtype)
        if all(x._has_inferred_shape and x._shape is not None for x in inputs) and made.shape is None:
            if made._refusal is not None:  # in the line that is wrong, rather than when it is run
                raise made._refusal
        return made

    def __reduce__(self) -> NoReturn:
        raise TypeError("a program cannot be pickled, because it refers to arrays and tensors of this process")

    def _compute(self, expression: Expression) -> Array:
        """Computes the expression with the client of a resident tensor in it. Raises TypeError if it has no resident
        tensor."""
        tensor = graphs.tensor_in(expression)
        if tensor is not None:
            return tensor._compute(expression)
        raise TypeError(f"{expression!r} is no array before it is computed: give it to a client's run")


FREE = free.program = Program()


def _factor(factor: Any) -> Any:
    """Checks a factor, which the wire carries as an f64. Raises TypeError for several numbers, and ValueError for an
    integer that an f64 might not hold exactly."""
    if isinstance(factor, Remote) or np.ndim(factor) > 0:
        raise TypeError("scale takes one number: x * y multiplies element by element, x @ y multiplies matrices")
    try:
        integer = operator.index(factor)
    except TypeError:
        return arguments.factor_of("factor", factor)
    if abs(integer) > 1 << 53:
        raise ValueError(f"factor is {integer}: an integer lies in [-2^53, 2^53]; floats take a float beyond that")
    return integer


def program(*outputs: Operators) -> Program:
    """Makes a program that computes `outputs`. Without outputs, makes an empty program, to be built by its methods."""
    return Program(outputs)


# Names of the arguments of Client.run.
_RESERVED = ("self", "out", "keep", "ttl", "timeout", "request_id", "report", "progress", "free_after")


def placeholder(name: str, dtype: npt.DTypeLike | None = None,
                shape: int | Sequence[int] | None = None) -> Expression:
    """Makes an input for which each run gives an array or a resident tensor: client.run(e, name=array). Arrays are sent
    in the order of their axes: a transposed array is gathered while it is copied.

    name: The name: 1 to 64 letters, digits, '_', '.' or '-'. Raises ValueError for anything else, and for the name of
        another argument of run.
    dtype: Data type of the elements. None: any type. The dtype is then not known before the run, so operands are not
        promoted, and none of Python's numbers can be added.
    shape: Sizes of the axes. None: any. What computes with sizes, such as x[1], x.T and np.median, needs the shape, and
        the dtype too.
    """
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name):
        raise ValueError(f"the placeholder's name is {name!r}: 1 to 64 letters, digits, '_', '.' or '-'")
    if name in _RESERVED:
        raise ValueError(f"a placeholder cannot be called {name!r}, as an argument of run is")
    made = Expression(FREE, name, dtype=graphs.dtype_of(result_data_type(dtype)))
    if shape is not None:
        made._shape = tuple(operator.index(size) for size in (shape if isinstance(shape, Sequence) else [shape]))
    return made
