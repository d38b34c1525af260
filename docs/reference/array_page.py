"""docs/array-api.md: the elementwise operations, from their table in kernels/map/operations.h, and what the functions
of the Python array API standard are here."""

import re
import textwrap

from markdown import table

TABLE = "kernels/map/operations.h"
ROW = re.compile(r'X\(\w+, "(\w+)", (\d), ([\w| ]+), k(\w+), k\w+, (\d+)\)')
TYPES = {"kBools": "bool", "kInts": "integers", "kFloats": "floats", "kWideFloats": "f32, f64", "kComplex": "complex"}
RESULTS = {"Same": "as the operands", "Bool": "bool", "Real": "real part's type", "Given": "given"}

# The functions of the standard, 2024.12, by its sections: what computes each one here, or "" if it is missing.
#   map NAME: an elementwise operation. step NAME: a step of programs. reduce NAME: a reduction. py NAME: a method or
#   function of the Python package. numpy: NumPy's own function does it, as no elements are needed.
STANDARD = {
    "Elementwise functions": {
        **{name: f"map {name}" for name in (
            "abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert bitwise_or "
            "bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp expm1 floor floor_divide "
            "greater greater_equal hypot imag isfinite isinf isnan less less_equal log log1p log2 log10 logaddexp "
            "logical_and logical_not logical_or logical_xor maximum minimum multiply negative nextafter not_equal pow "
            "real remainder round sign signbit sin sinh sqrt subtract tan tanh trunc").split()},
        "positive": "py Expression.__pos__", "reciprocal": "map divide", "square": "map multiply"},
    "Searching functions": {"argmax": "reduce argmax", "argmin": "reduce argmin", "count_nonzero": "reduce count_nonzero",
                            "nonzero": "py numpy.nonzero", "searchsorted": "step searchsorted", "where": "map where"},
    "Statistical functions": {"cumulative_prod": "step scan", "cumulative_sum": "step scan", "max": "reduce max", "mean": "reduce mean",
                              "min": "reduce min", "prod": "reduce prod", "std": "reduce std", "sum": "reduce sum",
                              "var": "reduce var"},
    "Utility functions": {"all": "reduce all", "any": "reduce any", "diff": "py numpy.diff"},
    "Linear algebra functions": {"matmul": "step gemm", "matrix_transpose": "step transpose", "tensordot": "py numpy.tensordot",
                                 "vecdot": "py numpy.vecdot"},
    "Manipulation functions": {"broadcast_arrays": "py numpy.broadcast_arrays", "broadcast_to": "step broadcast_to", "concat": "step concat",
                               "expand_dims": "step reshape", "flip": "step slice", "moveaxis": "step transpose",
                               "permute_dims": "step transpose", "repeat": "step repeat", "reshape": "step reshape",
                               "roll": "step roll",
                               "squeeze": "step reshape", "stack": "py warpline.stack", "tile": "step tile",
                               "unstack": "py Expression.__iter__"},
    "Creation functions": {"arange": "py warpline.arange", "asarray": "py Client.put", "empty": "py Client.empty",
                           "empty_like": "py numpy.empty_like", "eye": "py warpline.eye", "from_dlpack": "", "full": "py warpline.full",
                           "full_like": "py numpy.full_like", "linspace": "py warpline.linspace", "meshgrid": "py numpy.meshgrid",
                           "ones": "py warpline.ones", "ones_like": "py numpy.ones_like", "tril": "py numpy.tril",
                           "triu": "py numpy.triu", "zeros": "py warpline.zeros", "zeros_like": "py numpy.zeros_like"},
    "Data types": {"astype": "step cast", "can_cast": "numpy", "finfo": "numpy", "iinfo": "numpy", "isdtype": "numpy",
                   "result_type": "numpy"},
    "Indexing functions": {"take": "step take", "take_along_axis": "step take_along_axis"},
    "Set functions": {name: f"py numpy.{name}" for name in ("unique_all", "unique_counts", "unique_inverse", "unique_values")},
    "Sorting functions": {"argsort": "step argsort", "sort": "step sort"},
    "Extension linalg": {name: "" for name in (
        "cholesky cross det eigh eigvalsh inv matrix_norm matrix_power matrix_rank pinv qr slogdet solve "
        "svd svdvals trace").split()} | {"diagonal": "step diagonal", "outer": "py numpy.outer", "vector_norm": "reduce norm2"},
    "Extension fft": {name: "" for name in ("fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft fftfreq rfftfreq "
                                            "fftshift ifftshift").split()},
}


