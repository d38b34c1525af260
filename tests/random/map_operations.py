"""The operations of maps: operands, types, and the errors that docs/array-api.md promises."""

import dataclasses

from element_types import TYPES, kind_of


@dataclasses.dataclass(frozen=True)
class Operation:
    name: str
    operands: int
    takes: str  # kinds of element types; w: f32 and f64 only
    result: str = "same"  # or "bool", "real", "given"
    ulp: int = 0  # of f32 and f64; 0: exact

    def takes_type(self, type_):
        return kind_of(type_) in self.takes or ("w" in self.takes and type_ in ("f32", "f64"))

    def result_type(self, type_):
        if self.result == "bool":
            return "bool"
        return TYPES[type_].part or type_ if self.result == "real" else type_


def _operations():
    table = """
        where 3 buifc same | add 2 buifc same | subtract 2 uifc same | multiply 2 buifc same | divide 2 fc same
        floor_divide 2 uif same 2 | remainder 2 uif same | pow 2 uifc same 4 | negative 1 uifc same | abs 1 uifc real
        sign 1 uifc same | minimum 2 buif same | maximum 2 buif same | clip 3 uif same | equal 2 buifc bool
        not_equal 2 buifc bool | less 2 buif bool | less_equal 2 buif bool | greater 2 buif bool | greater_equal 2 buif bool
        logical_and 2 b same | logical_or 2 b same | logical_xor 2 b same | logical_not 1 b same | bitwise_and 2 bui same
        bitwise_or 2 bui same | bitwise_xor 2 bui same | bitwise_invert 1 bui same | bitwise_left_shift 2 ui same
        bitwise_right_shift 2 ui same | floor 1 f same | ceil 1 f same | trunc 1 f same | round 1 fc same | sqrt 1 fc same
        isnan 1 fc bool | isinf 1 fc bool | isfinite 1 fc bool | signbit 1 f bool | copysign 2 f same | nextafter 2 w same
        real 1 c real | imag 1 c real | conj 1 c same | exp 1 fc same 4 | exp2 1 f same 4 | expm1 1 fc same 4 | log 1 fc same 2
        log2 1 fc same 4 | log10 1 fc same 3 | log1p 1 fc same 4 | logaddexp 2 f same 8 | hypot 2 f same 3 | sin 1 fc same 2
        cos 1 fc same 2 | tan 1 fc same 4 | asin 1 fc same 4 | acos 1 fc same 3 | atan 1 fc same 2 | atan2 2 f same 3
        sinh 1 fc same 3 | cosh 1 fc same 2 | tanh 1 fc same 4 | asinh 1 fc same 4 | acosh 1 fc same 4 | atanh 1 fc same 4
        erf 1 f same 4 | cbrt 1 f same 4 | cast 1 buifc given"""
    rows = [row.split() for line in table.splitlines() for row in line.split("|") if row.strip()]
    return {name: Operation(name, int(count), takes, result, int(ulp[0]) if ulp else 0)
            for name, count, takes, result, *ulp in rows}


OPERATIONS = _operations()
EXACT = [o for o in OPERATIONS.values() if not o.ulp]
ROUNDED = [o for o in OPERATIONS.values() if o.ulp]
