"""Elementwise operations: what they take, and NumPy's promotion of their operands.

The operations are those of the library, by their names in warpline.proto: "add", "exp", "where". Each call makes one
expression. When a program is sent, neighbouring ones become one map (maps.py).
"""

import functools
import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from warpline import core, free, promotion
from warpline._core import lib
from warpline.downloads import call_here
from warpline.dtypes import BITS, DTYPES, ML_DTYPES, data_type, name_of
from warpline.implements import NotHere

if TYPE_CHECKING:
    from warpline.expressions import Expression


class Row(NamedTuple):
    """An operation. takes: the kinds of NumPy dtypes of its operands, such as "bif" for bool, integers and floats. wide:
    true if of the floats it takes float32 and float64 only."""

    operands: int
    takes: str
    wide: bool


def _rows() -> dict[str, Row]:
    kinds = ((lib.WARPLINE_TAKES_BOOL, "b"), (lib.WARPLINE_TAKES_INTEGERS, "iu"), (lib.WARPLINE_TAKES_FLOATS, "f"),
             (lib.WARPLINE_TAKES_WIDE_FLOATS, "f"), (lib.WARPLINE_TAKES_COMPLEX, "c"))
    rows: dict[str, Row] = {}
    while row := lib.warpline_elementwise_at(len(rows)):
        rows[core.read(row.name)] = Row(row.operands, "".join(kind for bit, kind in kinds if row.takes & bit),
                                        not row.takes & lib.WARPLINE_TAKES_FLOATS)
    return rows


ROWS = _rows()

# Names that ufuncs of NumPy have for operations, where they differ.
_UFUNCS = {"absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
           "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "conjugate": "conj", "fabs": "abs",
           "invert": "bitwise_invert", "left_shift": "bitwise_left_shift", "power": "pow",
           "right_shift": "bitwise_right_shift", "rint": "round", "true_divide": "divide"}

# Functions of whole numbers, which leave integers as they are.
_ROUNDING = ("floor", "ceil", "trunc", "round")
# NumPy computes these of bool as of int8.
_OF_INT8 = ("floor_divide", "remainder", "pow", "bitwise_left_shift", "bitwise_right_shift")
_LOGICAL = ("logical_and", "logical_or", "logical_xor", "logical_not")
_HALVES = (DTYPES["DATA_TYPE_F16"], DTYPES["DATA_TYPE_BF16"])
_F16, _F32, _F64, _I8, _BOOL = (DTYPES[f"DATA_TYPE_{name}"] for name in ("F16", "F32", "F64", "I8", "BOOL"))


def operation_of(ufunc: np.ufunc) -> str:
    """The operation that computes what a ufunc of NumPy does; "" if there is none."""
    name = _UFUNCS.get(ufunc.__name__, ufunc.__name__)
    return name if name in ROWS and ROWS[name].operands == ufunc.nin and ufunc.nout == 1 else ""


@functools.cache
def kind_of(dtype: np.dtype[Any]) -> str:
    """The kind of a dtype as NumPy has it: "f" for bfloat16 and 8-bit floats too."""
    return "f" if dtype in BITS.values() or dtype in ML_DTYPES.values() else dtype.kind


def _float_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The floats in which NumPy computes functions of these integers or bools."""
    return _F16 if dtype.itemsize == 1 else _F32 if dtype.itemsize == 2 else _F64


def _takes_floats_only(op: str) -> bool:
    takes = ROWS[op].takes
    return "f" in takes and "i" not in takes


def _computed_in(op: str, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype that NumPy converts operands of this common dtype to."""
    kind, takes = kind_of(dtype), ROWS[op].takes
    if op in _LOGICAL:
        return _BOOL
    if kind in takes:
        return dtype
    if kind == "b" and op in _OF_INT8:
        return _I8
    if kind in "biu" and _takes_floats_only(op):
        return _F64 if op == "divide" else _float_of(dtype)
    return dtype


