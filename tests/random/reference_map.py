"""The reference of maps: one function for each operation of a node."""

import math

import numpy as np

from element_types import COMPLEX, TYPES, cast, computed, named, rounded
from map_operations import OPERATIONS
from value import Unsuitable, Value, exact, inexact

# Operations of floats with one rounding, in the type that they are computed in.
FLOATS = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "negative": np.negative,
    "abs": np.abs, "sign": np.sign, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.rint, "sqrt": np.sqrt,
    "copysign": np.copysign, "nextafter": np.nextafter, "minimum": np.minimum, "maximum": np.maximum,
    "remainder": np.remainder, "clip": lambda x, low, high: np.minimum(np.maximum(x, low), high)}
COMPARISONS = {"equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal,
               "greater": np.greater, "greater_equal": np.greater_equal, "isnan": np.isnan, "isinf": np.isinf,
               "isfinite": np.isfinite, "signbit": np.signbit}
ERF = np.vectorize(math.erf, otypes=[np.float64])
FUNCTIONS = {
    # NumPy 2 takes a root for the one exponent 0.5 of all elements, and so has NaN for -inf.
    "pow": lambda x, y: np.power(x, np.broadcast_to(y, np.broadcast(x, y).shape).copy()), "exp": np.exp, "exp2": np.exp2,
    "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "logaddexp": np.logaddexp, "hypot": np.hypot,
    "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh,
    "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "cbrt": np.cbrt,
    # In f64 alone, with an error of 1 ulp.
    "erf": lambda x: ERF(x.astype(np.float64)) if x.size else x}
BOOLS = {"add": np.logical_or, "multiply": np.logical_and, "minimum": np.logical_and, "maximum": np.logical_or,
         "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
         "logical_not": np.logical_not, "bitwise_and": np.logical_and, "bitwise_or": np.logical_or,
         "bitwise_xor": np.logical_xor, "bitwise_invert": np.logical_not}
INTEGERS = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "negative": np.negative, "sign": np.sign,
            "minimum": np.minimum, "maximum": np.maximum, "clip": FLOATS["clip"], "bitwise_and": np.bitwise_and,
            "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor, "bitwise_invert": np.bitwise_not}
COMPLEX_FUNCTIONS = {**FUNCTIONS, "sqrt": np.sqrt, "divide": np.divide}
COMPLEX_ULP = 8
# Places of the operands whose sign matters even if they are zero.
READS_SIGN = {"signbit": (0,), "copysign": (1,), "divide": (1,), "atan2": (0, 1), "pow": (0,), "floor_divide": (1,)}


def floor_divide(x, y):
    """inf // y is an infinity, where NumPy gives NaN."""
    quotient = x / y
    plain = (y == 0) | np.isinf(x) | np.isnan(quotient)
    return np.where(plain, quotient, np.floor_divide(x, y)).astype(x.dtype)


def power(x, y):
    """Modulo 2^bits; 0 for a negative power."""
    zero = x.dtype.type(0)  # a Python number would make a float of a scalar u64 in NumPy 1
    result, square, left = np.ones(np.broadcast(x, y).shape, x.dtype), x, np.where(y < 0, zero, y).astype(np.uint64)
    while np.any(left):
        result = np.where(left & np.uint64(1), result * square, result)
        square, left = square * square, left >> np.uint64(1)
    return np.where(y < 0, zero, result)


def shifted(op, x, y):
    bits, zero = x.dtype.itemsize * 8, x.dtype.type(0)
    inside = (y >= 0) & (y < bits)
    by = np.where(inside, y, zero)
    if op == "bitwise_left_shift":
        return np.where(inside, np.left_shift(x, by), zero)
    return np.where(inside, np.right_shift(x, by), np.where(x < 0, ~zero, zero))


def integers(op, x, y):
    if op == "pow":
        return power(x, y)
    if op in ("bitwise_left_shift", "bitwise_right_shift"):
        return shifted(op, x, y)
    if op == "abs":
        return np.where(x < 0, np.negative(x), x)
    # NumPy warns, traps or promises nothing if the divisor is 0 or -1.
    zero, one = x.dtype.type(0), x.dtype.type(1)
    minus_one = (y < 0) & (y + one == 0)
    divisor = np.where((y == 0) | minus_one, one, y)
    if op == "floor_divide":
        return np.where(y == 0, zero, np.where(minus_one, np.negative(x), np.floor_divide(x, divisor)))
    assert op == "remainder"
    return np.where((y == 0) | minus_one, zero, np.remainder(x, divisor))


