"""A process that makes programs, sends them, and compares the answers."""

import collections
import pathlib
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "deploy"))
import api as api_module  # noqa: E402  of tests/deploy
from caller import Caller, CallFailed  # noqa: E402
from comparison import problems  # noqa: E402
from generator import generate  # noqa: E402
from tally import Tally  # noqa: E402

IN_FLIGHT = 4
MAX_FAILURES = 3  # of one process, which stops then
NO_SEED = -1
PATIENCE_SECONDS = 30  # until there is room for a program


def answer(caller, program, running, tally):
    """Waits for the answer, and returns the program that has run: without variants, if one does not suit. A program
    that other processes leave no room for comes again."""
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return program, *(caller.finish(running) if running else caller.run(program))
        except CallFailed as error:
            running = None
            if error.is_variant and any(step.variant for step in program.steps):
                tally.counts["refused"] += 1
                program = program.without_variants()
            elif error.is_full and time.monotonic() < end:
                time.sleep(0.02)
            else:
                raise


def check(caller, program, values, running, tally):
    """Returns what is wrong with the answer, as a text, or None. Raises CallFailed if the server is gone."""
    try:
        program, results, variants = answer(caller, program, running, tally)
    except CallFailed as error:
        if error.is_lost:
            raise
        return str(error)
    except AssertionError as error:
        return str(error)
    found = problems(program, values, results, variants)
    if not found:
        tally.add(program, values)
    return "\n".join(found) or None


def work(descriptors, address, variants, seeds, slots, stop, end, queue):
    """Runs the programs of the seeds. `slots` shows the seeds in flight to the process that has started this one."""
    tally, failures, running = Tally(), 0, collections.deque()
    seed = NO_SEED

    def finish_first():
        nonlocal failures
        number, program, values, call = running.popleft()
        text = check(caller, program, values, call, tally)
        slots[number % IN_FLIGHT] = NO_SEED
        if text:
            failures += 1
            queue.put(("failure", program.seed, text))

    try:
        caller = Caller(api_module.Api(descriptors), address)
        for number, seed in enumerate(seeds):
            if stop.is_set() or failures >= MAX_FAILURES or time.monotonic() > end:
                break
            program = generate(seed, variants)
            values = program.values()
            if len(running) == IN_FLIGHT:
                finish_first()
            slots[number % IN_FLIGHT] = seed
            running.append((number, program, values, caller.begin(program)))
        while running:
            finish_first()
        caller.close()
    except CallFailed as error:
        queue.put(("lost" if error.is_lost else "failure", seed, str(error)))
    except Exception:  # noqa: BLE001  a defect of the generator: the seed is needed to find it
        queue.put(("failure", seed, traceback.format_exc()))
    queue.put(("done", None, tally))