def make(op: str, program: Any, operands: Sequence[Any], variant: str = "", name: str = "") -> "Expression":
    """The expression of an operation on expressions, tensors, arrays and numbers, promoted as by NumPy. `program` is that
    of the result, unless operands belong to another one."""
    row = ROWS[op]
    if len(operands) != row.operands:
        raise TypeError(f"{op} takes {row.operands} operands, not {len(operands)}")
    if op in ("multiply", "pow") and any(isinstance(x, np.matrix) for x in operands):
        raise TypeError(f"{op} of an np.matrix is that of matrices: use @, or np.asarray(m) for its elements")
    numbers = [promotion.is_number(x) for x in operands]
    if all(numbers):
        raise TypeError(f"{op} of numbers needs no server: one operand must be an array, a tensor or an expression")
    given: list[Any] = [x if is_number else program._expression(x) for x, is_number in zip(operands, numbers)]
    alike = range(1 if op == "where" else 0, len(given))
    if op in _COMPARISONS:
        answer = _compared(op, given, numbers)
        if answer is not None:
            return answer
    dtype = _common(op, [given[i] for i in alike], [numbers[i] for i in alike])
    if dtype is not None and not variant and not name:
        same = _unchanged(op, given, dtype)
        if same is not None:
            return same
    computed = None if dtype is None else _computed_in(op, dtype)
    if computed is not None and (kind_of(computed) not in row.takes or row.wide and computed in _HALVES):
        raise NotHere(f"{op} does not take {name_of(computed)}")
    inputs = []
    for i, x in enumerate(given):
        if i not in alike:
            x = _condition(program, x, numbers[i])
        elif numbers[i]:
            x = constant(x, computed)
        elif op in _LOGICAL:
            x = x if x.dtype is None else program._cast(x, _BOOL)
        elif computed is not None:
            x = program._cast(x, computed)
        inputs.append(x)
    result: Expression = program._step("map", inputs, {"op": op}, variant, name, _result(op, computed))
    return result


# Operations that may come out as another one, or that compute these operands in another dtype.
_REWRITTEN = (*_ROUNDING, *_OF_INT8, "abs", "real", "conj", "imag")


def of_one_dtype(op: str, program: Any, operands: Sequence[Any]) -> "Expression":
    """The expression of an operation on expressions of one known dtype and numbers that are its elements, which need no
    promotion. The condition of a "where" is an expression of bool."""
    dtype = next(x._dtype for x in reversed(operands) if not promotion.is_number(x))
    result = _result_of_one_dtype(op, dtype)
    if result is None:
        return make(op, program, operands)
    inputs = [constant(x, dtype) if promotion.is_number(x) else x for x in operands]
    made: Expression = program._step("map", inputs, {"op": op}, "", "", result)
    return made


