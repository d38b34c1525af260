"""Tests of a whole run of random programs, with a fake daemon that makes mistakes.

    runner_test.py
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import grpc  # noqa: F401
    import numpy  # noqa: F401
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "deploy"))
import api as api_module  # noqa: E402  of tests/deploy

DESCRIPTORS = api_module.descriptor_set(".")
if DESCRIPTORS is None:
    print("skipped: no protoc")
    sys.exit(77)


def run(mistake="", *arguments):
    """Runs the test of programs with a fake daemon. Returns its exit code and its output."""
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, api_module.FILE_NAME).write_bytes(DESCRIPTORS)
        daemon = pathlib.Path(folder, "warplined")
        # The trap makes SIGTERM a good end, as it is of the daemon.
        daemon.write_text(f"#!/bin/bash\n{sys.executable} -B {HERE}/fake_daemon.py --descriptors={folder}/{api_module.FILE_NAME}"
                          f" {mistake} \"$@\" &\npid=$!\ntrap 'kill $pid; exit 0' TERM\nwait $pid\n")
        daemon.chmod(0o755)
        done = subprocess.run([sys.executable, "-B", HERE / "programs_test.py", folder, "--processes", "2", *arguments],
                              capture_output=True, text=True, timeout=300, env=os.environ)
        return done.returncode, done.stdout + done.stderr


class RunnerTest(unittest.TestCase):
    def test_right_answers(self):
        code, output = run("", "--programs", "60")
        self.assertEqual(code, 0, output)
        self.assertIn("60 programs", output)

    def test_a_wrong_result_is_cut_down(self):
        code, output = run("--wrong=scale", "--programs", "60")
        self.assertEqual(code, 1, output)
        self.assertIn("steps to 1: ", output)
        self.assertIn(" = scale(", output)
        self.assertIn("--programs 1", output)

    def test_a_daemon_that_ends_is_noticed(self):
        code, output = run("--dies=argsort", "--programs", "60")
        self.assertEqual(code, 1, output)
        self.assertIn("In flight were the programs of the seeds [", output)
        self.assertIn("steps to 1: the daemon ended with code 3", output)
        self.assertIn(" = argsort(", output)

    def test_a_long_run_must_meet_everything(self):
        code, output = run("", "--programs", "1")
        self.assertEqual(code, 0, output)
        sys.path.insert(0, str(HERE))
        from tally import Tally
        tally = Tally()
        tally.counts["programs"] = 500
        self.assertIn("outputs gemm", tally.missed())


if __name__ == "__main__":
    unittest.main()
