"""Counts what a run has compared, and says what it has missed."""

import collections

import numpy as np

from builder import OPERATION_OF
from choose_numbers import REDUCTIONS
from element_types import TYPES
from generator import KINDS
from map_operations import OPERATIONS
from random_data import MAX_RANK

ENOUGH_PROGRAMS = 500  # a run of so many must meet everything


class Tally:
    def __init__(self):
        self.counts = collections.Counter()

    def add(self, program, values):
        """Counts a program whose results have been compared."""
        self.counts["programs"] += 1
        for step in program.steps:
            self.counts["steps", step.kind] += 1
            if step.kind == "reduce":
                self.counts["operation", step.fields["op"]] += 1
            for node in step.fields.get("nodes", []):
                self.counts["operation", node["op"]] += 1
            if step.variant:
                self.counts["variant", f"{OPERATION_OF[step.kind]} {step.variant}"] += 1
        for name in program.outputs:
            value, kind = values[name], program.step_of(name).kind
            self.counts["outputs", kind] += 1
            self.counts["elements"] += value.data.size
            self.counts["rank", value.data.ndim] += 1
            self.counts["type", value.type] += 1
            self.counts["inexact"] += not value.exact
            self.counts["unbound"] += 0 if value.exact else int(np.isinf(value.error).sum())
        self.counts["resident inputs"] += sum(given.place != "inline" for given in program.inputs.values())
        self.counts["inputs with padded rows"] += sum(given.row_stride > 0 for given in program.inputs.values())
        self.counts["results with a sink"] += len(program.sinks)

    def merge(self, other):
        self.counts.update(other.counts)

    def different(self, what):
        return sum(key[0] == what for key in self.counts if isinstance(key, tuple))

    def table(self, variants):
        """Lines of text. `variants`: names by operation."""
        yield f"{'step':16} {'steps':>8} {'outputs':>8}"
        for kind in sorted(KINDS):
            yield f"{kind:16} {self.counts['steps', kind]:8} {self.counts['outputs', kind]:8}"
        total = {what: sum(n for key, n in self.counts.items() if key[0] == what) for what in ("steps", "outputs")}
        yield f"{'all':16} {total['steps']:8} {total['outputs']:8}"
        yield (f"{self.counts['programs']} programs, {self.counts['elements']} elements of outputs; {self.counts['inexact']} "
               f"outputs with a tolerance, and {self.counts['unbound']} elements that may be anything")
        total = sum(len(names) for operation, names in variants.items() if operation in OPERATION_OF.values())
        yield (f"{self.different('variant')} of {total} variants ran by their names; {self.counts['refused']} programs named some "
               "that did not suit, and ran without them")
        yield (f"{self.different('operation')} of {len(OPERATIONS) + len(REDUCTIONS) + 2} operations of maps and reductions, "
               f"{self.different('type')} of {len(TYPES)} data types, ranks {self.ranks()}")
        places = ("resident inputs", "inputs with padded rows", "results with a sink")
        yield ", ".join(f"{self.counts[name]} {name}" for name in places)

    def ranks(self):
        return ", ".join(str(rank) for rank in range(MAX_RANK + 1) if self.counts["rank", rank])

    def missed(self):
        """Names what a long run must meet and this one has never compared."""
        if self.counts["programs"] < ENOUGH_PROGRAMS:
            return []
        wanted = [("outputs", kind) for kind in KINDS] + [("rank", rank) for rank in range(MAX_RANK + 1)]
        wanted += [("type", name) for name in TYPES]
        return [f"{what} {name}" for what, name in wanted if not self.counts[what, name]]
