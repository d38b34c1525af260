"""Functions of NumPy that are called with arrays of xp, as xarray and dask do: those of the standard are computed on the
server, by the standard's rules."""

import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from warpline.elementwise import operation_of
from warpline.xp import _client_side

# Names in NumPy 1 of functions of the standard; those that have one name there and here are found by it.
_NAMES = {"concatenate": "concat", "transpose": "permute_dims", "absolute": "abs", "amax": "max", "amin": "min", "swapaxes": "",
          "cumsum": "cumulative_sum", "cumprod": "cumulative_prod"}
# Parameters of NumPy's that the standard calls otherwise.
_PARAMETERS = {"ddof": "correction"}
_OF_SIZES: Mapping[Any, Callable[[Any], Any]] = {np.shape: lambda x: x.shape, np.ndim: lambda x: x.ndim, np.size: lambda x: x.size}


def _namespace() -> Any:
    return sys.modules["warpline.xp"]


def function(called: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """The result of a function of NumPy. Raises Refused for one that the standard lacks, unless NumPy is to compute it."""
    if called in _OF_SIZES and len(args) == 1 and not keywords:
        return _OF_SIZES[called](args[0])
    name = _NAMES.get(called.__name__, called.__name__)
    folder = _namespace().linalg if getattr(called, "__module__", "") == "numpy.linalg" else _namespace()
    ours = getattr(folder, name, None) if name else None
    given = None if ours is None or not inspect.isfunction(ours) else _rearranged(called, ours, args, keywords)
    if ours is None or given is None:
        return _client_side.computed(f"numpy.{called.__name__}", called, args, keywords)
    return ours(*given[0], **given[1])


@functools.cache
def _parameters(called: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(called).parameters


def _rearranged(called: Callable[..., Any], ours: Callable[..., Any], args: Sequence[Any],
                keywords: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]] | None:
    """The arguments of NumPy's function as ours takes them; None if it has none of the same meaning."""
    theirs, here = _parameters(called), _parameters(ours)
    bound = inspect.signature(called).bind(*args, **keywords).arguments
    given: list[Any] = []
    named: dict[str, Any] = {}
    for i, (name, value) in enumerate(bound.items()):
        own = _PARAMETERS.get(name, name)
        if i > 0 and own in here and here[own].kind is inspect.Parameter.KEYWORD_ONLY:
            named[own] = value
        elif value is theirs[name].default:
            continue
        elif len(given) < sum(x.kind is not inspect.Parameter.KEYWORD_ONLY for x in here.values()):
            given.append(value)
        else:
            return None
    return given, named


def ufunc(called: np.ufunc, method: str, inputs: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """The result of a ufunc, such as that of np.float64(2) * x."""
    ours = getattr(_namespace(), operation_of(called) or called.__name__, None)
    if method != "__call__" or keywords or ours is None:
        return _client_side.computed(f"numpy.{called.__name__}", getattr(called, method), inputs, keywords)
    if any(isinstance(x, (np.ndarray, list)) for x in inputs):
        raise TypeError(f"{called.__name__} of an array of xp and one of NumPy: xp.asarray brings it to the server")
    return ours(*inputs)
