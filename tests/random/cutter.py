"""Cuts a failing program down to what matters."""

import dataclasses

import numpy as np

from program import Input


def as_input(value):
    return Input(value.type, np.array(value.data, order="C"))


def alone(program, step, values):
    """The step with inputs of its own, which hold the reference values."""
    cut = program.copy()
    cut.steps = [s for s in cut.steps if s.name == step.name]
    cut.inputs = {name: cut.inputs.get(name) or as_input(values[name]) for name in step.inputs}
    cut.outputs = [name for name in step.results]
    cut.prune()
    return cut


def without_step(program, step, values):
    """The program with inputs in place of the results of a step. None if it has no other outputs."""
    cut = program.copy()
    cut.steps = [s for s in cut.steps if s.name != step.name]
    cut.outputs = [name for name in cut.outputs if name not in step.results]
    for name in step.results:
        if not values[name].final:
            cut.inputs[name] = as_input(values[name])
    cut.prune()
    return cut if cut.outputs else None


def with_outputs(program, outputs):
    cut = program.copy()
    cut.outputs = list(outputs)
    cut.prune()
    return cut


def smaller_maps(program):
    """Programs of one map, with one of its nodes as the last one."""
    map_ = program.steps[0]
    if len(program.steps) > 1 or map_.kind != "map":
        return
    count, nodes = len(map_.inputs), map_.fields["nodes"]
    for last in range(len(nodes) - 1):
        needed = {count + last}
        for i in range(last, -1, -1):
            if count + i in needed:
                needed.update(nodes[i].get("operands", []))
        kept = sorted(needed)
        number = {old: new for new, old in enumerate(kept)}
        cut = program.copy()
        step = cut.steps[0]
        step.inputs = [name for i, name in enumerate(map_.inputs) if i in needed]
        step.fields = {"nodes": [node | ({"operands": [number[o] for o in node["operands"]]} if "operands" in node else {})
                                 for i, node in enumerate(nodes) if count + i in needed]}
        shape = list(program.values()[map_.name].shape)
        step.fields |= {"shape": shape} if shape else {}
        cut.outputs = [step.name]
        cut.prune()
        yield cut


def plainer(program):
    """The program with one of its options left out."""
    for name in ("reproducible", "report", "free_after"):
        if getattr(program, name):
            yield dataclasses.replace(program.copy(), **{name: False})
    for name in program.sinks:
        yield dataclasses.replace(program.copy(), sinks={n: place for n, place in program.sinks.items() if n != name})
    for i, step in enumerate(program.steps):
        if step.variant:
            cut = program.copy()
            cut.steps[i].variant = ""
            yield cut
    for name, given in program.inputs.items():
        for field, plain in (("row_stride", 0), ("place", "inline"), ("odd_bools", False)):
            if getattr(given, field) != plain:
                cut = program.copy()
                cut.inputs[name] = dataclasses.replace(given, **{field: plain})
                yield cut


def size(program):
    return (len(program.steps), len(program.outputs), len(program.inputs),
            sum(len(step.fields.get("nodes", [])) for step in program.steps))


def candidates(program):
    """Smaller programs, those first that leave most out."""
    values = program.values()
    if len(program.steps) > 1:
        for step in reversed(program.steps):
            yield alone(program, step, values)
    for name in program.outputs:
        yield with_outputs(program, [name])
    for step in program.steps:
        yield without_step(program, step, values)
    for name in program.outputs:
        yield with_outputs(program, [n for n in program.outputs if n != name])
    yield from smaller_maps(program)


def cut_down(program, fails):
    """Returns a program that still fails, of which nothing more can be left out, and how it fails.

    `fails` returns a text, or None for a program that does not fail.
    """
    text = fails(program)
    if text is None:
        return program, None
    shrinking = True
    while shrinking:
        shrinking = False
        for choose, is_smaller in ((candidates, lambda cut: size(cut) < size(program)), (plainer, lambda _: True)):
            for cut in choose(program):
                found = fails(cut) if cut is not None and cut.outputs and is_smaller(cut) else None
                if found is not None:
                    program, text, shrinking = cut, found, True
                    break
            if shrinking:
                break
    return program, text