def complex_parts(op, x, y):
    """Computes the parts apart, since NumPy may multiply with fused multiply-adds."""
    if op == "multiply":
        real, imag = x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real
    elif op in ("add", "subtract"):
        function = np.add if op == "add" else np.subtract
        real, imag = function(x.real, y.real), function(x.imag, y.imag)
    else:
        real, imag = (np.negative(x.real) if op == "negative" else x.real), np.negative(x.imag)
    z = np.empty(np.shape(real), x.dtype)
    z.real, z.imag = real, imag
    return z


def complex_numbers(op, type_, x, y):
    part = TYPES[type_].part
    if op in ("real", "imag"):
        return exact(part, getattr(x, op))
    if op in ("add", "subtract", "multiply", "negative", "conj"):
        return exact(type_, complex_parts(op, x, y))
    if op == "round":
        z = np.empty_like(x)
        z.real, z.imag = np.rint(x.real), np.rint(x.imag)
        return exact(type_, z)
    wide = np.complex128 if type_ == "c64" else np.clongdouble
    operands = [x] if y is None else [x, y]
    # NumPy's expm1 and log1p of complex numbers lose digits near 0.
    least = 1e-3 if op in ("expm1", "log1p") else 1e-9
    for each in operands:
        size = np.abs(each.astype(wide))
        if not np.all(np.isfinite(each)) or np.any((size > 0) & ((size > 1e9) | (size < least))):
            raise Unsuitable("no bound is promised")
    if op == "abs":
        z = np.abs(x.astype(wide))
        return inexact(part, z, 3 * np.spacing(z.astype(TYPES[part].held)).astype(np.float64))
    return complex_function(op, type_, [each.astype(wide) for each in operands])


def complex_function(op, type_, operands):
    """Each part is off by some units in the last place of the larger part."""
    x, part = operands[0], TYPES[TYPES[type_].part].held
    if op == "sign":
        z = np.where(x == 0, 0, x / np.where(x == 0, 1, np.abs(x)))
    else:
        z = COMPLEX_FUNCTIONS[op](*operands)
    growth = 1
    if op == "divide" and np.any(operands[1] == 0):
        raise Unsuitable("complex division by zero")
    if op == "pow":
        if np.any(x == 0):
            raise Unsuitable("a power of zero")
        growth = 1 + np.abs(operands[1] * np.log(x))
    larger = np.maximum(np.abs(z.real), np.abs(z.imag)).astype(part)
    if not np.all(np.isfinite(larger)) or np.any(larger > np.finfo(part).max / 4):
        raise Unsuitable("an overflow")
    return inexact(type_, z, COMPLEX_ULP * growth * np.spacing(larger).astype(np.float64))


def within(op, type_, operands):
    """A function whose result may be some units in the last place away."""
    held = TYPES[computed(type_)].held
    wide = np.float64 if held == np.float32 else np.longdouble
    if op == "floor_divide":
        x, y = (x.astype(held) for x in operands)
        z = floor_divide(x, y)
        small = all(np.all((np.abs(v) <= 2**20) & (v == np.rint(v))) for v in (x, y))
        if small and not np.any(y == 0):
            return exact(type_, rounded(type_, z))
        z = z.astype(wide)
    else:
        z = FUNCTIONS[op](*[x.astype(wide) for x in operands])
    near = rounded(computed(type_), z)
    if op == "logaddexp":
        # If the terms cancel, the error is that of the larger operand.
        near = np.maximum(np.abs(near), np.maximum(*[np.where(np.isfinite(x), np.abs(x), 0) for x in operands])).astype(held)
    ulp = np.where(np.isfinite(near), np.spacing(np.abs(near)), np.finfo(held).max * np.finfo(held).eps).astype(np.float64)
    return inexact(type_, z, (OPERATIONS[op].ulp + (op == "erf")) * ulp)


def node_value(op, values, node):
    """The result of an operation on exact operands."""
    type_ = values[1].type if op == "where" else values[0].type
    x, y = values[0].data, values[1].data if len(values) > 1 else None
    kind = TYPES[type_].kind
    if kind == "c" and op in COMPLEX_FUNCTIONS and any(not v.signed_zeros and np.any((v.data.real == 0) | (v.data.imag == 0)) for v in values):
        raise Unsuitable("the side of a branch cut")
    for place in READS_SIGN.get(op, ()):
        v = values[place]
        if v.kind != "f":
            continue
        unsure = not v.signed_zeros and np.any(v.data == 0)
        if unsure or (op in ("signbit", "copysign") and np.any(np.isnan(v.data))):
            raise Unsuitable("the sign of a zero or of a NaN")
    if op == "cast":
        return exact(named(node["data_type"]), cast(x, type_, named(node["data_type"])))
    if op == "where":
        return exact(type_, np.where(x, y, values[2].data))
    if op in COMPARISONS and not (kind == "b" and op in BOOLS):
        return exact("bool", COMPARISONS[op](*[v.data for v in values]))
    if kind == "b":
        return exact("bool", BOOLS[op](*[v.data for v in values]))
    if kind in "ui":
        function = INTEGERS.get(op)
        return exact(type_, function(*[v.data for v in values]) if function else integers(op, x, y))
    if kind == "c":
        return complex_numbers(op, type_, x, y)
    if op in FLOATS:
        wide = [v.data.astype(TYPES[computed(type_)].held) for v in values]
        z = exact(type_, rounded(type_, FLOATS[op](*wide)))
        # Which one of two zeros is the smaller is not promised.
        z.signed_zeros = op not in ("minimum", "maximum", "clip")
        return z
    return within(op, type_, [v.data for v in values])