@functools.lru_cache(maxsize=1024)
def _result_of_one_dtype(op: str, dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    """The dtype of an operation on operands of this dtype; None if it computes in another one, or is rewritten."""
    row = ROWS[op]
    if op in _REWRITTEN or kind_of(dtype) not in row.takes or row.wide and dtype in _HALVES:
        return None
    return _result(op, dtype)


_COMPARISONS: dict[str, Any] = {"equal": operator.eq, "not_equal": operator.ne, "less": operator.lt,
                                "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge}


# These tell the same with the operands in the other order.
_TURNED = {"equal": "equal", "not_equal": "not_equal", "less": "greater", "less_equal": "greater_equal", "greater": "less",
           "greater_equal": "less_equal"}
_U64, _I64 = DTYPES["DATA_TYPE_U64"], DTYPES["DATA_TYPE_I64"]


def _compared(op: str, given: list[Any], numbers: Sequence[bool]) -> "Expression | None":
    """A comparison of integers that have no common type of integers: exact, as in NumPy 2. None for all others, which
    are compared in the common type. Replaces NumPy's integers in `given` by Python's, of which each is exact."""
    kinds = ["" if is_number or x.dtype is None else kind_of(x.dtype) for x, is_number in zip(given, numbers)]
    if any(numbers):
        place = numbers.index(True)
        x, number = given[1 - place], given[place]
        if kinds[1 - place] not in ("i", "u") or not isinstance(number, (int, np.integer)) or isinstance(number, bool):
            return None
        given[place] = number = int(number)
        limits = np.iinfo(x.dtype)
        if limits.min <= number <= limits.max:
            return None
        # The same for all of them, and integers are equal to themselves.
        compared = (0, number) if place == 1 else (number, 0)
        return make("equal" if _COMPARISONS[op](*compared) else "not_equal", x.program, (x, x))
    if sorted(kinds) != ["i", "u"] or _U64 not in (given[0].dtype, given[1].dtype):
        return None
    signed, unsigned = given if kinds[0] == "i" else given[::-1]
    if kinds[0] == "u":
        op = _TURNED[op]
    program = signed.program
    # The low 64 bits of a negative number are no number of the other's: it is less than all of them.
    is_negative = make("less", program, (signed, 0))
    bits = program._cast(program._cast(signed, _I64), _U64)
    result = make(op, program, (bits, unsigned))
    if _COMPARISONS[op](-1, 0):
        return make("logical_or", program, (is_negative, result))
    return make("logical_and", program, (make("logical_not", program, (is_negative,)), result))


def _unchanged(op: str, given: Sequence[Any], dtype: np.dtype[Any]) -> "Expression | None":
    """A copy of the operand, if the operation leaves it as it is, or what computes the same with less."""
    kind, x = kind_of(dtype), given[0]
    if (op in _ROUNDING and kind in "biu") or (op == "abs" and kind == "b") or (op in ("real", "conj") and kind != "c"):
        # A copy, since an input is nothing that a program can compute.
        copy: Expression = x.program.cast(x, dtype)
        return copy
    if op == "imag" and kind != "c":
        return make("where", x.program, (False, x, constant(0, dtype)))
    # NumPy computes these powers so, too.
    if op == "pow" and isinstance(given[1], (int, float)) and not isinstance(given[1], bool) and x.dtype == dtype:
        if given[1] == 2 and kind in "iuf":
            return make("multiply", x.program, (x, x))
        if given[1] == 0.5 and kind == "f":
            return make("sqrt", x.program, (x,))
    return None


def _condition(program: Any, x: Any, is_number: bool) -> Any:
    if is_number:
        return constant(bool(x), _BOOL)
    return x if x.dtype is None else program._cast(x, _BOOL)


def _common(op: str, given: Sequence[Any], numbers: Sequence[bool]) -> np.dtype[Any] | None:
    """The dtype to which operands are promoted; None if that of an expression is not known."""
    dtypes = [x.dtype for x, is_number in zip(given, numbers) if not is_number]
    if not dtypes:
        return DTYPES[data_type(np.result_type(*(np.asarray(x).dtype for x in given)))]
    weak = [x for x, is_number in zip(given, numbers) if is_number and promotion.is_weak(x)]
    if any(dtype is None for dtype in dtypes):  # np.float64 equals None
        if weak:
            promotion.element(weak[0], None)  # raises
        return None
    dtypes += [x.dtype for x, is_number in zip(given, numbers) if is_number and not promotion.is_weak(x)]
    kinds = {kind_of(dtype) for dtype in dtypes}
    # Numbers of these types decide: bools become int64 beside an int, and all integers float64 beside a float.
    decisive = (float, complex) if kinds - {"b"} else (int, float, complex)
    decided = kinds <= set("biu") and any(isinstance(x, decisive) and not isinstance(x, bool) for x in weak)
    # Each operand becomes floats by itself, not the type of integers that holds both.
    if _takes_floats_only(op) and op != "divide" and op not in _ROUNDING and not decided:
        dtypes = [_float_of(dtype) if kind_of(dtype) in "biu" else dtype for dtype in dtypes]
    dtype = functools.reduce(promotion.common, dtypes)
    for x in weak:
        dtype = promotion.with_number(dtype, x, checked=op not in _LOGICAL and not _takes_floats_only(op))
    return dtype


def _result(op: str, computed: np.dtype[Any] | None) -> np.dtype[Any] | None:
    """The dtype of the result of operands of this dtype; None if it is not known."""
    if op in _PREDICATES:
        return _BOOL
    if computed is None:
        return None
    if op in ("abs", "real", "imag") and computed.kind == "c":
        return _F32 if computed.itemsize == 8 else _F64
    return computed


_PREDICATES = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "isnan", "isinf", "isfinite",
               "signbit")


# Numbers in maps, by dtype, class and text, which tells -0.0 from 0.0. Forgotten all at once when they are too many.
_constants: dict[Any, "Expression"] = {}
_CONSTANTS_MAX = 1024


def constant(number: Any, dtype: np.dtype[Any] | None) -> "Expression":
    """A number as an operand of a map; the same one for the same number. dtype: None for a NumPy scalar beside an operand
    whose dtype is not known."""
    if dtype is None:
        dtype = promotion.element(number, None).dtype
    key = (dtype, number.__class__, repr(number))
    found = _constants.get(key)
    if found is None:
        if len(_constants) >= _CONSTANTS_MAX:
            _constants.clear()
        found = _constants[key] = free.program._constant(_constant_fields(number, dtype), dtype)
    return found


def _constant_fields(number: Any, dtype: np.dtype[Any]) -> dict[str, Any]:
    kind = kind_of(dtype)
    fields: dict[str, Any] = {"dtype": data_type(dtype)}
    if fields["dtype"].startswith("DATA_TYPE_F8"):
        raise TypeError(f"{number!r} is not made an element of {name_of(dtype)}, of which nothing is computed: astype "
                        "of a wider type comes first")
    if isinstance(number, np.void):  # a bfloat16 as its bits
        number = np.uint32(int(number[0]) << 16).view("f4")
    if kind in "biu":
        integer = int(bool(number)) if kind == "b" else int(number)
        # The wire has 64 bits with a sign.
        fields["integer"] = str(integer if integer < 1 << 63 else integer - (1 << 64))
    elif kind == "c":
        fields["real"], fields["imag"] = complex(number).real, complex(number).imag
    else:
        fields["real"] = float(number)
    fields["text"] = repr(fields)
    return fields


def positive(x: Any) -> "Expression":
    """The same elements, as something that a program can compute; x itself if its dtype is not known."""
    given: Expression = x.program._expression(x)
    if given.dtype is None or given._operation is not None:
        return given
    return given[...] if given.shape is not None else given


def where(condition: Any, x: Any, y: Any) -> "Expression":
    """x where the condition is true, and y elsewhere: `np.where` on the server, for expressions, tensors, arrays and
    numbers. x and y are promoted as by NumPy, and all three are broadcast. Raises TypeError if none of them is a tensor
    or an expression."""
    return make("where", program_of("where", condition, x, y), (condition, x, y))


def clip(x: Any, low: Any, high: Any) -> "Expression":
    program = program_of("clip", x, low, high)
    kind = getattr(x, "dtype", None)
    if kind is not None and kind_of(kind) in "iu":  # a bound that no element can reach is no bound
        limits = np.iinfo(kind)
        low = None if type(low) is int and low <= limits.min else low
        high = None if type(high) is int and high >= limits.max else high
    if low is None and high is None:
        return positive(program._expression(x))
    if low is None or high is None:
        return make("minimum" if low is None else "maximum", program, (x, high if low is None else low))
    return make("clip", program, (x, low, high))


def program_of(function: str, *operands: Any) -> Any:
    """The program of the first tensor or expression."""
    for x in operands:
        if hasattr(x, "_apply"):
            return x.program
    raise TypeError(f"{function} takes a tensor or an expression: NumPy's computes arrays")


def call_of_ufunc(program: Any, ufunc: np.ufunc, method: str, inputs: Sequence[Any],
                  keywords: Mapping[str, Any]) -> Any:
    """The expression of a call of a ufunc of NumPy, or both of divmod. What the server does not have is computed on the
    client."""
    if method != "__call__" or keywords:
        return call_here(getattr(ufunc, method), f"{ufunc.__name__}{'' if method == '__call__' else '.' + method}", inputs,
                         keywords)
    kind = kind_of(inputs[0].dtype) if getattr(inputs[0], "dtype", None) is not None else ""
    if ufunc is np.square:
        x = program._cast(program._expression(inputs[0]), _I8) if kind == "b" else inputs[0]  # as NumPy
        return make("multiply", program, (x, x))
    if ufunc is np.reciprocal:
        return _reciprocal(program, inputs[0], kind)
    if ufunc in (np.rint, np.fabs) and kind in ("b", "i", "u"):
        inputs = [program._cast(program._expression(inputs[0]), _float_of(inputs[0].dtype))]
    if ufunc is np.positive:
        return positive(inputs[0])
    if ufunc is np.divmod:
        return make("floor_divide", program, inputs), make("remainder", program, inputs)
    op = operation_of(ufunc)
    if not op:
        return call_here(ufunc, ufunc.__name__, inputs, keywords)
    try:
        return make(op, program, inputs)
    except NotHere:  # for these types
        return call_here(ufunc, ufunc.__name__, inputs, keywords)


@functools.cache
def _ufunc_of(op: str) -> np.ufunc | None:
    """The first ufunc of NumPy that an operation computes; None if there is none."""
    return next((x for _, x in sorted(vars(np).items()) if isinstance(x, np.ufunc) and operation_of(x) == op), None)


def apply(op: str, program: Any, operands: Sequence[Any]) -> Any:
    """The expression of an operator. What the server does not have for these types is computed on the client, as by
    call_of_ufunc; what NumPy has not raises its TypeError, before elements are fetched."""
    try:
        return make(op, program, operands)
    except NotHere as refusal:
        ufunc = _ufunc_of(op)
        if ufunc is None:
            raise
        with np.errstate(all="ignore"):
            ufunc(*(x if isinstance(x, (int, float, complex)) else
                    np.empty(0, x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype) for x in operands))
        try:
            return call_here(ufunc, ufunc.__name__, operands, {})
        except TypeError:  # Nothing can fetch the elements, as those of a placeholder.
            raise refusal from None


def _reciprocal(program: Any, x: Any, kind: str) -> "Expression":
    """1 / x; of integers rounded toward 0, as in NumPy: 1 and -1 themselves, and 0 for all others, 0 too."""
    if kind not in ("b", "i", "u"):
        return make("divide", program, (1, x))
    given = program._cast(program._expression(x), _I8 if kind == "b" else x.dtype)
    one = make("equal", program, (make("abs", program, (given,)), 1))
    return make("where", program, (one, given, 0))
