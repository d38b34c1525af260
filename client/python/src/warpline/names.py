"""Names that arguments take, for type checkers."""

from typing import Literal

# Reductions, by the names that NumPy has for most of them.
ReduceOp = Literal["sum", "prod", "min", "max", "mean", "argmin", "argmax", "any", "all", "count_nonzero", "norm1",
                   "norm2", "norminf", "sumsq", "var", "std", "logsumexp"]
# What is applied to each element of a product at the end.
Activation = Literal["none", "relu", "gelu"]
# Arithmetic of float32 products: float32 as IEEE has it, or operands that are rounded to TF32.
Precision = Literal["ieee", "tf32"]
