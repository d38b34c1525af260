"""The maps of a program: neighbouring elementwise operations become the nodes of one step, which reads each input once."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from warpline.dtypes import data_type

if TYPE_CHECKING:
    from warpline.expressions import Expression, Operation

# Limits of a map step, as in the API.
MAX_NODES = 256
MAX_INPUTS = 32
MAX_OUTPUTS = 8

# Arrays that the server creates (creation.py).
_MADE = ("index", "full")
# Operations that may be nodes of a map.
_NODES = ("map", "cast", "constant", *_MADE)


def is_node(x: "Expression") -> bool:
    """True for what is computed by a node of a map."""
    return x._operation is not None and x._operation.kind in _NODES


def _is_constant(x: "Expression") -> bool:
    return x._operation is not None and x._operation.kind == "constant"


def _joins(x: "Expression", root: "Expression") -> bool:
    """True if x may be computed in the map of `root`, which reads it: not where it would be computed several times,
    because it is broadcast there."""
    if x.name or (x._operation is not None and x._operation.variant):
        return False
    if _operation(x).kind in _MADE and root.shape is None:
        return False
    return x.shape is None or root.shape is None or x.shape == root.shape


class Group(NamedTuple):
    """What one map computes. members: in order; the last one is its result. further: members that are results, too."""

    members: list["Expression"]
    further: list["Expression"]


def groups(needed: Sequence["Expression"], outputs: Sequence["Expression"]) -> dict["Expression", Group]:
    """The maps of a program, by the results of their last nodes. needed: all expressions, in order."""
    grouping = _Grouping(needed, outputs)
    grouping.join_readers()
    if grouping.merge_results(outputs):
        grouping.join_readers()  # what only one of the merged maps read
    return {root: Group(sorted(its, key=lambda x: x._serial), grouping.further[root])
            for root, its in grouping.members.items()}


class _Grouping:
    """Maps that grow. Each is known by its root, the last of its members, and computed in the place of that one."""

    def __init__(self, needed: Sequence["Expression"], outputs: Sequence["Expression"]) -> None:
        self.nodes = [x for x in needed if is_node(x) and not _is_constant(x)]
        self.returned = set(outputs)
        self.roots = {x: x for x in self.nodes}
        self.members = {x: [x] for x in self.nodes}
        self.further: dict[Expression, list[Expression]] = {x: [] for x in self.nodes}
        self.inputs = {x: {y for y in x._inputs if not _is_constant(y)} for x in self.nodes}
        self.readers: dict[Expression, list[Expression]] = {}
        for x in needed:
            for y in x._inputs:
                self.readers.setdefault(y, []).append(x)

    def join_readers(self) -> None:
        """Computes what only one map reads in that map."""
        for x in reversed(self.nodes):
            if x in self.members and x not in self.returned:
                readers = self._maps_that_read(x)
                root = next(iter(readers)) if len(readers) == 1 else None
                if root is not None and _joins(x, root):
                    self._absorb(x, root)

    def merge_results(self, outputs: Sequence["Expression"]) -> bool:
        """Makes one map of results that read the same, or one of another, where nothing else reads the earlier one."""
        results = sorted((x for x in outputs if x in self.members and _may_be_further(x)), key=lambda x: x._serial)
        by_input: dict[Expression, list[Expression]] = {}
        for x in results:
            for y in self.inputs[x]:
                if y.shape == x.shape:
                    by_input.setdefault(y, []).append(x)
        merged = False
        for x in results:
            if len(self.further[x]) + 2 > MAX_OUTPUTS:
                continue
            # One map in place of two pays where it reads something of this size once instead of twice.
            candidates = [root for y in (x, *self.inputs[x]) for root in self._later(by_input.get(y, []), x)]
            for root in sorted(set(candidates), key=lambda root: root._serial):
                if root.shape == x.shape and not self._maps_that_read(x) - {root} and self._absorb(x, root):
                    merged = True
                    break
        return merged

    def _later(self, roots: list["Expression"], x: "Expression") -> list["Expression"]:
        """The next few maps behind x: of thousands of results, not all are tried."""
        while roots and roots[0]._serial <= x._serial:
            del roots[0]
        return roots[:MAX_OUTPUTS]

    def _maps_that_read(self, x: "Expression") -> set["Expression | None"]:
        """The roots; None among them if something else reads x, too."""
        return {self.roots.get(reader) for reader in self.readers.get(x, [])}

    def _absorb(self, x: "Expression", root: "Expression") -> bool:
        """Computes the map of x in that of `root`, if it fits."""
        further = [*self.further[x], x] if x in self.returned else self.further[x]
        reads = (self.inputs[root] | self.inputs[x]) - {x}
        count = len(self.members[root]) + len(self.members[x])
        if not _fits(count, reads) or len(self.further[root]) + len(further) + 1 > MAX_OUTPUTS:
            return False
        for member in self.members[x]:
            self.roots[member] = root
        self.members[root] += self.members.pop(x)
        self.further[root] += further
        self.inputs[root] = reads
        return True


def _fits(count: int, inputs: set["Expression"]) -> bool:
    """True if so many expressions may be one map: each has a node, and two constants at most."""
    return len(inputs) <= MAX_INPUTS and 3 * count < MAX_NODES


def _may_be_further(x: "Expression") -> bool:
    """True if x may be one of several results of a map: what has a name or a variant is a step of its own."""
    return x.shape is not None and not x.name and not _operation(x).variant


class Map(NamedTuple):
    """A map step. inputs: what it reads. fields: its message."""

    inputs: list["Expression"]
    fields: dict[str, Any]


def map_of(group: Group, names: Mapping["Expression", str]) -> Map:
    """The map of a group. names: those of its further results."""
    members = group.members
    inside = set(members)
    inputs: dict[Expression, int] = {}
    constants: dict[str, Any] = {}
    for x in members:
        for y in x._inputs:
            if _is_constant(y):
                constants.setdefault(_operation(y).fields["text"], y)
            elif y not in inside:
                inputs.setdefault(y, len(inputs))
    nodes: list[Mapping[str, Any]] = []
    places: dict[Any, int] = dict(inputs)
    for text, x in constants.items():
        places[text] = len(inputs) + len(nodes)
        nodes.append(_constant_node(_operation(x).fields))
    for x in members:
        operation = _operation(x)
        node: dict[str, Any] = {"operands": [places[_operation(y).fields["text"] if _is_constant(y) else y]
                                             for y in x._inputs]}
        if operation.kind == "cast":
            node |= {"op": "MAP_OP_CAST", "data_type": operation.fields["data_type"]}
        elif operation.kind == "full":  # a cast of its constant, which changes nothing
            assert x.dtype is not None
            node |= {"op": "MAP_OP_CAST", "data_type": data_type(x.dtype)}
        elif operation.kind == "index":
            assert x.dtype is not None
            node |= {"op": "MAP_OP_INDEX", "data_type": data_type(x.dtype), "integer": operation.fields["axis"]}
        else:
            node["op"] = f"MAP_OP_{operation.fields['op'].upper()}"
        places[x] = len(inputs) + len(nodes)
        nodes.append(node)
    fields: dict[str, Any] = {"nodes": nodes}
    if any(_operation(x).kind in _MADE for x in members):
        fields["shape"] = list(members[-1].shape or ())
    if group.further:
        fields["outputs"] = [{"name": names[x], "node": places[x] - len(inputs)} for x in group.further]
    return Map(list(inputs), fields)


def _operation(x: "Expression") -> "Operation":
    assert x._operation is not None
    return x._operation


def _constant_node(fields: Mapping[str, Any]) -> dict[str, Any]:
    node = {"op": "MAP_OP_CONSTANT", "data_type": fields["dtype"]}
    for name in ("integer", "real", "imag"):
        if name in fields:
            value = fields[name]
            node[name] = value if name == "integer" or np.isfinite(value) else {np.inf: "Infinity", -np.inf:
                                                                              "-Infinity"}.get(value, "NaN")
    return node
