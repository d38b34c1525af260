"""What to use instead of names that NumPy has and the standard has not."""

from typing import NoReturn

# Names of NumPy's functions. "": what NumPy's own function computes on the server, as np.median(x).
_OF_NAMESPACE = {
    "absolute": "abs", "amax": "max", "amin": "min", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
    "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "array": "asarray", "concatenate": "concat", "conjugate": "conj",
    "cumprod": "cumulative_prod", "cumsum": "cumulative_sum", "dot": "matmul", "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift", "power": "pow", "right_shift": "bitwise_right_shift", "swapaxes": "moveaxis",
    "transpose": "permute_dims", "true_divide": "divide", "unique": "unique_values",
    **dict.fromkeys(("allclose", "average", "bincount", "cbrt", "einsum", "exp2", "histogram", "isclose", "isin", "median",
                     "nanmax", "nanmean", "nanmin", "nansum", "pad", "partition", "percentile", "quantile"), "")}
# Names of methods of NumPy's arrays.
_OF_ARRAYS = {name: f"xp.{name}(x)" for name in (
    "all", "any", "argmax", "argmin", "argsort", "astype", "clip", "conj", "imag", "max", "mean", "min", "nonzero", "prod", "real",
    "repeat", "reshape", "round", "searchsorted", "sort", "squeeze", "std", "sum", "take", "var")}
_OF_ARRAYS |= {"copy": "xp.asarray(x, copy=True)", "cumprod": "xp.cumulative_prod(x)", "cumsum": "xp.cumulative_sum(x)",
               "dot": "x @ y", "flatten": "xp.reshape(x, (-1,))", "item": "float(x) or int(x)", "ravel": "xp.reshape(x, (-1,))",
               "tolist": "np.asarray(x).tolist()", "transpose": "xp.permute_dims(x, axes)"}


def of_namespace(name: str) -> NoReturn:
    """Raises the AttributeError of a function that warpline.xp has not."""
    instead = _OF_NAMESPACE.get(name)
    advice = "" if instead is None else f": xp.{instead} is the standard's" if instead else f": np.{name}(x) computes on the server"
    raise AttributeError(f"module 'warpline.xp' has no attribute {name!r}{advice}", name=name)


def of_arrays(name: str) -> NoReturn:
    """Raises the AttributeError of a method that arrays have not."""
    advice = f": {_OF_ARRAYS[name]} is the standard's" if name in _OF_ARRAYS else ""
    raise AttributeError(f"an array of warpline.xp has no attribute {name!r}{advice}", name=name)
