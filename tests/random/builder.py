"""A program while it grows: its values so far, and the operands that a new step can have."""

import random

import numpy as np

import reference
from element_types import FLOATS, NUMBERS, TYPES
from program import Input, Program, Step
from random_data import MAX_ELEMENTS, MAX_RANK, array, choose_shape, choose_style
from value import Unsuitable, Value

# The operation of GetInfo whose variants the steps take. Others take none.
OPERATION_OF = {"transpose": "transpose", "gemm": "gemm", "reduce": "reduce", "map": "map", "cast": "map", "scale": "map",
                "add": "map", "take": "take", "take_along_axis": "take", "put_along_axis": "put", "scan": "scan", "sort": "sort",
                "argsort": "sort", "topk": "sort", "searchsorted": "search", "compress": "compress"}


class Builder:
    def __init__(self, seed, variants):
        self.rng = random.Random(seed)
        self.data_rng = np.random.default_rng(seed)
        self.variants = variants  # names by operation
        self.program = Program(seed)
        self.values = {}
        self.large = self.chance(0.15)
        self.style = choose_style(self.rng)
        # Few, so that steps find operands.
        self.types = [*self.rng.sample(FLOATS, 2), *self.rng.sample(NUMBERS, 2)]

    def chance(self, probability):
        return self.rng.random() < probability

    def choose_type(self, types):
        """One of the program's own types, if it can be."""
        own = [t for t in self.types if t in types]
        return self.rng.choice(own if own and self.chance(0.8) else list(types))

    def shape(self, rank=None, limit=MAX_ELEMENTS):
        return choose_shape(self.rng, self.large, rank, limit)

    def fresh(self, type_, shape, style=None, data=None):
        """The name of a new input."""
        name = f"x{len(self.program.inputs)}"
        if data is None:
            data = array(self.data_rng, type_, tuple(shape), style or (self.style if self.chance(0.8) else "small"))
        data = np.asarray(data, TYPES[type_].held)
        given = Input(type_, data)
        if self.chance(0.25) and data.ndim and data.size:
            given.row_stride = data.shape[-1] + self.rng.choice([0, 1, 3, 8])
            given.tail = self.chance(0.5)
        if self.chance(0.12) and data.size:
            given.place, given.row_stride = self.rng.choice(["put", "sink"]), 0
        given.odd_bools = type_ == "bool" and self.chance(0.5)
        self.program.inputs[name] = given
        self.values[name] = Value(type_, data)
        return name

    def existing(self, suits, chance=0.85):
        """The name of a value that suits, mostly one of the last results. None if there is none, and at times."""
        if not self.chance(chance):
            return None
        names = [name for name, v in self.values.items() if not v.final and suits(v)]
        results = [name for name in names if name not in self.program.inputs]
        names = results if results and self.chance(0.8) else names
        return names[-1 - int(len(names) * self.rng.random() ** 2)] if names else None

    def operand(self, types, rank=None, min_rank=0, max_rank=MAX_RANK, exact=False, limit=MAX_ELEMENTS):
        """The name of a value of one of these types: one that there is, or a new input."""
        def suits(v):
            return (v.type in types and (v.exact or not exact) and min_rank <= v.data.ndim <= max_rank
                    and rank in (None, v.data.ndim) and v.data.size <= limit)
        name = self.existing(suits)
        if name:
            return name
        for _ in range(20):
            shape = self.shape(rank, limit)
            if min_rank <= len(shape) <= max_rank:
                return self.fresh(self.choose_type(types), shape)
        return self.fresh(self.choose_type(types), self.shape(max(min_rank, 1), limit))

    def like(self, type_, shape, exact=False):
        """The name of a value of exactly this shape."""
        found = self.existing(lambda v: v.type == type_ and v.shape == tuple(shape) and (v.exact or not exact))
        return found or self.fresh(type_, shape)

    def smaller(self, shape):
        """A shape that is broadcast to this one."""
        cut = tuple(shape[self.rng.randrange(len(shape) + 1):]) if self.chance(0.4) else tuple(shape)
        return tuple(1 if self.chance(0.25) else n for n in cut)

    def broadcastable(self, type_, shape, exact=False):
        """The name of a value of this type that is broadcast to the shape."""
        def fits(v):
            tail = shape[len(shape) - v.data.ndim:]
            return (v.type == type_ and v.data.ndim <= len(shape) and (v.exact or not exact)
                    and all(n in (1, m) for n, m in zip(v.shape, tail)))
        return self.existing(fits) or self.fresh(type_, self.smaller(shape))

    def axis(self, rank):
        return self.rng.randrange(-rank, rank)

    def axes(self, rank, count=None):
        """Different axes in any order, some of them negative."""
        count = self.rng.randrange(rank + 1) if count is None else count
        return [axis - rank if self.chance(0.4) else axis for axis in self.rng.sample(range(rank), count)]

    def add(self, kind, inputs, fields):
        """Adds a step. Raises Unsuitable if its results are too large, or if nothing is promised about them."""
        step = Step(f"s{len(self.program.steps)}", kind, list(inputs), fields)
        draw, place = self.rng.random(), self.rng.random()
        names = self.variants.get(OPERATION_OF.get(kind), [])
        if draw < 0.06 and names:
            step.variant = names[int(place * len(names))]
        values = reference.results(step, [self.values[name] for name in inputs])
        if any(v.data.size > MAX_ELEMENTS or v.data.ndim > MAX_RANK for v in values):
            raise Unsuitable("too large")
        self.program.steps.append(step)
        self.values.update(zip(step.results, values))

    def further_name(self, suffix):
        """The name of a further result of the step that is added next."""
        return f"s{len(self.program.steps)}.{suffix}"
