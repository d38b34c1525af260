"""Expressions of tensors: the nodes of graphs that servers compute."""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from warpline import errors
from warpline.arrays import AnyOperand, Array
from warpline.dtypes import name_of
from warpline.inference import step_kind
from warpline.operators import Operators, computed_array

if TYPE_CHECKING:
    from warpline.programs import Program

# Expressions are computed in the order in which they were made, across all programs.
_serials = itertools.count()


class Operation(NamedTuple):
    """The operation of a step."""

    # Name of the field in the step's message, such as "gemm".
    kind: str
    # The message in that field. Of a "map" it is {"op": name}: such an expression becomes a node of a map.
    fields: Any
    variant: str

    @property
    def label(self) -> str:
        """What people call it: "exp" rather than "map"."""
        return str(self.fields["op"]) if self.kind == "map" else self.kind


class Expression(Operators):
    """An input of a program, or the result of one of its steps. The methods of Program make expressions, and so do the
    methods and operators of resident tensors, placeholders and expressions. np.asarray(e) computes an expression of
    resident tensors, with the client of these tensors.

    name: Name of the expression; "" if it has none.
    """

    def __init__(self, program: "Program", name: str = "", inputs: Sequence["Expression"] = (),
                 operation: Operation | None = None, operand: AnyOperand | None = None,
                 dtype: np.dtype[Any] | None = None) -> None:
        """An input has no operation. A placeholder has no operand either. dtype: None if it is not known."""
        self.name = name
        self._program = program
        self._serial = next(_serials)
        self._inputs = tuple(inputs)
        self._operation = operation
        self._operand = operand
        self._dtype = dtype
        self._shape: tuple[int, ...] | None = None if operand is None else operand.shape
        # True if the shape is known, or known to be unknown.
        self._has_inferred_shape = operation is None
        if operation is not None and operation.kind in ("constant", "full", "index"):
            self._shape, self._has_inferred_shape = operation.fields.get("shape", ()), True
        # The reason why the shape is not known, if this or a step before it does not fit its inputs.
        self._refusal: errors.Error | None = None
        # What has the client that np.asarray computes this with, if no input has: of zeros_like(t), t.
        self._near: Any = None
        self._signature: tuple[Any, ...] | None = None
        # The line of the user's code that made this, where somebody keeps count of lines (xp).
        self._line: Any = None
        # For an input that is sent with its last two axes swapped: the expression in the order in which it is sent.
        self._stored: Expression | None = None

    def __repr__(self) -> str:
        return f"<warpline.Expression {self._description()}>"

    def _description(self) -> str:
        """The name or kind, and data type and shape where they are known."""
        kind = self._operation.label if self._operation else "input"
        sizes = "" if self.shape is None else str(list(self.shape))
        return f"{self.name or kind} {'' if self.dtype is None else name_of(self.dtype)}{sizes}".rstrip()

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        return computed_array(self._program._compute(self), dtype, copy)

    @property
    def size(self) -> int | None:
        """Number of elements. None where a placeholder leaves `shape` open. Raises TypeError where it is known only when
        this is computed, as after a mask."""
        if self.shape is None and any(x._operation is not None and x._operation.kind == "compress" for x in self._ancestors()):
            raise TypeError(f"the size of {self} is not known before it is computed: compute that first, as by "
                            "y = client.run(..., keep=True), or count what the mask takes")
        return None if self.shape is None else math.prod(self.shape)

    def _ancestors(self) -> Iterator["Expression"]:
        """This, and what it is made of."""
        todo, seen = [self], {self}
        while todo:
            x = todo.pop()
            yield x
            todo += [y for y in x._inputs if y not in seen]
            seen.update(x._inputs)

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} cannot be pickled, because it refers to arrays and tensors of this process: send what "
                        "np.asarray(e) or a client's run gives")

    def _value(self) -> Any:
        """A key that is equal for expressions that are computed alike. A name makes an expression unlike others."""
        if self.name or self._operation is None:
            return self
        kind, fields, variant = self._operation
        return kind, self._inputs, tuple(fields.items()), variant

    def _kept_signature(self) -> tuple[Any, ...]:
        """What decides, beside its inputs, how this is computed."""
        if self._operation is None:  # not kept, since it may be an input only now
            return self.name, self._dtype, self.shape
        if self._signature is None:
            kind, fields, variant = self._operation
            # By its text, since 0.0 and -0.0 are equal, but not the same.
            self._signature = kind, repr(fields), variant, self.name, self._dtype
        return self._signature

    @property
    def program(self) -> "Program":
        """The program that this belongs to."""
        return self._program

    @property
    def T(self) -> "Expression":
        """This with all axes reversed, as `transpose` does."""
        return self.transpose()

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """Data type of the elements; None if a placeholder leaves it open."""
        return self._dtype

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Sizes of the axes; None if a placeholder leaves them open."""
        # Without recursion, because a chain of steps may be longer than Python's stack.
        todo = [self]
        while not self._has_inferred_shape:
            x = todo.pop()
            waiting = [y for y in x._inputs if not y._has_inferred_shape]
            if waiting:
                todo += [x, *waiting]
            else:
                x._shape, x._has_inferred_shape = x._inferred_shape(), True
        return self._shape

    def _inferred_shape(self) -> tuple[int, ...] | None:
        """The shape of a step's result, from those of its inputs."""
        inputs = [(x._dtype, x._shape) for x in self._inputs if x._dtype is not None and x._shape is not None]
        if self._operation is None or len(inputs) < len(self._inputs):
            if self._operation is not None and self._operation.kind == "reduce" and not self._inputs[0]._refusal \
                    and not self._operation.fields.get("axes") and not self._operation.fields.get("keepdims"):
                return ()  # one number, whatever the shape
            self._refusal = next((x._refusal for x in self._inputs if x._refusal), None)
            return None
        if self._operation.kind == "further":
            return inputs[0][1]
        if self._operation.kind == "map" and len({shape for _, shape in inputs if shape}) <= 1:
            return max((shape for _, shape in inputs), key=len)  # no broadcasting but of rank 0
        if self._operation.kind == "compress":
            return None  # known after the run
        try:
            return step_kind(self._operation.kind, tuple(self._operation.fields.items()), tuple(inputs))[1]
        except (errors.InvalidArgument, errors.Unimplemented) as error:
            self._refusal = error.with_traceback(None)
            return None
