"""The functions of NumPy that are computed on the server. Each module registers its own."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

_F = TypeVar("_F", bound=Callable[..., Any])

# By the function of NumPy. NumPy calls them for expressions and tensors of the blocking client.
FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {}


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
