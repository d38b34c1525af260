"""Programs that take several requests: what goes on after a mask, whose result has a size that only the server knows then,
and programs of more steps than one request may have. Results between the requests stay on the server."""

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from warpline import elementwise, graphs, maps
from warpline.expressions import Expression

if TYPE_CHECKING:
    from warpline.plans import Plan

# Steps and inputs of a request, as in the API, and how many of the steps the earlier of two requests takes.
_MAX_STEPS, _MAX_INPUTS, _CUT_STEPS = 256, 128, 200
_FEW = 32  # results that may cross from one request to the next without looking for a better place to cut


def early(outputs: Sequence[Expression], copies: Collection[Expression] = ()) -> list[Expression]:
    """The expressions that a request of its own computes first, for the others to read; none if one request does all.

    copies: outputs that only copy what earlier requests have computed: the last request makes them.
    """
    needed = [x for x in graphs.needed(outputs) if x not in copies]
    if len(needed) <= _MAX_INPUTS and not any(map(_is_unsized, needed)):
        return []
    # These read a result whose size is not known before, at any distance.
    late: set[Expression] = set()
    for x in needed:
        if any(y in late or _is_unsized(y) for y in x._inputs):
            late.add(x)
    if not late:
        late = _beyond_one_request(needed, outputs)
    if not late:
        return []
    read = {y for x in late for y in x._inputs}
    wanted = read.union(outputs)
    return [x for x in needed if x not in late and x in wanted and x._operation is not None and not _is_made(x)]


def replaced(outputs: Sequence[Expression], tensors: Mapping[Expression, Any]) -> list[Expression]:
    """The outputs, with tensors in place of expressions that have been computed."""
    now: dict[Expression, Expression] = {}
    for x in graphs.needed(outputs):
        if x in tensors:
            now[x] = x.program._expression(tensors[x])
            continue
        inputs = [now[y] for y in x._inputs]
        if all(a is b for a, b in zip(inputs, x._inputs)):
            now[x] = x
        else:
            now[x] = Expression(x.program, x.name, inputs, x._operation, dtype=x.dtype)
    return [now[x] for x in outputs]


def run(outputs: Sequence[Expression], inputs: Mapping[str, Any], plan: Callable[..., "Plan"],
        last: Callable[[Sequence[Expression], Mapping[str, Any]], "Plan"]) -> "Generator[Plan, list[Any], Any]":
    """The plans of the requests, each of which is sent the results of its request. Returns the results of the last.

    plan: of expressions whose results stay on the server. last: of the given outputs, as the caller wants them.
    """
    first = early(outputs)
    if not first:
        final = last(outputs, inputs)
        return final.results((yield final))
    _check_names(outputs, inputs)
    copies: dict[Expression, Expression] = {}
    while first:
        part = plan(first, _of(first, inputs))
        kept = part.results((yield part))
        tensors = dict(zip(first, kept if isinstance(kept, tuple) else (kept,)))
        # An output that is computed already is copied, since it may be wanted as an array or as another tensor.
        outputs = [x if x._operation is not None else copies.setdefault(x, elementwise.positive(x))
                   for x in replaced(outputs, tensors)]
        first = early(outputs, set(copies.values()))
    final = last(outputs, _of(outputs, inputs))
    return final.results((yield final))


def _is_unsized(x: Expression) -> bool:
    return x._operation is not None and x._operation.kind == "compress"


def _is_further(x: Expression) -> bool:
    return x._operation is not None and x._operation.kind == "further"


def _is_made(x: Expression) -> bool:
    """True for what costs nothing to make again, such as arrays of one number."""
    return x._operation is not None and x._operation.kind in ("constant", "full", "index")


def _beyond_one_request(needed: Sequence[Expression], outputs: Sequence[Expression]) -> set[Expression]:
    """Returns what the first request leaves to others; nothing if all steps fit into one request."""
    groups = maps.groups(needed, outputs)
    steps = [x for x in needed if x._operation is not None and (x in groups or not maps.is_node(x)) and not _is_further(x)]
    if len(steps) <= _MAX_STEPS and sum(x._operation is None for x in needed) <= _MAX_INPUTS:
        return set()
    members = {x: list(groups[x].members) if x in groups else [x] for x in steps}
    for x in filter(_is_further, needed):  # belongs to the step whose second result it is
        members[x._inputs[0]].append(x)
    cut = _cut([members[step] for step in steps], outputs)
    return {x for step in steps[cut:] for x in members[step]}


def _cut(steps: Sequence[Sequence[Expression]], outputs: Sequence[Expression]) -> int:
    """Counts the steps that the first request takes: as many as may be, but where few results cross to the next one."""
    last = {x: len(steps) for x in outputs}  # the step that reads a value last
    for i, members in reversed(list(enumerate(steps))):
        for x in members:
            for y in x._inputs:
                last.setdefault(y, i)
    read: set[Expression] = set()
    open_values: set[Expression] = set()
    best, fewest = 1, len(steps) + 1
    for i, members in enumerate(steps[:_CUT_STEPS]):
        read.update(y for x in members for y in x._inputs if y._operation is None)
        if len(read) > _MAX_INPUTS and i > 0:
            break
        open_values.update(members)
        open_values = {x for x in open_values if last.get(x, -1) > i}
        if len(open_values) <= max(fewest, _FEW):
            best, fewest = i + 1, len(open_values)
    return best


def _names(outputs: Sequence[Expression]) -> list[str]:
    return [x.name for x in graphs.needed(outputs) if x._operation is None and x._operand is None]


def _of(outputs: Sequence[Expression], inputs: Mapping[str, Any]) -> dict[str, Any]:
    names = set(_names(outputs))
    return {name: x for name, x in inputs.items() if name in names}


def _check_names(outputs: Sequence[Expression], inputs: Mapping[str, Any]) -> None:
    names = _names(outputs)
    if set(names) != set(inputs):
        raise TypeError(f"the placeholders are {names or 'none'}, given are {list(inputs) or 'none'}")