def numpy_functions(root):
    """Those that the package's functions register themselves for."""
    names = set()
    for file in (root / "client/python/src/warpline").glob("*.py"):
        for written in re.findall(r"^@implements\((.*)\)$", file.read_text(), re.MULTILINE):
            names |= set(re.findall(r'"([\w.]+)"', written))
    return sorted(names)


def page(root):
    """The page. ValueError if it would name anything that does not exist."""
    rows = ROW.findall((root / TABLE).read_text())
    check(root, {row[0] for row in rows})
    operations = [[f"`{name}`", operands, ", ".join(TYPES[kind.strip()] for kind in takes.split("|")), RESULTS[result],
                   "exact" if error == "0" else f"{error} ulp"] for name, operands, takes, result, error in rows]
    functions = [how for names in STANDARD.values() for how in names.values()]
    parts = [f"""# Elementwise operations, and the array API standard

This page is generated: `/usr/bin/python3 -B docs/reference`. Its sources are `{TABLE}` and
`docs/reference/array_page.py`.

## Elementwise operations

A map step has these as its nodes (`MapOp` in [warpline.proto](../proto/warpline/v1/warpline.proto)). In Python they are operators, functions of NumPy and
`Program.elementwise`. The error is that of f32 and f64 results. "exact" means that a result is rounded once. Results of
f16 and bf16 are computed in f32 and rounded. Of a complex function, `divide`, `sign` and `sqrt` too, each part
is off by at most 8 ulp of the larger part; of `pow` this times 1 + |y log x|. The ulp of `logaddexp` is that of the larger
of its operands, as the result may be near 0.

""" + table(["operation", "operands", "types", "result", "error, at most"], operations),
             """## Functions of NumPy

Of tensors and expressions, these functions return expressions that the server computes: the ufuncs of the operations above,
functions that call the method of their name (`np.sum`, `np.clip`, `np.transpose`, `np.round` and so on), and these:

```text
""" + textwrap.fill("  ".join(numpy_functions(root)), 100) + """
```

`np.vecdot`, `np.matrix_transpose`, `np.cumulative_sum`, `np.unique_values` and others that NumPy 2 brought need NumPy 2. All other
functions, and most options and types of those above that the server lacks, fetch the elements and compute in the client, with a
`WarplinePerformanceWarning` for each function and line of your code. Refused are medians and variances of complex numbers, sums of floats as
integers, `order="F"`, a q of two axes, what writes into a tensor, such as `np.add.at`, and `out=`. Where NumPy itself goes on after a refusal,
as in `np.clip(t, 1, 2, out=z)`, z has the values, with a warning.""",
             f"""## Functions of the standard

{sum(map(bool, functions))} of {len(functions)} functions of the
[Python array API standard](https://data-apis.org/array-api/2024.12/), with its extensions, have an equivalent here."""]
    for title, names in STANDARD.items():
        parts.append(f"### {title}\n\n" + table(["function", "here"], [[f"`{name}`", text_of(how)]
                                                                    for name, how in sorted(names.items())]))
    return "\n\n".join(parts) + "\n"


def text_of(how):
    kind, _, name = how.partition(" ")
    return {"": "missing", "map": f"`{name}` in a map", "step": f"step `{name}`", "reduce": f"reduction `{name}`",
            "py": f"Python: `{name}`", "numpy": "NumPy's own"}[kind]


def check(root, operations):
    proto = (root / "proto/warpline/v1/warpline.proto").read_text()
    python = "".join(path.read_text() for path in sorted((root / "client/python/src/warpline").glob("*.py")))
    for names in STANDARD.values():
        for function, how in names.items():
            kind, _, name = how.partition(" ")
            exists = {"": True, "numpy": True, "map": name in operations,
                      "step": f"Step {name} = " in proto, "reduce": f"REDUCE_OP_{name.upper()} = " in proto,
                      "py": f"def {name.rpartition('.')[2]}(" in python}[kind]
            if not exists:
                raise ValueError(f"{function}: there is no {how}")
