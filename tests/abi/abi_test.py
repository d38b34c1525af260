"""libwarpline.so.0 and its header: what it exports, two test programs in C, and the example.

abi_test.py WARPLINED LIBRARY TEST MANY_CLIENTS EXAMPLE

$WARPLINE_ABI_CLIENTS is how many clients come and go: 1,000 by default, which takes some seconds, and 10,000 with
`quickstart test --full`. In builds with a sanitizer the daemon and the programs look for mistakes and leaks, too.
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

WARPLINED, LIBRARY, TEST, MANY_CLIENTS, EXAMPLE = sys.argv[1:6]
CLIENTS = os.environ.get("WARPLINE_ABI_CLIENTS", "1000")
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
        self.unix = f"unix:{folder.name}/socket"
        self.regions = f"{folder.name}/socket.regions"
        self.log = f"{folder.name}/log"
        with open(self.log, "w") as log:
            self.daemon = subprocess.Popen(
                [WARPLINED, f"--listen={self.unix},127.0.0.1:0", "--metrics-listen=", "--backend=cpu", "--grace=5s"],
                stdout=subprocess.PIPE, stderr=log, text=True)
        self.addCleanup(self.end)
        ready = re.match(r"READY grpc=(\S+)", self.daemon.stdout.readline())
        self.assertTrue(ready, self.logged())
        self.tcp = next(address for address in ready[1].split(",") if not address.startswith("unix:"))

    def logged(self):
        return Path(self.log).read_text(errors="replace")

    def end(self):
        """The daemon ends well. A sanitizer that has found a mistake or a leak would have it end otherwise."""
        self.daemon.terminate()
        code = self.daemon.wait(SECONDS)
        self.daemon.stdout.close()
        self.assertEqual(code, 0, self.logged())

    def run_program(self, *command):
        return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=SECONDS)

    def test_the_test_program(self):
        ended = self.run_program(TEST, self.unix)
        self.assertEqual((ended.returncode, ended.stdout), (0, "all passed\n"), ended.stderr)

    def test_clients_that_come_and_go_leave_nothing(self):
        ended = self.run_program(MANY_CLIENTS, CLIENTS, self.daemon.pid, self.regions, self.unix, self.tcp)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        print(f"{CLIENTS} clients: {ended.stdout}", end="")

    def test_the_example(self):
        ended = self.run_program(EXAMPLE, self.unix)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertRegex(ended.stdout, r"transpose\(x\), by \w+ of cpu: 1 4 2 5 3 6\n"
                                       r"reduce.*: 50 70 90\nwhat was put: 1 2 3 4 5 6\n")
        lines = (ROOT / "client/examples/c/example.c").read_text().count("\n")
        self.assertLessEqual(lines, 80)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
