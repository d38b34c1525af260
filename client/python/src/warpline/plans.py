"""The calls that compute expressions and programs: one, or several that follow each other (stages.py)."""

from collections.abc import Generator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from warpline import calls, graphs, stages
from warpline.arrays import Array
from warpline.calls import Call
from warpline.expressions import Expression
from warpline.operators import Operators
from warpline.programs import FREE, Program


# Seconds for which a result between two requests outlives a client that has lost it, as when its call was cancelled.
_STAGE_TTL = 60.0


def outputs_of(given: Sequence[Any]) -> tuple[Sequence[Expression], Program | None]:
    """The expressions that `run` computes, and the program if `run` was given one. Raises TypeError for anything but
    expressions or one program, and ValueError if there is nothing to compute."""
    if len(given) == 1 and isinstance(given[0], Program):
        if not given[0].outputs:
            raise ValueError("the program has no outputs: warpline.program(expression, ...) has")
        return given[0].outputs, given[0]
    if not given:
        raise ValueError("there is no expression to compute")
    for x in given:
        if isinstance(x, Program):
            raise TypeError("run takes one program and nothing beside it: its inputs are given by the names of their "
                            "placeholders, run(p, x=...)")
        if not isinstance(x, Operators):
            raise TypeError(f"run takes expressions or a program, not {type(x).__name__}: inputs are given by the "
                            "names of their placeholders, run(e, x=...)")
    return [FREE._expression(x) for x in given], None


class Plan(NamedTuple):
    """A call of Client.run. Outputs that are given several times are computed once.

    outs: the `out` of each result of the call. places: for each output that was given, its index in the call's results.
    wanted: its `out`. graph: the steps and inputs of the call.
    """

    call: Call
    outs: list[Array | None]
    places: list[int]
    wanted: list[Array | None]
    graph: graphs.Graph

    @property
    def copied_bytes(self) -> int:
        """Bytes that `results` copies."""
        return sum(out.nbytes for place, out in zip(self.places, self.wanted)
                   if out is not None and out is not self.outs[place])

    def results(self, computed: Sequence[Any]) -> Any:
        """The result, or a tuple of several, from those of the call. Equal outputs have one array, or one tensor, and a
        copy in each further `out`."""
        results = []
        for place, out in zip(self.places, self.wanted):
            if out is not None and out is not computed[place]:
                np.copyto(out, computed[place])
            results.append(computed[place] if out is None else out)
        return results[0] if len(results) == 1 else tuple(results)


def plan_run(given: Sequence[Any], inputs: Mapping[str, Any] | None = None, keep: bool | Sequence[bool] = False,
             ttl: float | None = None, out: Any = None, free_after: Sequence[Any] = ()) -> Plan:
    """Plans the call that computes expressions, or the outputs of a program. Reads no elements. The other arguments are
    those of Client.run."""
    outputs, program = outputs_of(given)
    return _plan(outputs, program, inputs, keep, ttl, out, free_after)


def plan_stages(given: Sequence[Any], inputs: Mapping[str, Any], keep: bool | Sequence[bool], ttl: float | None, out: Any,
                free_after: Sequence[Any]) -> Generator["Plan", list[Any], Any]:
    """As plan_run, for all requests that the expressions take: `stages.run` says how it is used."""
    outputs, program = outputs_of(given)
    if program is not None and program._graph is not None:  # which has taken one request before
        plan = _plan(outputs, program, inputs, keep, ttl, out, free_after)
        return plan.results((yield plan))
    return (yield from stages.run(
        outputs, inputs, lambda first, given: _plan(first, None, given, True, _STAGE_TTL, None, ()),
        lambda last, given: _plan(last, program if last is outputs else None, given, keep, ttl, out, free_after)))


def _plan(outputs: Sequence[Expression], program: Program | None, inputs: Mapping[str, Any] | None,
          keep: bool | Sequence[bool], ttl: float | None, out: Any, free_after: Sequence[Any]) -> "Plan":
    kept, wanted = calls.keep_of(keep, ttl, out, len(outputs)), calls.outs_of(out, len(outputs))
    if len(wanted) != len(outputs):
        raise ValueError(f"out has {len(wanted)} arrays for {len(outputs)} results")
    computed, places = graphs.distinct(outputs, kept.results)
    if program and program._graph and _are_same(program._graph[0], computed):
        graph = program._graph[1]
    else:
        graph = graphs.graph_of(computed)
    if program:
        program._graph = computed, graph
    keeps, outs = [False] * len(computed), _outs(wanted, places, len(computed))
    for place, one in zip(places, kept.results):
        keeps[place] = one
    call = Call(graph.program, graph.operands(inputs or {}), calls.Keep(keeps, kept.ttl),
                free_after=calls.freed_of(free_after))
    return Plan(call, outs, places, wanted, graph)


def _are_same(a: Sequence[Expression], b: Sequence[Expression]) -> bool:
    return len(a) == len(b) and all(x is y for x, y in zip(a, b))


def plan_program(given: Sequence[Any], inputs: Mapping[str, Any] | None = None) -> Call:
    """The call of `plan_run`, for results that come as new arrays."""
    return plan_run(given, inputs).call


def _outs(wanted: Sequence[Array | None], places: Sequence[int], count: int) -> list[Array | None]:
    """For each of `count` results, the first `out` that is wanted for it. Raises ValueError if another one differs in
    shape or dtype."""
    outs: list[Array | None] = [None] * count
    for place, out in zip(places, wanted):
        first = outs[place]
        if first is None:
            outs[place] = out
        elif out is not None and out is not first:
            calls.check_out(first)
            calls.check_out(out)
            if (out.dtype, out.shape) != (first.dtype, first.shape):
                raise ValueError(f"out has {first.dtype}{list(first.shape)} and {out.dtype}{list(out.shape)} for "
                                 "results of one expression")
    return outs
