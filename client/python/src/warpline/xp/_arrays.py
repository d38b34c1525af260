"""Arrays of the standard, whose elements are on a server."""

import math
import operator
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from warpline import creation, elementwise, errors, indexing, selecting, views
from warpline.dtypes import name_of
from warpline.expressions import Expression
from warpline.implements import NotHere
from warpline.programs import FREE
from warpline.residents import ResidentOperand
from warpline.xp import _fallback, _hints, _lines, _sessions, _types
from warpline.xp._devices import Device, session_of
from warpline.xp._kinds import check_group
from warpline.xp._operators import Operators

if TYPE_CHECKING:
    from warpline.xp._sessions import Session

# A repr shows arrays of so many elements whole, and of larger ones so many at each end of an axis.
_WHOLE_SIZE, _EDGE = 1000, 3


class Array(Operators):
    """An array of the Python array API standard on a server. Operations are computed when a value is looked at: by print,
    float, bool, np.asarray, a mask or warpline.xp.compute. Shape and dtype are always known.

    An array never shares memory with another: x[...] = y makes a new version of x.
    """

    __slots__ = ("_x", "_session", "_steps", "__weakref__")

    def __init__(self, x: Expression, session: "Session", steps: int = 0) -> None:
        """steps: an upper bound of those that are pending."""
        self._x = x
        self._session = session
        self._steps = steps
        _lines.mark(x)
        if steps > _sessions.MAX_PENDING:
            self._steps = _sessions.pending(x)
            if self._steps > _sessions.MAX_PENDING:
                session.compute([x])
                self._steps = 0
        session.add(self)

    def _made(self, x: Expression, *others: "Array") -> "Array":
        """An array of an expression that was made of this one and others. Raises ValueError for those of other servers."""
        for other in others:
            if other._session is not self._session:
                _sessions.of((self, *others))
        return Array(x, self._session, 1 + self._steps + sum(other._steps for other in others))

    # Its properties.

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype = self._x._dtype
        assert dtype is not None
        return dtype

    @property
    def shape(self) -> tuple[int, ...]:
        shape = self._x.shape
        assert shape is not None
        return shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def device(self) -> Device:
        """The device that has the elements; the first one of the server while they are pending."""
        operand = self._x._operand
        return Device(self._session.address, operand.tensor.device if isinstance(operand, ResidentOperand) else 0)

    @property
    def T(self) -> "Array":
        if self.ndim != 2:
            raise ValueError(f"T is of matrices, and this array has {self.ndim} axes: use mT or permute_dims")
        return self.mT

    @property
    def mT(self) -> "Array":
        if self.ndim < 2:
            raise ValueError(f"mT is of arrays of two axes or more, and this one has {self.ndim}")
        return self._made(self._x.mT)

    def to_device(self, device: Any, /, *, stream: None = None) -> Any:
        """The array there; "cpu": a NumPy array. The elements of an array of another server come here first."""
        if isinstance(device, str) and device == "cpu":
            return np.asarray(self)
        session = session_of(device)
        return self if session is self._session else Array(session.input(np.asarray(self)), session)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
            raise ValueError(f"api_version is {api_version!r}: 2024.12 is the latest")
        return sys.modules["warpline.xp"]

    # Looks at elements.

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("the elements are on a server: an array of them is a copy")
        array = self._session.fetch(self._x)
        return array.astype(array.dtype if dtype is None else dtype, copy=not array.flags.writeable)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if not all(issubclass(kind, (Array, np.ndarray)) for kind in types):
            return NotImplemented
        return self.__array_namespace__()._numpy.function(function, args, kwargs)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if not all(isinstance(x, (Array, np.ndarray)) or not hasattr(x, "__array_ufunc__") for x in inputs if not np.isscalar(x)):
            return NotImplemented  # as xarray's, which hold arrays of this class
        return self.__array_namespace__()._numpy.ufunc(ufunc, method, inputs, kwargs)

    def __dlpack__(self, *, stream: None = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None) -> Any:
        if copy is False or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError("the elements are on a server: they come to host memory as a copy")
        return np.asarray(self).__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # host memory

    def _one(self, what: str) -> Any:
        if self.shape != ():
            raise TypeError(f"{what} takes an array of no axes, and this one has the shape {self.shape}")
        return self._session.fetch(self._x).item()

    def __bool__(self) -> bool:
        return bool(self._one("bool"))

    def __int__(self) -> int:
        return int(self._one("int"))

    def __float__(self) -> float:
        return float(self._one("float"))

    def __complex__(self) -> complex:
        return complex(self._one("complex"))

    def __index__(self) -> int:
        if self.dtype.kind not in "iu":
            raise TypeError(f"an index is an integer, not {self.dtype}")
        return operator.index(self._one("index"))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array of no axes has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator["Array"]:
        return (self[i] for i in range(len(self)))

    def __copy__(self) -> "Array":
        return Array(self._x, self._session, self._steps)

    def __deepcopy__(self, memo: Any) -> "Array":
        return self.__copy__()

    __hash__ = None  # type: ignore[assignment]

    def _corner(self) -> np.ndarray[Any, Any]:
        """The elements that a repr shows, and one more of each long axis, for which NumPy shows dots."""
        x = self._x
        for axis, size in enumerate(self.shape):
            if size > 2 * _EDGE and self.size > _WHOLE_SIZE:
                ends = [views.item(x, (slice(None),) * axis + (part,)) for part in (slice(_EDGE), slice(-_EDGE - 1, None))]
                x = views.concatenate(ends, axis)
        return self._session.fetch(x)

    def __repr__(self) -> str:
        about = f"shape={self.shape}, dtype={name_of(self.dtype)}, device={self.device}"
        if self.size == 0:
            return f"Array([], {about})"
        with np.printoptions(threshold=0 if self.size > _WHOLE_SIZE else _WHOLE_SIZE, edgeitems=_EDGE):
            text = np.array2string(self._corner(), separator=", ", prefix="Array(")
        return f"Array({text}, {about})"

    def __format__(self, spec: str) -> str:
        return format(self._one("a format"), spec) if spec else str(self)

    def __reduce__(self) -> NoReturn:
        raise TypeError("an array of xp is on a server, and is not pickled: np.asarray(x) is")

    if not TYPE_CHECKING:  # which would take every name for one that is here
        def __getattr__(self, name):
            _hints.of_arrays(name)

    # Elements by indices.

    def __getitem__(self, key: Any) -> "Array":
        parts = key if isinstance(key, tuple) else (key,)
        used = [part for part in parts if isinstance(part, Array)]
        own = tuple(map(_index_of, parts))
        _sessions.of([self, *used])
        key = own if isinstance(key, tuple) else own[0]
        if indexing.is_mask(key):
            return self._masked(key)
        if any(indexing.is_mask(part) for part in own):
            key = self._without_masks(own)
        return self._made(indexing.item(self._x, key), *used)

    def _masked(self, mask: Any) -> "Array":
        """x[mask], whose shape depends on elements: computed at once."""
        x = self._x
        if self._takes_nothing(mask):
            return self._made(creation.full((0, *self.shape[np.ndim(mask):]), 0, self.dtype))
        if np.ndim(mask) == 0:  # takes all or nothing, along a new axis
            given = x.program._expression(mask if isinstance(mask, Expression) else np.asarray(mask))
            x, mask = views.expand_dims(x, 0), views.reshape(given, (1,))
        found = selecting.masked(x, mask)
        self._session.compute([found])
        return Array(found, self._session)

    def _takes_nothing(self, mask: Any) -> bool:
        """True for a mask without elements, whose sizes may be 0 where those of the array are not. Raises IndexError for a mask
        of other sizes."""
        shape = tuple(np.shape(mask))
        if len(shape) > self.ndim or not all(size in (own, 0) for size, own in zip(shape, self.shape)):
            raise IndexError(f"a mask of the shape {shape} does not fit the first axes of an array of the shape {self.shape}")
        return 0 in shape

    def _without_masks(self, parts: tuple[Any, ...]) -> tuple[Any, ...]:
        """A key with the places of a mask instead of the mask."""
        key: list[Any] = []
        for part in parts:
            if not indexing.is_mask(part):
                key.append(part)
                continue
            places = selecting.nonzero(part if isinstance(part, Expression) else self._x.program._expression(np.asarray(part)))
            self._session.compute(places)
            key += places
        return tuple(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        changed = self._changed(key, value)
        self._x, self._steps = changed._x, changed._steps

    def _changed(self, key: Any, value: Any) -> "Array":
        """A new version of this array."""
        values = self._operand(value) if isinstance(value, (bool, int, float, complex, np.generic)) else _array_of(self, value)
        if isinstance(values, Array) and values.dtype != self.dtype:
            if _types.common(values.dtype, self.dtype) != self.dtype:
                raise TypeError(f"{values.dtype} elements are not written into {self.dtype}: astype converts them")
        given = values._x if isinstance(values, Array) else values
        others = [values] if isinstance(values, Array) else []
        parts = key if isinstance(key, tuple) else (key,)
        own = tuple(map(_index_of, parts))
        others += [part for part in parts if isinstance(part, Array)]
        _sessions.of([self, *others])
        if len(own) == 1 and indexing.is_mask(own[0]):
            return self._written_by_mask(own[0], given, others)
        if any(map(indexing.is_mask, own)):
            own = self._without_masks(own)
        if not any(isinstance(part, (Expression, list, np.ndarray)) for part in own):
            return self._made(indexing.set_slice(self._x, own, given), *others)
        return self._written_by_places(own, given, others)

    def _written_by_mask(self, mask: Any, given: Any, others: list["Array"]) -> "Array":
        chosen = mask if isinstance(mask, Expression) else self._x.program._expression(np.asarray(mask))
        rank = len(views.shape_of("a mask", chosen))
        if self._takes_nothing(chosen):
            return self.__copy__()
        if isinstance(given, Expression) and given.shape != ():
            return self._written_by_places(tuple(selecting.nonzero(chosen)), given, others)
        broad = views.reshape(chosen, (*views.shape_of("a mask", chosen), *[1] * (self.ndim - rank)))
        if isinstance(given, Expression):
            given = self._x.program._cast(given, self.dtype)
        return self._made(elementwise.where(broad, given, self._x), *others)

    def _written_by_places(self, parts: tuple[Any, ...], given: Any, others: list["Array"]) -> "Array":
        """Writes to the places that indices name among all elements in a row."""
        unsized = [part for part in parts if isinstance(part, Expression) and part.shape is None]
        if unsized:
            self._session.compute(unsized)
        row = views.reshape(creation._index((self.size,), 0, np.dtype(np.int64)), self.shape)
        places = indexing.item(row, parts)
        values = given if not isinstance(given, Expression) else views.broadcast_to(given, places.shape or ())
        flat = views.reshape(self._x, -1)
        put = indexing.put_along_axis(flat, views.reshape(places, -1),
                                      views.reshape(values, -1) if isinstance(values, Expression) else values, 0)
        return self._made(views.reshape(put, self.shape), *others)

    # Operators.

    def _operand(self, other: Any) -> Any:
        """The other operand: an array, or a number that this array's dtype takes; NotImplemented for anything else."""
        if isinstance(other, Array):
            return other
        if isinstance(other, (bool, int, float, complex, np.generic)):
            return _types.number_for(self.dtype, other)
        return NotImplemented

    def _binary(self, op: str, other: Any, reflected: bool = False) -> Any:
        if type(other) is complex and self.dtype.kind == "f":  # the array becomes complex numbers of the same precision
            return self._made(self._x.astype(np.result_type(self.dtype, np.complex64)))._binary(op, other, reflected)
        operand = self._operand(other)
        if operand is NotImplemented:
            return NotImplemented
        if isinstance(operand, Array):
            return binary(op, operand, self) if reflected else binary(op, self, operand)
        check_group(op, self.dtype)
        return _of_operation(op, self._session, (operand, self._x) if reflected else (self._x, operand), 1 + self._steps)

    def _in_place(self, made: Any) -> Any:
        """Makes the result the new version of this array, for all names that it has."""
        if made is NotImplemented:
            return made
        if made.dtype != self.dtype or made.shape != self.shape:
            raise TypeError(f"the result is {made.dtype}{list(made.shape)}, which does not become {self.dtype}{list(self.shape)} "
                            "in place")
        self._x, self._steps = made._x, made._steps
        return self

    def _unary(self, op: str) -> "Array":
        return unary(op, self)

    def __matmul__(self, other: Any) -> Any:
        return product(self, other) if isinstance(other, Array) else NotImplemented

    def __rmatmul__(self, other: Any) -> Any:
        return product(other, self) if isinstance(other, Array) else NotImplemented

    def __imatmul__(self, other: Any) -> Any:
        return self._in_place(product(self, other) if isinstance(other, Array) else NotImplemented)


def _index_of(part: Any) -> Any:
    """A part of a key, as expressions take it."""
    if isinstance(part, Array):
        return part._x
    return np.asarray(part) if isinstance(part, (bool, np.bool_)) else part


def _of_operation(op: str, session: "Session", operands: tuple[Any, ...], steps: int) -> Array:
    """operands: expressions of one dtype, and numbers that it takes."""
    try:
        made = elementwise.of_one_dtype(op, FREE, operands)
        return Array(made, session, steps)
    except NotHere as refusal:
        raise _fallback.Refused(str(refusal)) from None
    except errors.InvalidArgument:
        _check_shapes(op, [x.shape for x in operands if isinstance(x, Expression)])
        raise


def _check_shapes(op: str, shapes: Sequence[Any]) -> None:
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"{op}: the shapes {' and '.join(map(str, shapes))} are not broadcast to each other") from None


