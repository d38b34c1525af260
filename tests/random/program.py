"""A program and its inputs: what one Run request says, in a form that can be printed and cut down."""

import copy
import dataclasses

import numpy as np

import reference
from value import Value


@dataclasses.dataclass
class Input:
    type: str
    data: np.ndarray
    row_stride: int = 0      # 0: dense rows
    tail: bool = False       # the padding after the last row is sent, too
    place: str = "inline"    # or "put": a resident tensor, or "sink": the resident result of a call before
    odd_bools: bool = False  # true bools are any bytes but 0


@dataclasses.dataclass
class Step:
    name: str
    kind: str  # the field of the operation in the message Step
    inputs: list
    fields: dict  # those of the operation's message
    variant: str = ""

    @property
    def results(self):
        """The names of its results, its own first."""
        further = [output["name"] for output in self.fields.get("outputs", [])]
        return [self.name, *further, *filter(None, [self.fields.get("indices", "")])]


@dataclasses.dataclass
class Program:
    seed: int
    inputs: dict = dataclasses.field(default_factory=dict)
    steps: list = dataclasses.field(default_factory=list)
    outputs: list = dataclasses.field(default_factory=list)
    sinks: dict = dataclasses.field(default_factory=dict)  # "resident" or "stream", by output
    reproducible: bool = False
    report: bool = False
    free_after: bool = False  # resident inputs are dropped by the request itself

    def copy(self):
        """A copy whose steps can be changed. The elements of inputs are shared."""
        inputs = {name: dataclasses.replace(i) for name, i in self.inputs.items()}
        return dataclasses.replace(self, inputs=inputs, steps=copy.deepcopy(self.steps), outputs=list(self.outputs),
                                   sinks=dict(self.sinks))

    def without_variants(self):
        plain = self.copy()
        for step in plain.steps:
            step.variant = ""
        return plain

    def values(self):
        """The reference values of all inputs and results, by name."""
        values = {name: Value(i.type, i.data) for name, i in self.inputs.items()}
        for step in self.steps:
            values.update(zip(step.results, reference.results(step, [values[name] for name in step.inputs])))
        return values

    def prune(self):
        """Drops steps and inputs that no output needs. Results that would be unread become outputs."""
        needed, kept = set(self.outputs), []
        for step in reversed(self.steps):
            if needed.isdisjoint(step.results):
                continue
            kept.append(step)
            needed.update(step.inputs)
        self.steps = kept[::-1]
        self.inputs = {name: i for name, i in self.inputs.items() if name in needed}
        read = {name for step in self.steps for name in step.inputs}
        for step in self.steps:
            self.outputs += [name for name in step.results if name not in read and name not in self.outputs]
        self.sinks = {name: place for name, place in self.sinks.items() if name in self.outputs}

    def step_of(self, result):
        return next(step for step in self.steps if result in step.results)

    def lines(self):
        """The program as text."""
        values = self.values()
        for name, i in self.inputs.items():
            notes = [f"row stride {i.row_stride}{' with tail' if i.tail else ''}"] if i.row_stride else []
            notes += [{"put": "resident", "sink": "resident result"}[i.place]] if i.place != "inline" else []
            notes += ["odd bools"] if i.odd_bools else []
            yield f"{name} = input {values[name]}{''.join(f', {note}' for note in notes)}: {elements(i.data)}"
        for step in self.steps:
            fields = ", ".join(f"{k}={v}" for k, v in step.fields.items())
            variant = f' by "{step.variant}"' if step.variant else ""
            results = ", ".join(f"{name}: {values[name]}" for name in step.results)
            yield f"{results} = {step.kind}({', '.join(step.inputs)}; {fields}){variant}"
        yield "outputs: " + ", ".join(f"{name} ({self.sinks[name]})" if name in self.sinks else name for name in self.outputs)
        options = [name for name in ("reproducible", "report", "free_after") if getattr(self, name)]
        if options:
            yield f"options: {', '.join(options)}"


def elements(data, limit=40):
    """The elements as text; only the first of many."""
    if data.size <= limit:
        return repr(data.tolist())
    return f"{data.ravel()[:limit].tolist()} and {data.size - limit} more"
