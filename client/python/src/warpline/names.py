"""Names that arguments accept, for type checkers."""

from typing import Literal

# Names of the reductions; most are NumPy's.
ReduceOp = Literal["sum", "prod", "min", "max", "mean", "argmin", "argmax", "any", "all", "count_nonzero", "norm1",
                   "norm2", "norminf", "sumsq", "var", "std", "logsumexp"]
# Functions that can be applied to each element of a product at the end.
Activation = Literal["none", "relu", "gelu"]
# Arithmetic of float32 products: IEEE float32, or operands rounded to TF32.
Precision = Literal["ieee", "tf32"]
