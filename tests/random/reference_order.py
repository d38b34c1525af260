"""References of sorts and searches."""

import numpy as np

from value import Value, exact, need_exact


def places(rows, descending, nan_first):
    """The stable order of the last axis."""
    if descending:
        # Equal elements keep their order if the axis is turned round twice.
        order = rows.shape[-1] - 1 - np.argsort(rows[..., ::-1], -1, kind="stable")[..., ::-1]
    else:
        order = np.argsort(rows, -1, kind="stable")
    if rows.dtype.kind == "f":
        nan = np.isnan(np.take_along_axis(rows, order, -1))
        order = np.take_along_axis(order, np.argsort(~nan if nan_first else nan, -1, kind="stable"), -1)
    return order.astype(np.int64)


def sort(step, values):
    x, fields = values[0], step.fields
    need_exact(x)
    axis = -1 if step.kind == "topk" else fields.get("axis", 0)
    largest = step.kind == "topk" and not fields.get("smallest", False)
    rows = np.moveaxis(x.data, axis, -1)
    order = places(rows, largest or fields.get("descending", False), largest)
    if step.kind == "topk":
        order = order[..., :fields["k"]]
    data = np.take_along_axis(rows, order, -1)
    indices = exact("i64", np.moveaxis(order, -1, axis))
    if step.kind == "argsort":
        return [indices]
    # Without places, zeros are in the order of their signs.
    own = Value(x.type, np.moveaxis(data, -1, axis), signed_zeros=x.signed_zeros and bool(fields.get("indices")))
    return [own, indices] if fields.get("indices") else [own]


def searchsorted(step, values):
    need_exact(*values)
    x1, x2 = values[0].data, values[1].data
    if len(values) == 3:
        x1 = x1[values[2].data.astype(np.int64)]
    found = np.searchsorted(x1, x2, "right" if step.fields.get("right") else "left")
    return [exact("i64", found)]
