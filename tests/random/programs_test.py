"""Random programs give what NumPy gives, on either backend.

    programs_test.py BIN_DIR [--programs N] [--seed S] [--backend cpu|cuda] [--server ADDR] [--seconds MAX]

Each program is determined by its seed: those of a run are S, S + 1 and so on. A program that fails is cut down to
the steps that matter, and printed with the command that repeats it. If the daemon ends, the programs in flight are
run again one by one to find the one that did it.
"""

import argparse
import multiprocessing
import os
import pathlib
import queue as queues
import subprocess
import sys
import tempfile
import time

try:
    import google.protobuf
    import grpc
    import numpy
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "deploy"))
import api as api_module  # noqa: E402  of tests/deploy
from caller import Caller, CallFailed  # noqa: E402
from comparison import problems  # noqa: E402
from cutter import cut_down  # noqa: E402
from daemon import Daemon  # noqa: E402  of tests/deploy
from generator import generate  # noqa: E402
from tally import Tally  # noqa: E402
from worker import IN_FLIGHT, NO_SEED, work  # noqa: E402

MAX_PRINTED = 3  # programs that are cut down
MAX_PROCESSES = 32
ATTEMPTS = 3     # of a program that does not fail at once when it runs alone
SECONDS_TO_END = 20  # until a daemon that answers no more has ended, with what it writes then


class Server:
    """A daemon of ours, which can be started again, or a server that is there."""

    def __init__(self, arguments, folder):
        self.arguments, self.log, self.daemon = arguments, f"{folder}/log", None
        self.start()

    def start(self):
        if self.arguments.server:
            self.address = self.arguments.server
            return
        self.daemon = Daemon(os.path.join(self.arguments.bin_dir, "warplined"), f"--backend={self.arguments.backend}",
                             "--resident-bytes=256M", "--max-inline-bytes=64M", log=self.log)
        self.address = self.daemon.address

    def is_lost(self):
        return self.daemon is not None and self.daemon.process.poll() is not None

    def restart(self):
        """Starts a new daemon in place of one that is lost, and returns how it ended."""
        if self.daemon is None:
            sys.exit("the server is gone")
        try:
            text = f"the daemon ended with code {self.daemon.process.wait(SECONDS_TO_END)}"
        except subprocess.TimeoutExpired:
            self.daemon.kill()
            text = "the daemon was UNAVAILABLE, but did not end"
        self.start()
        return text

    def stop(self):
        """Returns what is wrong with the end of the daemon, or None."""
        if self.daemon is None:
            return None
        code = self.daemon.stop()
        return None if code == 0 else f"the daemon ends with code {code}"

    def last_lines(self, count=40):
        return [] if self.daemon is None else self.daemon.log_lines()[-count:]


class Alone:
    """Runs programs one at a time, and notices if they end the daemon."""

    def __init__(self, api, server):
        self.api, self.server = api, server
        self.caller = Caller(api, server.address)

    def fails(self, program):
        """How a program fails, or None."""
        try:
            values = program.values()
        except Exception:  # noqa: BLE001  it has been cut too far
            return None
        try:
            results, variants = self.caller.run(program)
            return "\n".join(problems(program, values, results, variants)) or None
        except AssertionError as error:
            return str(error)
        except CallFailed as error:
            if not error.is_lost:
                return self.fails(program.without_variants()) if error.is_variant else str(error)
        self.caller.close()
        text = self.server.restart()
        self.caller = Caller(self.api, self.server.address)
        return text

    def often(self, program):
        """The same for a program that may fail by chance."""
        return next((text for text in (self.fails(program) for _ in range(ATTEMPTS)) if text), None)


