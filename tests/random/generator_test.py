"""Tests of the random programs themselves: wrong results are noticed, and failing programs are cut down.

    generator_test.py

Needs NumPy only: the server is the reference, with a mistake in steps of one kind.
"""

import sys
import unittest

try:
    import numpy as np
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

import reference
from comparison import problem, problems
from cutter import cut_down
from element_types import TYPES, cast, encoded, rounded, to_bf16
from generator import KINDS, generate
from program import Input, Program, Step
from value import Value, differences, inexact

SEEDS = range(60)


class Result:
    """A tensor in the form in which a server sends it."""

    def __init__(self, value):
        self.type, self.shape, self.content = value.type, value.shape, encoded(value.type, value.data)


def spoilt(value):
    """The value with its first element changed."""
    if value.data.size == 0:
        return value
    data = np.array(value.data, order="C")
    first = data.reshape(-1)[:1]
    changed = np.logical_not(first) if value.kind == "b" else np.where(first == 1, first.dtype.type(2), first.dtype.type(1))
    data.reshape(-1)[:1] = changed
    return Value(value.type, data, final=value.final)


def results(program, is_wrong):
    """Returns the answer of a server with a mistake. `is_wrong` says which steps have it."""
    values = {name: Value(i.type, i.data) for name, i in program.inputs.items()}
    for step in program.steps:
        found = reference.results(step, [values[name] for name in step.inputs])
        if is_wrong(program, step):
            found[0] = spoilt(found[0])
        values.update(zip(step.results, found))
    return {name: Result(values[name]) for name in program.outputs}


def fails_with(is_wrong):
    def fails(program):
        try:
            sent = results(program, is_wrong)
        except Exception as error:  # noqa: BLE001  a later step cannot read the wrong value
            return str(error)
        return "\n".join(problems(program, program.values(), sent, [None] * len(program.steps))) or None
    return fails


class GeneratorTest(unittest.TestCase):
    def test_a_seed_determines_its_program(self):
        for seed in SEEDS:
            first, second = generate(seed), generate(seed)
            self.assertEqual(list(first.lines()), list(second.lines()))
            self.assertLessEqual(len(first.steps), 15)

    def test_programs_have_steps_of_all_kinds(self):
        kinds = {step.kind for seed in SEEDS for step in generate(seed).steps}
        self.assertEqual(kinds, set(KINDS))

    def test_right_answers_are_accepted(self):
        for seed in SEEDS:
            self.assertIsNone(fails_with(lambda *_: False)(generate(seed)))

    def test_variants_are_drawn_from_those_of_the_server(self):
        variants = {"map": ["one", "two"]}
        named = {step.variant for seed in range(200) for step in generate(seed, variants).steps if step.variant}
        self.assertEqual(named, {"one", "two"})


class CutterTest(unittest.TestCase):
    def cut(self, kind, is_wrong, steps):
        fails = fails_with(is_wrong)
        for seed in range(500):
            program = generate(seed)
            if any(step.kind == kind for step in program.steps) and fails(program):
                cut, text = cut_down(program, fails)
                self.assertEqual([step.kind for step in cut.steps], steps, "\n".join(cut.lines()))
                self.assertTrue(text)
                self.assertFalse(cut.sinks or any(i.row_stride or i.place != "inline" for i in cut.inputs.values()))
                return
        self.fail(f"no program fails with a wrong {kind}")

    def test_a_wrong_step_is_all_that_is_left(self):
        for kind in KINDS:
            with self.subTest(kind=kind):
                self.cut(kind, lambda _, step, wrong=kind: step.kind == wrong, [kind])

    def test_two_steps_that_fail_together_are_left(self):
        def is_wrong(program, step):
            before = {s.name for s in program.steps if s.kind == "slice"}
            return step.kind == "map" and not before.isdisjoint(step.inputs)
        self.cut("map", is_wrong, ["slice", "map"])

    def test_a_map_ends_with_its_wrong_node(self):
        node = {"op": "MAP_OP_ADD", "operands": [0, 0]}
        negative = {"op": "MAP_OP_NEGATIVE", "operands": [1]}
        step = Step("s0", "map", ["x"], {"nodes": [node, negative, {"op": "MAP_OP_ABS", "operands": [2]}]})
        program = Program(0, {"x": Input("i32", np.arange(6, dtype="i4"))}, [step], ["s0"])
        cut, _ = cut_down(program, lambda p: "wrong" if negative in p.steps[0].fields["nodes"] else None)
        self.assertEqual(len(cut.steps[0].fields["nodes"]), 2)

    def test_a_program_that_does_not_fail_again_stays_whole(self):
        program = generate(1)
        cut, text = cut_down(program, lambda _: None)
        self.assertIs(cut, program)
        self.assertIsNone(text)


class ComparisonTest(unittest.TestCase):
    def test_one_wrong_element_is_noticed(self):
        for name, t in TYPES.items():
            value = Value(name, np.ones((2, 3), t.held))
            self.assertIsNone(problem("y", value, Result(value), True))
            self.assertIn("1 of 6 elements are wrong", problem("y", value, Result(spoilt(value)), True))

    def test_type_shape_and_bools_are_noticed(self):
        value = Value("bool", np.ones((2, 3), bool))
        other = Result(value)
        other.shape = (3, 2)
        self.assertIn("want bool[2, 3]", problem("y", value, other, True))
        other = Result(value)
        other.content = b"\2" * 6
        self.assertIn("neither", problem("y", value, other, True))
        self.assertIsNone(problem("y", value, other, False))

    def test_errors_are_bounded(self):
        value = inexact("f32", np.array([1.0, np.inf, np.nan]), np.full(3, 1e-6))
        near = np.array([1.0 + 9e-7, np.inf, np.nan], "f4")
        self.assertFalse(differences(value, near).any())
        self.assertEqual(differences(value, near + np.float32(1e-5)).tolist(), [True, False, False])
        self.assertTrue(differences(value, np.array([1.0, 3.0, 0.0], "f4"))[1:].all())


class RoundingTest(unittest.TestCase):
    def test_bf16(self):
        # Halfway between two numbers, and a little beyond, which f32 does not see.
        pairs = (1 + 2**-8, 1.0), (1 + 2**-8 + 2**-40, 1 + 2**-7), (3.4e38, np.inf), (-0.0, -0.0), (2.0**-133, 2.0**-133)
        for wide, want in pairs:
            self.assertEqual(float(to_bf16(np.float64(wide))), want)
        self.assertTrue(np.isnan(to_bf16(np.float64("nan"))))

    def test_casts_saturate(self):
        x = np.array([np.nan, np.inf, -np.inf, 300.7, -300.7, 1e30, -2.5])
        self.assertEqual(cast(x, "f64", "i8").tolist(), [0, 127, -128, 127, -128, 127, -2])
        self.assertEqual(cast(x, "f64", "u64").tolist(), [0, 2**64 - 1, 0, 300, 0, 2**64 - 1, 0])
        self.assertEqual(cast(x, "f64", "i64").tolist(), [0, 2**63 - 1, -2**63, 300, -300, 2**63 - 1, -2])
        self.assertEqual(cast(np.array([-1, 300]), "i64", "u8").tolist(), [255, 44])
        self.assertEqual(rounded("f16", np.array([65519.0, 65520.0])).tolist(), [65504.0, np.inf])


if __name__ == "__main__":
    unittest.main()
