"""Views, which take elements as they are: a small array's are read here."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from warpline.expressions import Expression

_KINDS = ("slice", "reshape")


class View(NamedTuple):
    """Places of an array. steps: from the first that reads the base to the view itself."""

    base: Expression
    steps: Sequence[Expression]

    def read(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The view's elements, from those of the base."""
        for x in self.steps:
            assert x._operation is not None
            fields = x._operation.fields
            if x._operation.kind == "slice":
                key = [slice(None)] * array.ndim
                for axis, *of in zip(fields["axes"], fields["starts"], fields["ends"], fields["steps"]):
                    key[axis] = slice(*map(int, of))
                array = array[tuple(key)]
            assert x.shape is not None
            array = array.reshape(x.shape)
        return array


def of(x: Expression) -> View:
    steps = []
    while x._operation is not None and x._operation.kind in _KINDS:
        steps.append(x)
        x = x._inputs[0]
    return View(x, steps[::-1])