class Run:
    """Processes that share the seeds of a run."""

    def __init__(self, arguments, descriptors, server, variants):
        self.server, self.tally, self.failures, self.lost = server, Tally(), [], False
        count = min(MAX_PROCESSES, arguments.processes or os.cpu_count() or 1, arguments.programs)
        context = multiprocessing.get_context("spawn")
        self.queue, self.stop = context.Queue(), context.Event()
        self.slots = [context.Array("q", [NO_SEED] * IN_FLIGHT, lock=False) for _ in range(count)]
        end = time.monotonic() + (arguments.seconds or 1e9)
        last = arguments.seed + arguments.programs
        self.processes = [context.Process(target=work, daemon=True, args=(
            descriptors, server.address, variants, range(arguments.seed + i, last, count), self.slots[i], self.stop, end,
            self.queue)) for i in range(count)]

    def wait(self):
        """Until all are done, or the server is lost."""
        for process in self.processes:
            process.start()
        open_ = len(self.processes)
        while open_ and not self.lost:
            try:
                what, seed, content = self.queue.get(timeout=0.2)
            except queues.Empty:
                self.lost = self.server.is_lost()
                if not any(process.is_alive() for process in self.processes) and self.queue.empty():
                    self.failures.append((NO_SEED, "a process of this test has ended early"))
                    break
                continue
            if what == "done":
                self.tally.merge(content)
                open_ -= 1
            elif what == "lost":
                self.lost = True
            else:
                self.failures.append((seed, content))
                self.stop.set()
        for process in self.processes:
            if self.lost:
                process.terminate()
            process.join()

    def in_flight(self):
        """The seeds in flight, in order."""
        return sorted(seed for slots in self.slots for seed in slots if seed != NO_SEED)


def explain(alone, seed, text, variants, command):
    """Prints a failing program, cut down, and how to repeat it."""
    try:
        program = generate(seed, variants)
    except Exception:  # noqa: BLE001  it has been printed before, as the text
        program = None
    if seed == NO_SEED or program is None:
        print(f"Seed {seed}: {text}")
        return
    cut, found = cut_down(program, alone.often)
    print(f"\nThe program of seed {seed} fails: {text}" if text else f"\nThe program of seed {seed} ends the daemon.")
    if found is None:
        print("It does not fail when it runs alone.")
    else:
        print(f"Cut down from {len(program.steps)} steps to {len(cut.steps)}: {found}")
    print("\n".join(f"  {line}" for line in cut.lines()))
    print(f"To repeat it: {command} --seed {seed} --programs 1", flush=True)


def explain_loss(alone, seeds, variants, command):
    """Finds the programs that end the daemon among those that were in flight."""
    print(f"The server is lost. In flight were the programs of the seeds {seeds}.")
    if alone.server.daemon is None:
        return
    lines = alone.server.last_lines()
    print("\n".join([f"  {line}" for line in lines] + [alone.server.restart()]))
    alone.caller = Caller(alone.api, alone.server.address)
    guilty = [seed for seed in seeds if alone.often(generate(seed, variants))]
    for seed in guilty[:MAX_PRINTED]:
        explain(alone, seed, None, variants, command)
    if not guilty:
        print("None of them ends it when it runs alone.")


def test(arguments, folder):
    """Returns what is wrong, as texts."""
    descriptors = api_module.descriptor_set(arguments.bin_dir)
    if descriptors is None:
        api_module.load(arguments.bin_dir)  # exits
    api = api_module.Api(descriptors)
    server = Server(arguments, folder)
    alone = Alone(api, server)
    variants = alone.caller.variants()
    command = f"{sys.argv[0]} {arguments.bin_dir} --backend {arguments.backend}"
    begun = time.monotonic()
    run = Run(arguments, descriptors, server, variants)
    run.wait()
    seconds = time.monotonic() - begun
    wrong = [f"the program of seed {seed} fails" for seed, _ in run.failures]
    if run.lost:
        wrong.append("the server was lost")
        explain_loss(alone, run.in_flight(), variants, command)
    for seed, text in sorted(run.failures)[:MAX_PRINTED]:
        explain(alone, seed, text, variants, command)
    if not run.lost:  # its processes had no time to say what they have compared
        print("\n".join(run.tally.table(variants)))
    print(f"{seconds:.1f} s in {len(run.processes)} processes")
    if not wrong:
        missed = run.tally.missed()
        wrong += [f"never compared: {', '.join(missed)}"] if missed and not arguments.seconds else []
        left = alone.caller.left()
        wrong += [f"{left} resident tensors are left"] if left and not arguments.server else []
    alone.caller.close()
    ended = server.stop()
    return wrong + ([ended] if ended else [])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_dir")
    parser.add_argument("--programs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--backend", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--server", help="address of a server that is there; its tensors of others are left alone")
    parser.add_argument("--seconds", type=float, help="no program begins later")
    parser.add_argument("--processes", type=int, help="default: one for each CPU core")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wrong = test(arguments, folder)
    print("\n".join(wrong))
    print(f"gRPC {grpc.__version__}, NumPy {numpy.__version__}, protobuf {google.protobuf.__version__}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
