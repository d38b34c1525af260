"""Names that arguments take, for type checkers."""

from typing import Literal

ReduceOp = Literal["sum", "prod", "min", "max", "mean", "argmin", "argmax", "any", "all", "count_nonzero", "norm1",
                   "norm2", "norminf", "sumsq", "var", "std", "logsumexp"]
Activation = Literal["none", "relu", "gelu"]
Precision = Literal["ieee", "tf32"]
