"""Random maps: expressions of several nodes, with further results."""

import numpy as np

from element_types import COMPLEX, FLOATS, INTEGERS, NUMBERS, REAL, TYPES, api_name
from map_operations import EXACT, ROUNDED
from reference_map import Nodes
from value import Unsuitable

# Powers and shifts that matter, and those that are out of range.
SMALL = (0, 1, 2, 3, 5, 7)


class MapBuilder:
    def __init__(self, b):
        self.b, self.rng = b, b.rng
        self.inputs, self.nodes = [], []
        self.shape = self.choose_inputs()
        self.values = Nodes([b.values[name] for name in self.inputs], self.shape)

    def choose_inputs(self):
        """Chooses inputs that are broadcast to one shape, and returns it."""
        b = self.b
        if b.chance(0.06):
            return b.shape()
        first = b.operand(NUMBERS, exact=True)
        shape = b.values[first].shape
        if b.chance(0.15) and len(shape) < 8:
            shape = (b.rng.choice([1, 2, 3]), *shape)
        self.inputs.append(first)
        for _ in range(b.rng.choice([0, 0, 1, 1, 2, 3])):
            type_ = b.values[first].type if b.chance(0.6) else b.choose_type(NUMBERS)
            name = b.broadcastable(type_, shape, exact=True)
            if name not in self.inputs:
                self.inputs.append(name)
        return shape

    def add(self, op, operands=(), type_=None, **fields):
        """Adds a node, and returns its number among the values. Raises Unsuitable."""
        node = {"op": f"MAP_OP_{op.upper()}", **({"operands": list(operands)} if operands else {}), **fields}
        self.values.add(node, type_)
        self.nodes.append(node)
        return len(self.values.values) - 1

    def readable(self, types=None):
        """Numbers of the values that nodes can read: all that are exact. Constants without a type have one reader."""
        return [i for i, v in enumerate(self.values.values)
                if v.exact and (types is None or v.type in types) and not self.is_untyped(i)]

    def is_constant(self, i):
        return i >= len(self.inputs) and self.nodes[i - len(self.inputs)]["op"] == "MAP_OP_CONSTANT"

    def is_untyped(self, i):
        return self.is_constant(i) and "data_type" not in self.nodes[i - len(self.inputs)]

    def constant(self, type_, named=True):
        t, fields = TYPES[type_], {"data_type": api_name(type_)} if named else {}
        if t.kind in "bui":
            numbers = [0, 1] if t.kind == "b" else [*SMALL, int(t.greatest)] + [-1, -2, t.least] * (t.kind == "i")
            number = self.rng.choice(numbers)
            number -= 2**64 if number >= 2**63 else 0  # u64 takes it modulo 2^64
            fields |= {"integer": number} if number else {}
        elif not named and self.rng.random() < 0.5:
            fields |= {"integer": self.rng.choice([1, 2, -3, 10])}
        else:
            fields |= {"real": self.rng.choice([1.0, 2.0, -1.0, 0.5, 3.0, -2.5, 0.3, 1e30, float("inf"), float("nan")])}
            fields |= {"imag": self.rng.choice([1.0, -2.0, 0.5])} if t.kind == "c" else {}
        return self.add("constant", (), type_, **fields)

    def operand(self, type_, first):
        """The number of a value of a type; `first` is an operand of the same node, which has it."""
        found = self.readable([type_])
        draw = self.rng.random()
        if found and draw < 0.7:
            return self.rng.choice(found)
        others = self.readable(COMPLEX if type_ in COMPLEX else REAL)
        if others and draw < 0.8:
            return self.add("cast", [self.rng.choice(others)], data_type=api_name(type_))
        return self.constant(type_, named=self.is_constant(first) or self.rng.random() < 0.6)

    def leaf(self):
        """A constant or an index, for maps without inputs."""
        if self.shape and self.rng.random() < 0.5:
            type_ = self.rng.choice(["i32", "i64"])
            axis = self.b.axis(len(self.shape))
            return self.add("index", (), type_, data_type=api_name(type_), **({"integer": axis} if axis else {}))
        return self.constant(self.b.choose_type(NUMBERS))

    def node(self, rounded):
        if not self.readable() or self.rng.random() < 0.06:
            self.leaf()
        places = (self.readable([*FLOATS, *COMPLEX]) if rounded else []) or self.readable()
        first = places[-1 - int(len(places) * self.rng.random() ** 2)]
        type_ = self.values.values[first].type
        operations = [o for o in (ROUNDED if rounded else EXACT) if o.takes_type(type_)]
        if not operations:
            raise Unsuitable("no operation takes the type")
        op = self.rng.choice(operations)
        if op.name == "cast":
            types = [*COMPLEX, "bool"] if type_ in COMPLEX else NUMBERS
            return self.add("cast", [first], data_type=api_name(self.b.choose_type(types)))
        condition = []
        if op.name == "where":
            bools = self.readable(["bool"])
            condition = [self.rng.choice(bools)] if bools else [self.add("not_equal", [first, first])]
        if op.name == "pow" and type_ in INTEGERS:
            # A constant negative power is refused.
            exponents = [i for i in self.readable([type_]) if i < len(self.inputs)]
            return self.add("pow", [first, self.rng.choice(exponents)] if exponents else [first, self.unsigned(type_)])
        count = op.operands - len(condition)
        operands = [first, *[self.operand(type_, first) for _ in range(count - 1)]]
        self.rng.shuffle(operands)
        fields = {"data_type": api_name(op.result_type(type_))} if self.rng.random() < 0.2 else {}
        return self.add(op.name, condition + operands, **fields)

    def unsigned(self, type_):
        number = self.rng.choice(SMALL)
        return self.add("constant", (), type_, data_type=api_name(type_), **({"integer": number} if number else {}))

    def finished(self):
        """The inputs and fields, without what no result needs. None if nothing is left."""
        count = len(self.inputs)
        results = [i for i in range(len(self.nodes)) if not self.is_untyped(count + i)]
        if not results:
            raise Unsuitable("no node")
        last = results[-1]
        further = sorted(self.rng.sample(results[:-1], min(len(results) - 1, self.rng.choice([0, 0, 0, 1, 2, 7]))))
        needed = {count + i for i in (last, *further)}
        for i in range(last, -1, -1):
            if count + i in needed:
                needed.update(self.nodes[i].get("operands", []))
        kept = [i for i in range(count + last + 1) if i in needed]
        number = {old: new for new, old in enumerate(kept)}
        inputs = [self.inputs[i] for i in kept if i < count]
        nodes = [dict(self.nodes[i - count]) for i in kept if i >= count]
        for node in nodes:
            if "operands" in node:
                node["operands"] = [number[o] for o in node["operands"]]
        fields = {"nodes": nodes}
        natural = np.broadcast_shapes(*[self.b.values[name].shape for name in inputs])
        if natural != tuple(self.shape) or (self.shape and self.b.chance(0.1)):
            fields["shape"] = list(self.shape)
        outputs = [{"name": self.b.further_name(f"y{k}"), "node": number[count + i] - len(inputs)} for k, i in enumerate(further)]
        return inputs, fields | ({"outputs": outputs} if outputs else {})


def map_(b):
    m = MapBuilder(b)
    for _ in range(b.rng.choice([1, 2, 3, 4, 6, 9, 16])):
        try:
            m.node(rounded=b.chance(0.2))
        except Unsuitable:
            pass
    inputs, fields = m.finished()
    b.add("map", inputs, fields)


CHOICES = {"map": (map_, 24)}
