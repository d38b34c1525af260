"""Views, which take elements as they are: a small array's are read here."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from warpline.expressions import Expression

_KINDS = ("slice", "reshape")


class View(NamedTuple):
    """Places of an array. steps: the fields and the shape of each slice or reshape, from the first that reads the base. They
    are copies, since another thread may compute the view meanwhile."""

    base: Expression
    steps: Sequence[tuple[str, Any, tuple[int, ...]]]

    def read(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The view's elements, from those of the base."""
        for kind, fields, shape in self.steps:
            if kind == "slice":
                key = [slice(None)] * array.ndim
                for axis, *of in zip(fields["axes"], fields["starts"], fields["ends"], fields["steps"]):
                    key[axis] = slice(*map(int, of))
                array = array[tuple(key)]
            array = array.reshape(shape)
        return array


def of(x: Expression) -> View:
    """The view that an expression is. Called with the lock of its session."""
    steps = []
    while x._operation is not None and x._operation.kind in _KINDS:
        assert x.shape is not None
        steps.append((x._operation.kind, x._operation.fields, x.shape))
        x = x._inputs[0]
    return View(x, steps[::-1])
