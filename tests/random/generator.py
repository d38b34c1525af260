"""Random programs, each determined by one integer."""

import choose_map
import choose_moves
import choose_numbers
from builder import Builder
from value import Unsuitable

CHOICES = choose_moves.CHOICES | choose_numbers.CHOICES | choose_map.CHOICES
KINDS = list(CHOICES)
WEIGHTS = [weight for _, weight in CHOICES.values()]


def generate(seed, variants=None):
    """Returns the program of the seed. `variants`: names by operation, as GetInfo lists them."""
    b = Builder(seed, variants or {})
    count = b.rng.choice([2, 3, 4, 5, 6, 7, 8, 10, 12, 15])
    for _ in range(20 * count):
        if len(b.program.steps) == count:
            break
        choose = CHOICES[b.rng.choices(KINDS, WEIGHTS)[0]][0]
        try:
            choose(b)
        except Unsuitable:
            pass
    choose_outputs(b)
    return b.program


def choose_outputs(b):
    """Returns what no step reads, and some of the rest."""
    program = b.program
    read = {name for step in program.steps for name in step.inputs}
    results = [name for step in program.steps for name in step.results]
    program.outputs = [name for name in results if name not in read or b.chance(0.25)]
    program.prune()
    b.rng.shuffle(program.outputs)
    finals = any(b.values[name].final for name in program.outputs)
    for name in program.outputs:
        if b.chance(0.12):
            program.sinks[name] = "resident" if finals or b.chance(0.6) else "stream"
    program.reproducible, program.report, program.free_after = b.chance(0.08), b.chance(0.1), b.chance(0.5)
