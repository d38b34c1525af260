"""The steps that compute some expressions, as the server gets them."""

import json
import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from warpline import core, free, maps
from warpline.arrays import AnyOperand, operand_of
from warpline.dtypes import DTYPES
from warpline.expressions import Expression
from warpline.residents import ResidentOperand

if TYPE_CHECKING:
    from warpline.programs import Program


def common(programs: Sequence["Program"]) -> "Program | None":
    """The single program among `programs`, ignoring free.program; None if there are several."""
    found = {program for program in programs if program is not free.program}
    return None if len(found) > 1 else found.pop() if found else free.program


def dtype_of(number: str) -> np.dtype[Any] | None:
    """The dtype of a data type of the API; None for the operation's default, ""."""
    return DTYPES.get(number)


class Graph(NamedTuple):
    """The steps that compute some expressions, and their inputs."""

    program: core.Program
    # The inputs with their names, in the order in which they are sent.
    inputs: list[tuple[str, Expression]]
    # The steps by name, in order.
    steps: dict[str, Expression]

    def operands(self, given: Mapping[str, Any]) -> list[tuple[str, AnyOperand]]:
        """The operands to send, with `given` for placeholders. Raises TypeError for unknown and missing names, and for
        elements whose type is not the placeholder's."""
        names = [name for name, x in self.inputs if x._operand is None]
        if set(names) != set(given):
            raise TypeError(f"the placeholders are {names or 'none'}, given are {list(given) or 'none'}")
        operands = []
        for name, x in self.inputs:
            value = given.get(name)
            if isinstance(value, Expression):
                raise TypeError(f"placeholder {name!r} takes an array or a resident tensor, not {value}, which is to "
                                "be computed first: run(e, keep=True) gives a tensor; or put it into the program "
                                "instead of the placeholder")
            operand = operand_of(value, any_order=False) if x._operand is None else x._operand
            if x._dtype is not None and dtype_of(operand.data_type) != x._dtype:
                raise TypeError(f"placeholder {name!r} takes {x._dtype}, not {dtype_of(operand.data_type)}")
            if x._operand is None and x._shape is not None and operand.shape != x._shape:
                raise ValueError(f"placeholder {name!r} takes an array of shape {x._shape}, not {operand.shape}")
            operands.append((name, operand))
        return operands


def tensor_in(expression: Expression) -> Any:
    """A resident tensor that the expression reads or was made like, whose client can compute it; None if there is none."""
    todo = [expression]
    while todo:
        for node in needed([todo.pop()]):
            if isinstance(node._operand, ResidentOperand):
                return node._operand.tensor
            if isinstance(node._near, Expression):
                todo.append(node._near)
            elif node._near is not None:
                return node._near
    return None


_serial = operator.attrgetter("_serial")


def needed(outputs: Sequence[Expression]) -> list[Expression]:
    """All expressions that the given ones depend on, in an order in which they can be computed."""
    needed: set[Expression] = set()
    todo = list(outputs)
    while todo:
        x = todo.pop()
        if x not in needed:
            needed.add(x)
            todo += x._inputs
    return sorted(needed, key=_serial)


class _Steps(NamedTuple):
    """The steps of a graph, without its expressions: each is known by its place among those that are needed."""

    program: core.Program
    inputs: list[tuple[str, int]]
    steps: list[tuple[str, int]]


# The steps of graphs that were alike, of which a loop makes many. Forgotten all at once when they are too many.
_made: dict[Any, _Steps] = {}
_MADE_MAX = 512


def graph_of(outputs: Sequence[Expression]) -> Graph:
    if common([x.program for x in outputs]) is None:
        raise ValueError(f"of {', '.join(map(str, outputs))} one belongs to another program")
    for x in outputs:
        if x._operation is None:
            raise ValueError(f"{x} is an input, of which there is nothing to compute: the elements of a resident "
                             "tensor are what t.numpy() gives, or np.asarray(t)")
    nodes = needed(outputs)
    places = {x: i for i, x in enumerate(nodes)}
    key = (tuple([(x._kept_signature(), *[places[y] for y in x._inputs]) for x in nodes]), *[places[x] for x in outputs])
    made = _made.get(key)
    if made is None:
        made = _steps_of(nodes, places, outputs)
        if len(_made) >= _MADE_MAX:
            _made.clear()
        _made[key] = made
    return Graph(made.program, [(name, nodes[i]) for name, i in made.inputs], {name: nodes[i] for name, i in made.steps})


def _steps_of(nodes: Sequence[Expression], places: Mapping[Expression, int], outputs: Sequence[Expression]) -> _Steps:
    given = [x.name for x in nodes if x.name]
    if len(set(given)) < len(given):
        raise ValueError(f"of the names {', '.join(given)} some are alike; a placeholder that is used several times is "
                         "one object: x = placeholder(...)")
    # Generated names depend only on the graph, so the server recognizes a repeated program.
    names: dict[Expression, str] = {}
    taken = set(given)
    of_nodes = maps.groups(nodes, outputs)
    further = {x for group in of_nodes.values() for x in group.further}
    made = [x for x in nodes if x in of_nodes or not maps.is_node(x)]
    for i, x in enumerate(x for x in nodes if x in further or x in of_nodes or not maps.is_node(x)):
        name = x.name or f"{x._operation.label if x._operation else 'x'}{i}"
        while not x.name and name in taken:
            name += "_"
        taken.add(name)
        names[x] = name
    further_of: dict[Expression, Expression] = {}  # the places that a step gives beside its elements
    for x in made:
        if x._operation is not None and x._operation.kind == "further":
            further_of.setdefault(x._inputs[0], x)
    steps: list[tuple[str, int]] = []
    messages = []
    for x in made:
        if x._operation is None:
            continue
        kind, fields, variant = x._operation
        inputs = list(x._inputs)
        if kind == "further":
            if further_of[inputs[0]] is x:
                continue  # the step that it belongs to has named it
            kind, inputs, fields = "cast", [further_of[inputs[0]]], {"data_type": "DATA_TYPE_I64"}
        elif x in further_of:
            fields = {**fields, "indices": names[further_of[x]]}
        if x in of_nodes and (kind != "cast" or len(of_nodes[x].members) > 1):  # a cast alone is a step of its own
            kind, (inputs, fields) = "map", maps.map_of(of_nodes[x], names)
        steps.append((names[x], places[x]))
        messages.append({"name": names[x], "inputs": [names[y] for y in inputs], "variant": variant, kind: fields})
    message = {"steps": messages, "outputs": [names[x] for x in outputs]}
    return _Steps(core.program(json.dumps(message)), [(names[x], places[x]) for x in made if x._operation is None], steps)


def distinct(outputs: Sequence[Expression], kept: Sequence[bool]) -> tuple[list[Expression], list[int]]:
    """The expressions to compute, and for each output its place among them. kept: for each output, true if it stays on
    the server."""
    found: dict[Any, int] = {}
    computed: list[Expression] = []
    places = []
    for x, keep in zip(outputs, kept):
        value = x._value()
        if (value, keep) not in found:
            found[value, keep] = len(computed)
            # One step has one result, so another one is made for a result that is both kept and sent.
            twin = Expression(x.program, "", x._inputs, x._operation, dtype=x.dtype)
            computed.append(twin if (value, not keep) in found else x)
        places.append(found[value, keep])
    return computed, places
