"""NumPy's einsum, by products of matrices."""

import itertools
import math
from typing import Any

from warpline import elementwise, views
from warpline.elementwise import program_of
from warpline.implements import NotHere, implements
from warpline.views import shape_of


@implements("einsum")
def einsum(*operands: Any, out: None = None, **options: Any) -> Any:
    """Products and sums over named axes, as `np.einsum`: factor by factor, each pair as a product of matrices."""
    views.check_no_out(out)
    if not operands or not isinstance(operands[0], str) or any(name != "optimize" for name in options):
        raise NotHere("this form of einsum is not computed on the server")
    spelled, factors = operands[0].replace(" ", ""), operands[1:]
    terms, arrow, result = spelled.partition("->")
    names = terms.split(",")
    for name in spelled.replace("->", "").replace(",", "").replace(".", ""):
        if not (name.isascii() and name.isalpha()):
            raise ValueError(f"einsum names axes by letters, not by {name!r}")
    if "." in spelled or len(names) != len(factors):
        raise NotHere("einsum with '...' is not computed on the server")
    if not arrow:
        result = "".join(sorted(name for name in set(terms) - {","} if terms.count(name) == 1))
    program = program_of("einsum", *factors)
    given = [program._expression(x) for x in factors]
    for name, x in zip(names, given):
        if len(set(name)) < len(name):
            raise NotHere("einsum of a diagonal is not computed on the server")
        if len(name) != len(shape_of("einsum", x)):
            raise ValueError(f"einsum names {len(name)} axes by {name!r} of an operand of {len(shape_of('einsum', x))}")
    if len(set(result)) < len(result) or not set(result) <= set(terms):
        raise ValueError(f"einsum: the result {result!r} names an axis twice, or one that no operand has")
    left, of_left = given[0], names[0]
    for i, (right, of_right) in enumerate(zip(given[1:], names[1:]), 2):
        left, of_left = _pair(left, of_left, right, of_right, set(result).union("".join(names[i:])))
    gone = tuple(i for i, name in enumerate(of_left) if name not in result)
    if gone:
        left = left.sum(gone, dtype=left.dtype)
        of_left = "".join(name for name in of_left if name in result)
    order = [of_left.index(name) for name in result]
    return elementwise.positive(left) if order == sorted(order) else left.transpose(order)


def _pair(left: Any, of_left: str, right: Any, of_right: str, needed: set[str]) -> tuple[Any, str]:
    """The product of two factors, summed over the axes that nothing else needs."""
    for x, name in ((left, of_left), (right, of_right)):
        alone = tuple(i for i, axis in enumerate(name) if axis not in needed and axis not in (of_right if x is left else of_left))
        if alone:
            summed, kept = x.sum(alone, dtype=x.dtype), "".join(axis for i, axis in enumerate(name) if i not in alone)
            if x is left:
                left, of_left = summed, kept
            else:
                right, of_right = summed, kept
    both = [axis for axis in of_left if axis in of_right]
    batch, inner = [axis for axis in both if axis in needed], [axis for axis in both if axis not in needed]
    rows = [axis for axis in of_left if axis not in both]
    columns = [axis for axis in of_right if axis not in both]
    sizes = dict(zip(of_left, shape_of("einsum", left)))
    for axis, size in zip(of_right, shape_of("einsum", right)):
        if sizes.setdefault(axis, size) != size:
            raise ValueError(f"einsum: the axis {axis!r} has {sizes[axis]} and {size} elements")

    def matrices(x: Any, name: str, *groups: list[str]) -> Any:
        order = [name.index(axis) for group in groups for axis in group]
        moved = x if order == sorted(order) else x.transpose(order)
        return views.reshape(moved, [sizes[axis] for axis in groups[0]] + [math.prod(sizes[axis] for axis in group)
                                                                         for group in groups[1:]])

    if not inner:  # a product of elements
        a = views.reshape(matrices(left, of_left, batch + rows), [sizes[i] for i in batch + rows] + [1] * len(columns))
        b = views.reshape(matrices(right, of_right, batch, columns),
                          [sizes[i] for i in batch] + [1] * len(rows) + [sizes[i] for i in columns])
        return a * b, "".join(itertools.chain(batch, rows, columns))
    product = matrices(left, of_left, batch, rows, inner) @ matrices(right, of_right, batch, inner, columns)
    return (views.reshape(product, [sizes[axis] for axis in batch + rows + columns]),
            "".join(itertools.chain(batch, rows, columns)))
