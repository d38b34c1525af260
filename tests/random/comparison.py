"""How the results of a program are compared with their references."""

import numpy as np

from element_types import TYPES, decoded
from value import differences

# Steps whose bools are computed, and so are 0 or 1.
COMPUTES = ("map", "cast", "add", "reduce")


def element(x):
    return repr(x.item()) if hasattr(x, "item") else repr(x)


def problem(name, value, result, computed):
    """Returns the error of a result as a text, or None."""
    if (result.type, result.shape) != (value.type, value.shape):
        return f"{name} is {result.type}{list(result.shape)}, want {value}"
    size = value.data.size * TYPES[value.type].size
    if len(result.content) != size:
        return f"{name} has {len(result.content)} bytes, want {size}"
    if value.type == "bool" and computed and result.content.strip(b"\0\1"):
        return f"{name} has bools that are neither 0 nor 1"
    got = decoded(value.type, result.content, result.shape)
    wrong = np.asarray(differences(value, got))
    if not np.any(wrong):
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    bound = "" if value.exact else f", error at most {float(value.error[at]):.3g}"
    return (f"{name}, {value}: {np.count_nonzero(wrong)} of {wrong.size} elements are wrong; the first is {list(at)}: "
            f"got {element(got[at])}, want {element(value.data[at])}{bound}")


def problems(program, values, results, variants):
    """All that is wrong with the answer to a program, as texts."""
    if list(results) != program.outputs:
        return [f"the results are {list(results)}, want {program.outputs}"]
    found = [problem(name, values[name], results[name], program.step_of(name).kind in COMPUTES) for name in program.outputs]
    if program.report and len(variants) != len(program.steps):
        found.append(f"{len(variants)} variants are reported for {len(program.steps)} steps: {variants}")
    return [text for text in found if text]
