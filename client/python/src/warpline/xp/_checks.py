"""What functions check of their arguments."""

import functools
from collections.abc import Sequence
from typing import Any

from warpline.expressions import Expression
from warpline.xp import _sessions, _types
from warpline.xp._arrays import Array


def array_of(what: str, x: Any) -> Array:
    if not isinstance(x, Array):
        raise TypeError(f"{what} takes arrays of warpline.xp, not {type(x).__name__}: xp.asarray makes one")
    return x


def of_common_dtype(what: str, arrays: Sequence[Array]) -> list[Expression]:
    given = [array_of(what, x) for x in arrays]
    if not given:
        raise ValueError(f"{what} takes one array or more")
    _sessions.of(given)
    dtype = functools.reduce(_types.common, [x.dtype for x in given])
    return [x._x.program._cast(x._x, dtype) for x in given]
