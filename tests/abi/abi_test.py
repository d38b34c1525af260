"""libwarpline.so.0 and its header: what it exports, a test program in C, and the example.

abi_test.py WARPLINED LIBRARY TEST EXAMPLE
"""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

WARPLINED, LIBRARY, TEST, EXAMPLE = sys.argv[1:5]
ROOT = Path(__file__).resolve().parents[2]
HEADER = ROOT / "client/include/warpline/warpline.h"
SECONDS = 300


class ExportsTest(unittest.TestCase):
    def test_exactly_the_functions_of_the_header(self):
        declared = set(re.findall(r"\b(warpline_\w+)\(", re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)))
        lines = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout
        exported = {line.split()[-1] for line in lines.splitlines()}
        self.assertGreater(len(declared), 40)
        self.assertEqual(exported, declared)


class DaemonTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.address = f"unix:{folder.name}/socket"
        self.daemon = subprocess.Popen(
            [WARPLINED, f"--listen={self.address}", "--metrics-listen=", "--backend=cpu", "--grace=5s"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(self.end)
        self.assertIn("READY", self.daemon.stdout.readline())

    def end(self):
        self.daemon.terminate()
        self.daemon.wait(SECONDS)
        self.daemon.stdout.close()

    def run_with_daemon(self, program):
        return subprocess.run([program, self.address], capture_output=True, text=True, timeout=SECONDS)

    def test_the_test_program(self):
        ended = self.run_with_daemon(TEST)
        self.assertEqual((ended.returncode, ended.stdout), (0, "all passed\n"), ended.stderr)

    def test_the_example(self):
        ended = self.run_with_daemon(EXAMPLE)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertRegex(ended.stdout, r"transpose\(x\), by \w+ of cpu: 1 4 2 5 3 6\n"
                                       r"reduce.*: 50 70 90\nwhat was put: 1 2 3 4 5 6\n")
        lines = (ROOT / "client/examples/c/example.c").read_text().count("\n")
        self.assertLessEqual(lines, 80)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
