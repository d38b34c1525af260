"""The operators of arrays: which operation each is."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warpline.xp._arrays import Array


class Operators:
    """The elementwise operators, by the methods of Array that make operations."""

    __slots__ = ()

    def _binary(self, op: str, other: Any, reflected: bool = False) -> Any:
        raise NotImplementedError

    def _unary(self, op: str) -> "Array":
        raise NotImplementedError

    def _in_place(self, made: Any) -> Any:
        raise NotImplementedError

    def __add__(self, other: Any) -> "Array":
        return self._binary("add", other)

    def __radd__(self, other: Any) -> "Array":
        return self._binary("add", other, True)

    def __iadd__(self, other: Any) -> "Array":
        return self._in_place(self._binary("add", other))

    def __sub__(self, other: Any) -> "Array":
        return self._binary("subtract", other)

    def __rsub__(self, other: Any) -> "Array":
        return self._binary("subtract", other, True)

    def __isub__(self, other: Any) -> "Array":
        return self._in_place(self._binary("subtract", other))

    def __mul__(self, other: Any) -> "Array":
        return self._binary("multiply", other)

    def __rmul__(self, other: Any) -> "Array":
        return self._binary("multiply", other, True)

    def __imul__(self, other: Any) -> "Array":
        return self._in_place(self._binary("multiply", other))

    def __truediv__(self, other: Any) -> "Array":
        return self._binary("divide", other)

    def __rtruediv__(self, other: Any) -> "Array":
        return self._binary("divide", other, True)

    def __itruediv__(self, other: Any) -> "Array":
        return self._in_place(self._binary("divide", other))

    def __floordiv__(self, other: Any) -> "Array":
        return self._binary("floor_divide", other)

    def __rfloordiv__(self, other: Any) -> "Array":
        return self._binary("floor_divide", other, True)

    def __ifloordiv__(self, other: Any) -> "Array":
        return self._in_place(self._binary("floor_divide", other))

    def __mod__(self, other: Any) -> "Array":
        return self._binary("remainder", other)

    def __rmod__(self, other: Any) -> "Array":
        return self._binary("remainder", other, True)

    def __imod__(self, other: Any) -> "Array":
        return self._in_place(self._binary("remainder", other))

    def __pow__(self, other: Any) -> "Array":
        return self._binary("pow", other)

    def __rpow__(self, other: Any) -> "Array":
        return self._binary("pow", other, True)

    def __ipow__(self, other: Any) -> "Array":
        return self._in_place(self._binary("pow", other))

    def __and__(self, other: Any) -> "Array":
        return self._binary("bitwise_and", other)

    def __rand__(self, other: Any) -> "Array":
        return self._binary("bitwise_and", other, True)

    def __iand__(self, other: Any) -> "Array":
        return self._in_place(self._binary("bitwise_and", other))

    def __or__(self, other: Any) -> "Array":
        return self._binary("bitwise_or", other)

    def __ror__(self, other: Any) -> "Array":
        return self._binary("bitwise_or", other, True)

    def __ior__(self, other: Any) -> "Array":
        return self._in_place(self._binary("bitwise_or", other))

    def __xor__(self, other: Any) -> "Array":
        return self._binary("bitwise_xor", other)

    def __rxor__(self, other: Any) -> "Array":
        return self._binary("bitwise_xor", other, True)

    def __ixor__(self, other: Any) -> "Array":
        return self._in_place(self._binary("bitwise_xor", other))

    def __lshift__(self, other: Any) -> "Array":
        return self._binary("bitwise_left_shift", other)

    def __rlshift__(self, other: Any) -> "Array":
        return self._binary("bitwise_left_shift", other, True)

    def __ilshift__(self, other: Any) -> "Array":
        return self._in_place(self._binary("bitwise_left_shift", other))

    def __rshift__(self, other: Any) -> "Array":
        return self._binary("bitwise_right_shift", other)

    def __rrshift__(self, other: Any) -> "Array":
        return self._binary("bitwise_right_shift", other, True)

    def __irshift__(self, other: Any) -> "Array":
        return self._in_place(self._binary("bitwise_right_shift", other))

    def __eq__(self, other: Any) -> "Array":  # type: ignore[override]
        return self._binary("equal", other)

    def __ne__(self, other: Any) -> "Array":  # type: ignore[override]
        return self._binary("not_equal", other)

    def __lt__(self, other: Any) -> "Array":
        return self._binary("less", other)

    def __le__(self, other: Any) -> "Array":
        return self._binary("less_equal", other)

    def __gt__(self, other: Any) -> "Array":
        return self._binary("greater", other)

    def __ge__(self, other: Any) -> "Array":
        return self._binary("greater_equal", other)

    def __neg__(self) -> "Array":
        return self._unary("negative")

    def __pos__(self) -> "Array":
        return self._unary("positive")

    def __abs__(self) -> "Array":
        return self._unary("abs")

    def __invert__(self) -> "Array":
        return self._unary("bitwise_invert")
