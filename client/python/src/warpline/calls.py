"""The calls of programs: from arguments to the structures of the library, and from its results to arrays.

The blocking and the asynchronous client share this code. It does not read the elements of arrays.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from warpline import core, errors, interrupts
from warpline._core import ffi, lib
from warpline.arguments import (Axes, activation_of, axes_of, beta_of, ddof_of, factor_of, fields_of, flag_of, from_front,
                                perm_of, precision_of, reduce_op, reversed_axes)
from warpline.arrays import AnyOperand, Array, Operand, operand_of
from warpline.dtypes import result_data_type
from warpline.reports import Execution, execution_of
from warpline.residents import Resident, check_ttl

# Called with the Execution of a request that succeeded.
Report = Callable[[Execution], None]
# Called with the bytes of large arrays of a call that have travelled, and with all that will.
Progress = Callable[[int, int], None]
# Accepted in place of an array: anything that NumPy accepts, or a resident tensor.
Input = npt.ArrayLike | Resident


class Keep(NamedTuple):
    """For each result, true if it stays on the server; and their lease in seconds, 0 for the default."""

    results: Sequence[bool] = (False,)
    ttl: float = 0.0


INLINE = Keep()


def keep_of(keep: bool | Sequence[bool], ttl: float | None, out: Any, count: int = 1) -> Keep:
    """Makes the Keep of `count` results from a bool for all, or one bool for each. Raises ValueError if the arguments
    contradict each other."""
    if keep is False and ttl is None and count == 1:
        return INLINE
    results = [keep] * count if isinstance(keep, (bool, np.bool_)) else list(keep) if isinstance(keep, Iterable) else []
    if len(results) != count or not all(isinstance(one, (bool, np.bool_)) for one in results):
        raise ValueError(f"keep is {keep!r}: True, False, or one of them for each of {count} results")
    if ttl is not None and not any(results):
        raise ValueError("ttl is given, but no result is kept: keep=True")
    if any(kept and one is not None for kept, one in zip(results, outs_of(out, count))):
        raise ValueError("out is given for a result that is kept on the server")
    return Keep(results, check_ttl(ttl))


def freed_of(tensors: Any) -> Sequence[Resident]:
    """The tensors of `free_after`. Raises TypeError unless it is a sequence of tensors."""
    if isinstance(tensors, Resident):
        raise TypeError(f"free_after is a {type(tensors).__name__}: a sequence of tensors, as in [t]")
    freed = list(tensors)
    for i, tensor in enumerate(freed):
        if not isinstance(tensor, Resident):
            raise TypeError(f"free_after[{i}] is a {type(tensor).__name__}: a resident tensor")
    return freed


class Call(NamedTuple):
    """A program with its inputs, by name."""

    program: core.Program
    inputs: Sequence[tuple[str, AnyOperand]]
    keep: Keep
    # True: errors name the inputs and options of the only step.
    single: bool = False
    # The order in which the axes of the only result are wanted; None: as they come.
    order: Sequence[int] | None = None
    # The tensors that the server drops when the call has succeeded.
    free_after: Sequence[Resident] = ()


def result_bytes(call: Call) -> int:
    """The size of the results that come back, as the library infers it; 0 if it cannot, or if the call will be refused."""
    inputs = [(name, x.data_type, x.shape) for name, x in call.inputs]
    try:
        results = core.infer(call.program, inputs)
    except errors.Error:
        return 0
    return sum(dtype.itemsize * math.prod(shape) for (dtype, shape), kept in zip(results, call.keep.results) if not kept)


def _single(kind: str, inputs: Sequence[tuple[str, AnyOperand]], fields: dict[str, Any], variant: str, keep: Keep,
            order: Sequence[int] | None = None) -> Call:
    program = core.operation(kind, tuple(name for name, _ in inputs), tuple(fields.items()), variant)
    return Call(program, inputs, keep, True, order)


def transpose(x: Any, axes: Iterable[int] | None, variant: str, keep: Keep = INLINE) -> Call:
    operand = operand_of(x)
    rank = operand.rank
    perm = reversed_axes(rank) if axes is None else perm_of(axes, rank)
    if not operand.in_order:
        wanted = perm or [1, 0]
        if sorted(wanted) == list(range(rank)):
            perm = [operand.perm[a] for a in wanted]
        else:
            operand = operand_of(x, any_order=False)
    return _single("transpose", [("x", operand)], fields_of(perm=perm), variant, keep)


def matrix(x: Any) -> tuple[AnyOperand, bool]:
    """The operand of a factor of a product, and True if its transpose is sent."""
    operand = operand_of(x)
    if operand.in_order:
        return operand, False
    if operand.swaps_last_two:
        return operand, True
    return operand_of(x, any_order=False), False


def gemm(a: Any, b: Any, c: Any, alpha: float | None, beta: float | None, bias: Any, activation: str | None,
         trans_a: bool, trans_b: bool, precision: str | None, dtype: npt.DTypeLike | None, variant: str,
         keep: Keep = INLINE) -> Call:
    (a, a_swapped), (b, b_swapped) = matrix(a), matrix(b)
    inputs = [("a", a), ("b", b)]
    if c is not None:
        inputs.append(("c", operand_of(c, any_order=False)))
    if bias is not None:
        inputs.append(("bias", operand_of(bias, any_order=False)))
    fields = fields_of(
        trans_a=flag_of("trans_a", trans_a) != a_swapped, trans_b=flag_of("trans_b", trans_b) != b_swapped,
        alpha=factor_of("alpha", alpha), beta=beta_of(beta, c is not None), precision=precision_of(precision),
        activation=activation_of(activation), has_bias=bias is not None, out_data_type=result_data_type(dtype))
    return _single("gemm", inputs, fields, variant, keep)


def reduce(x: Any, op: str, axis: Axes, keepdims: bool, dtype: npt.DTypeLike | None, ddof: int,
           variant: str, keep: Keep = INLINE) -> Call:
    # Nothing reorders the axes of a result that stays on the server, so send the axes in the order of x.
    operand, axes = operand_of(x, any_order=not any(keep.results)), axes_of(axis)
    keepdims = flag_of("keepdims", keepdims)
    rank, order = operand.rank, None
    if not operand.in_order:
        logical = from_front(axes, rank) or list(range(rank))
        index_of_all = op in ("argmin", "argmax") and len(logical) == rank
        if index_of_all or not set(logical) <= set(range(rank)):
            operand = operand_of(x, any_order=False)
        else:
            axes = [operand.perm[i] for i in logical] if axes else []
            order = _axes_back(operand.perm, logical, keepdims)
    fields = fields_of(op=reduce_op(op), axes=axes, keepdims=keepdims, ddof=ddof_of(ddof),
                       out_data_type=result_data_type(dtype))
    return _single("reduce", [("x", operand)], fields, variant, keep, order)


def _axes_back(perm: Sequence[int], reduced: Sequence[int], keepdims: bool) -> list[int]:
    """The permutation that brings the axes of a result from the order sent to the order of the array."""
    kept = [perm[i] for i in range(len(perm)) if keepdims or i not in reduced]
    return [sorted(kept).index(axis) for axis in kept]


def outs_of(out: Any, count: int) -> list[Array | None]:
    """The `out` argument as a list, for `count` results: `out` is an array for one, a sequence for several."""
    if out is None:
        return [None] * count
    return [out] if count == 1 else list(out)


def check_out(out: Any) -> None:
    """Raises TypeError unless `out` is an array of NumPy without a mask, and ValueError unless it can be written."""
    if not isinstance(out, np.ndarray) or isinstance(out, np.ma.MaskedArray):
        kind = type(out)
        name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
        raise TypeError(f"out is a {name}: give it a NumPy array of the memory, such as np.asarray makes of arrays of "
                        "other libraries on the host")
    if not out.flags.writeable or not out.dtype.isnative:
        raise ValueError(f"out is {out.dtype}{list(out.shape)}: it must be writeable and in native byte order")


_TooHardError: Any = getattr(np, "exceptions", np).TooHardError  # np.exceptions is there since NumPy 1.25


def _check_apart(outs: Sequence[Array | None]) -> None:
    """Raises ValueError if two arrays share memory: one result would overwrite the other."""
    given = [(i, out) for i, out in enumerate(outs) if out is not None]
    for k, (i, first) in enumerate(given):
        for j, second in given[k + 1:]:
            if np.may_share_memory(first, second) and _shares(first, second):
                raise ValueError(f"out[{i}] and out[{j}] share memory: each result needs its own")


def _shares(a: Array, b: Array) -> bool:
    try:
        return np.shares_memory(a, b, max_work=10000)
    except _TooHardError:
        return True


class Request:
    """The arguments of the library for a call. They refer to the memory of the operands and of `outs`, and keep it."""

    def __init__(self, call: Call, outs: Sequence[Array | None], timeout: float, request_id: str,
                 reproducible: bool, reports: bool, progress: Progress | None = None) -> None:
        """reports: the result says what ran. progress: is told how far large arrays are. Raises ValueError for an `out` that cannot be written."""
        self._call = call
        self._outs = outs
        # Keeps alive the memory that the structures point at.
        self._kept: list[Any] = []
        # For results that the library cannot write to `out`: a view of `out`, and the array for the library.
        self._copied: dict[int, tuple[Array, Array]] = {}
        count = len(call.program.outputs)
        if len(outs) != count:
            raise ValueError(f"out has {len(outs)} arrays for {count} results")
        _check_apart(outs)
        inputs = ffi.new("warpline_input[]", len(call.inputs))
        for slot, (name, operand) in zip(inputs, call.inputs):
            slot.name = named = core.text(name)
            self._kept.append(named)
            if isinstance(operand, Operand):
                slot.array = core.describe(core.in_elements(operand.stored), self._kept)
            else:
                slot.tensor = operand.tensor._handle
        destinations: Any = core.NULL
        if call.keep is not INLINE or any(out is not None for out in outs):
            destinations = ffi.new("warpline_destination[]", count)
            for i, (slot, kept, out) in enumerate(zip(destinations, call.keep.results, outs)):
                slot.keep, slot.ttl = kept, call.keep.ttl
                if out is not None:
                    slot.out = core.describe(self._target(i, out), self._kept)
        options = ffi.new("warpline_call_options *")
        options.size = _OPTIONS_SIZE
        options.timeout = timeout
        options.request_id = identity = ffi.new("char[]", request_id.encode())
        options.reproducible = reproducible
        options.one_step = call.single
        options.report = reports
        self._told = interrupts.told_of(progress)
        if self._told is not None:
            options.progress, options.progress_data = lib.warpline_python_progress, self._told.handle
        self._kept.append(identity)
        if call.free_after:
            ids = [ffi.new("char[]", tensor.id.encode()) for tensor in call.free_after]
            options.free_after = freed = ffi.new("char *[]", ids)
            options.free_after_count = len(ids)
            self._kept += [*ids, freed]
        # Everything after the client in warpline_run and warpline_submit.
        self.arguments = (call.program.handle, inputs, len(call.inputs), destinations,
                          0 if destinations == core.NULL else count, options)

    def results(self, result: Any, report: Report | None) -> list[Any]:
        """The results: arrays, and for those that stay on the server, the warpline_tensor. `result` is a
        warpline_result, which this frees."""
        try:
            if self._told is not None:
                self._told.check()
            if report is not None:
                report(execution_of(result))
            return [self._result(result, i) for i in range(len(self._outs))]
        finally:
            lib.warpline_result_free(result)

    def ordered(self, array: Array) -> Array:
        """The only result, with its axes in the order that is wanted."""
        order = self._call.order
        if order is None:
            return array
        if array.ndim != len(order):
            raise errors.of_code(errors.StatusCode.INTERNAL, "the server's response has a result of another rank")
        return array.transpose(order)

    def _result(self, result: Any, i: int) -> Any:
        if self._call.keep.results[i]:
            return lib.warpline_result_take_tensor(result, i)
        out = self._outs[i]
        if out is None:
            return self.ordered(core.own(lib.warpline_result_take_array(result, i)))
        if i in self._copied:
            np.copyto(*self._copied[i])
        return out

    def _target(self, i: int, out: Array) -> Array:
        """The array for the elements of a result that goes to `out`: a view of it, or an array that is copied."""
        check_out(out)
        view = out.view(np.ndarray)
        if self._call.order is not None:
            view = view.transpose(np.argsort(self._call.order))
        target = core.in_elements(view)
        if target is not view:
            self._copied[i] = view, target
        return target


_OPTIONS_SIZE = ffi.sizeof("warpline_call_options")
