"""Functions of NumPy that are called with arrays of xp, as xarray and dask do: those of the standard are computed on the
server, by the standard's rules."""

import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from warpline import elementwise
from warpline.elementwise import operation_of
from warpline.expressions import Expression
from warpline.implements import FUNCTIONS, NotHere, accepted
from warpline.programs import FREE
from warpline.xp import _client_side, _sessions
from warpline.xp._arrays import Array

# Names in NumPy 1 of functions of the standard; those that have one name there and here are found by it.
_NAMES = {"concatenate": "concat", "transpose": "permute_dims", "absolute": "abs", "amax": "max", "amin": "min",
          "linspace": ""}  # linspace takes no arrays here
# Parameters of NumPy's that the standard calls otherwise.
_PARAMETERS = {"ddof": "correction"}
_OF_SIZES: Mapping[Any, Callable[[Any], Any]] = {np.shape: lambda x: x.shape, np.ndim: lambda x: x.ndim, np.size: lambda x: x.size}


_WRITERS = {np.copyto, np.put, np.putmask, np.place, np.put_along_axis, np.fill_diagonal}
# Functions that the standard has with another meaning.
_AS_NUMPY = {np.cumsum, np.cumprod, np.take, np.searchsorted}


def _namespace() -> Any:
    return sys.modules["warpline.xp"]


def function(called: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """The result of a function of NumPy: that of the standard, or else what the server computes for tensors, such as
    np.nanmean. Raises Refused for all others, unless NumPy is to compute them."""
    _check_no_out(called, keywords)
    if called in _WRITERS:
        raise TypeError(f"numpy.{called.__name__} writes into an array, which those of xp do by x[...] = y")
    if called is np.transpose and len(args) == 1 and not keywords:  # the standard's names all axes
        return _namespace().permute_dims(args[0], tuple(range(args[0].ndim))[::-1])
    if called in _OF_SIZES and len(args) == 1 and not keywords:
        return _OF_SIZES[called](args[0])
    name = "" if called in _AS_NUMPY else _NAMES.get(called.__name__, called.__name__)
    folder = _namespace().linalg if getattr(called, "__module__", "") == "numpy.linalg" else _namespace()
    ours = getattr(folder, name, None) if name else None
    given = None if ours is None or not inspect.isfunction(ours) else _rearranged(called, ours, args, keywords)
    if ours is not None and given is not None:
        return ours(*given[0], **given[1])
    if called in FUNCTIONS:
        try:
            return _of_expressions(FUNCTIONS[called], args, accepted(called, FUNCTIONS[called], keywords))
        except NotHere:
            pass
    return _client_side.computed(f"{_path(called)} with these arguments", called, args, keywords)


def _path(called: Callable[..., Any]) -> str:
    return f"{getattr(called, '__module__', None) or 'numpy'}.{called.__name__}"


def _check_no_out(called: Callable[..., Any], keywords: Mapping[str, Any]) -> None:
    if keywords.get("out") is not None:
        raise TypeError(f"numpy.{called.__name__} has no out= for arrays of xp, and none of NumPy's is changed in place by one: "
                        "x[...] = y writes, and np.asarray(x) brings elements here")


def _of_expressions(function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """The result of a function that computes what NumPy's does on the server."""
    arrays = list(_client_side.arrays_in([*args, *keywords.values()]))
    session = _sessions.of(arrays)
    found = function(*map(_expressions, args), **{name: _expressions(x) for name, x in keywords.items()})
    made = list(found) if isinstance(found, (list, tuple)) else [found]
    session.compute([x for x in made if isinstance(x, Expression) and x.shape is None])  # as the size depends on elements
    results = [Array(x, session, _sessions.pending(x)) if isinstance(x, Expression) else x for x in made]
    return tuple(results) if isinstance(found, (list, tuple)) else results[0]


def _expressions(x: Any) -> Any:
    if isinstance(x, Array):
        return x._x
    return type(x)(map(_expressions, x)) if type(x) in (list, tuple) else x


@functools.cache
def _signature(called: Callable[..., Any]) -> inspect.Signature | None:
    """None for functions of NumPy 1 that do not tell theirs, such as concatenate."""
    try:
        return inspect.signature(called)
    except ValueError:
        return None


def _rearranged(called: Callable[..., Any], ours: Callable[..., Any], args: Sequence[Any],
                keywords: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]] | None:
    """The arguments of NumPy's function as ours takes them; None if it has none of the same meaning."""
    signature, here = _signature(called), inspect.signature(ours)
    given: list[Any] = []
    named: dict[str, Any] = {}
    if signature is None:
        given, named = list(args), dict(keywords)
    else:
        for i, (name, value) in enumerate(signature.bind(*args, **keywords).arguments.items()):
            own, theirs = _PARAMETERS.get(name, name), signature.parameters[name]
            if theirs.kind is inspect.Parameter.VAR_POSITIONAL:
                given += value
            elif i > 0 and own in here.parameters and here.parameters[own].kind is inspect.Parameter.KEYWORD_ONLY:
                named[own] = value
            elif value is not theirs.default:
                given.append(value)
    try:
        here.bind(*given, **named)
    except TypeError:
        return None
    return given, named


def ufunc(called: np.ufunc, method: str, inputs: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """The result of a ufunc, such as that of np.float64(2) * x."""
    _check_no_out(called, keywords)
    operation = operation_of(called)
    ours = getattr(_namespace(), operation or called.__name__, None)
    if ours is None and operation and method == "__call__" and not keywords:  # such as np.cbrt
        try:
            return _of_expressions(functools.partial(elementwise.make, operation, FREE), [inputs], {})
        except NotHere:
            pass
    if method != "__call__" or keywords or ours is None:
        return _client_side.computed(f"numpy.{called.__name__}{'' if method == '__call__' else '.' + method} with these arguments",
                                     getattr(called, method), inputs, keywords)
    if any(isinstance(x, (np.ndarray, list)) for x in inputs):
        raise TypeError(f"{called.__name__} of an array of xp and one of NumPy: xp.asarray brings it to the server")
    return ours(*inputs)