def unary(op: str, x: Array) -> Array:
    check_group(op, x.dtype)
    if op == "positive":
        return x._made(elementwise.positive(x._x))
    return _of_operation(op, x._session, (x._x,), 1 + x._steps)


def binary(op: str, x1: Array, x2: Array) -> Array:
    session = _sessions.of((x1, x2))
    a, b = x1._x, x2._x
    if x1.dtype != x2.dtype:
        dtype = _types.common(x1.dtype, x2.dtype)
        a, b = a.program._cast(a, dtype), b.program._cast(b, dtype)
    check_group(op, a._dtype)  # type: ignore[arg-type]
    return _of_operation(op, session, (a, b), 1 + x1._steps + x2._steps)


def product(x1: Array, x2: Array) -> Array:
    _sessions.of((x1, x2))
    dtype = _types.common(x1.dtype, x2.dtype)
    if _types.group_of(dtype) == "bool":
        raise TypeError("matmul takes numbers, not bool")
    if 0 in (x1.ndim, x2.ndim):
        raise ValueError("matmul takes arrays of one axis or more")
    a, b = x1._x.program._cast(x1._x, dtype), x2._x.program._cast(x2._x, dtype)
    made = a @ b
    return x1._made(made if made._dtype == dtype else made.astype(dtype), x2)


def _array_of(like: Array, value: Any) -> Array:
    if isinstance(value, Array):
        return value
    raise TypeError(f"values are arrays of warpline.xp or numbers, not {type(value).__name__}: xp.asarray makes one")
