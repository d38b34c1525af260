"""The functions of NumPy that are computed on the server. Each module registers its own."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

_F = TypeVar("_F", bound=Callable[..., Any])

# By the function of NumPy. NumPy calls them for expressions and tensors of the blocking client.
FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {}


class NotHere(TypeError):
    """The server does not compute this function with these arguments. Functions of NumPy then compute on the client."""


@functools.cache
def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """The parameters; none for functions of NumPy that do not tell theirs."""
    try:
        return inspect.signature(function).parameters
    except ValueError:
        return {}


def accepted(function: Callable[..., Any], ours: Callable[..., Any], keywords: Mapping[str, Any]) -> Mapping[str, Any]:
    """The keywords of a call of NumPy's function without those that ours lacks, which have NumPy's defaults. Raises NotHere
    if one has another value."""
    known = _parameters(ours)
    unknown = [name for name in keywords if name not in known]
    if not unknown or any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values()):
        return keywords
    for name in unknown:
        there = _parameters(function).get(name)
        if there is None or keywords[name] is not there.default:
            raise NotHere(f"{name} of numpy.{function.__name__} is not computed on the server")
    return {name: value for name, value in keywords.items() if name in known}


def implements(*names: str) -> Callable[[_F], _F]:
    """Registers a function for those of NumPy with these names, such as "roll" or "linalg.outer". Names that the
    installed NumPy lacks are left out."""
    def register(function: _F) -> _F:
        for name in names:
            folder, _, last = name.rpartition(".")
            found = getattr(getattr(np, folder) if folder else np, last, None)
            if found is not None:
                FUNCTIONS[found] = function
        return function

    return register