class Nodes:
    """The values of a map: its inputs and the nodes so far."""

    def __init__(self, inputs, shape):
        self.values, self.shape = list(inputs), tuple(shape)

    def add(self, node, type_=None):
        """Adds the value of a node. `type_` is that of a constant or an index. Raises Unsuitable."""
        op = node["op"].removeprefix("MAP_OP_").lower()
        with np.errstate(all="ignore"):
            if op == "constant":
                value = self.constant(node, type_)
            elif op == "index":
                axis, rank = node.get("integer", 0), len(self.shape)
                places = np.arange(self.shape[axis]).reshape([-1 if i == axis % rank else 1 for i in range(rank)])
                value = exact(type_, places)
            else:
                operands = [self.values[i] for i in node["operands"]]
                if not all(v.exact for v in operands):
                    raise Unsuitable("an operand is not exact")
                value = node_value(op, operands, node)
                value.signed_zeros &= all(v.signed_zeros for v in operands if v.kind in "fc")
        self.values.append(value)
        return value

    @staticmethod
    def constant(node, type_):
        if TYPES[type_].kind in "bui":
            return exact(type_, np.asarray(node.get("integer", 0)).astype(TYPES[type_].held))
        number = node.get("integer") or complex(node.get("real", 0.0), node.get("imag", 0.0))
        return exact(type_, rounded(type_, np.complex128(number) if type_ in COMPLEX else np.float64(complex(number).real)))

    def result(self, place):
        """The value of a node, with the shape of the result of the map."""
        v = self.values[place]
        error = None if v.exact else np.broadcast_to(v.error, self.shape)
        return Value(v.type, np.broadcast_to(v.data, self.shape), error, v.signed_zeros)


def constant_types(fields, types):
    """The types of constants and indices, by node. Those without take that of the operands beside them."""
    found, known = {}, list(types)
    for i, node in enumerate(fields["nodes"]):
        op = node["op"].removeprefix("MAP_OP_").lower()
        if op in ("constant", "index"):
            type_ = named(node["data_type"]) if "data_type" in node else None
            found[i] = type_
        else:
            first = 1 if op == "where" else 0
            beside = [known[o] for o in node["operands"][first:] if known[o]]
            for at, operand in enumerate(node["operands"]):
                if known[operand] is None:
                    known[operand] = found[operand - len(types)] = "bool" if at < first else beside[0]
            type_ = named(node["data_type"]) if op == "cast" else OPERATIONS[op].result_type(known[node["operands"][first]])
        known.append(type_)
    return found


def map_(step, values):
    fields = step.fields
    shape = fields.get("shape") or np.broadcast_shapes(*[v.shape for v in values])
    nodes = Nodes(values, shape)
    types = constant_types(fields, [v.type for v in values])
    for i, node in enumerate(fields["nodes"]):
        nodes.add(node, types.get(i))
    last = len(fields["nodes"]) - 1
    return [nodes.result(len(values) + i) for i in [last, *[o.get("node", 0) for o in fields.get("outputs", [])]]]


def one_node(op, values, node=None):
    """A step that is a short form of a map."""
    shape = np.broadcast_shapes(*[v.shape for v in values])
    nodes = Nodes(values, shape)
    nodes.add({"op": op, "operands": list(range(len(values))), **(node or {})})
    return [nodes.result(len(values))]


def cast_step(step, values):
    return one_node("cast", values, step.fields)


def add_step(_, values):
    return one_node("add", values)


def scale_step(step, values):
    """f16, bf16 and f32 are multiplied in f32, by the factor as f32."""
    x, factor = values[0], step.fields.get("factor", 0.0)
    if x.kind == "f":
        number = Value(computed(x.type), np.asarray(factor, TYPES[computed(x.type)].held))
        if not x.exact:
            raise Unsuitable("an operand is not exact")
        with np.errstate(all="ignore"):
            y = x.data.astype(number.data.dtype) * number.data
        return [exact(x.type, rounded(x.type, y), [x])]
    number = np.asarray(int(factor)).astype(TYPES[x.type].held)
    return one_node("multiply", [x, Value(x.type, number)])
