"""The systemd unit: it is valid and closed, its configuration is one that the daemon takes, and the daemon tells a
service manager when it serves and when it stops. Arguments: the daemon. What needs systemd-analyze is skipped
without it."""

import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "systemd"
WARPLINED = None


def seconds(text):
    return float(re.fullmatch(r"(\d+)s?", text)[1])


class UnitTest(unittest.TestCase):
    SOURCE = "warplined.service"

    def unit_value(self, name):
        return re.search(rf"^{name}=(.*)$", (FOLDER / self.SOURCE).read_text(), re.M)[1]

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        # As installed, but for the paths.
        self.unit = pathlib.Path(self.folder.name) / self.SOURCE.replace("@", "@0")
        self.unit.write_text((FOLDER / self.SOURCE).read_text()
                             .replace("/usr/local/bin/warplined", str(WARPLINED))
                             .replace("/etc/warpline/", f"{FOLDER}/"))

    def analyze(self, *arguments):
        if shutil.which("systemd-analyze") is None:
            self.skipTest("needs systemd-analyze")
        done = subprocess.run(["systemd-analyze", *arguments, str(self.unit)], capture_output=True, text=True,
                              timeout=60)
        return done.returncode, done.stdout + done.stderr

    def test_systemd_takes_it_without_a_word(self):
        code, text = self.analyze("verify", "--man=no")
        own = [line for line in text.splitlines() if self.unit.name in line]
        self.assertEqual((code, own), (0, []), text)

    def test_it_takes_the_addition_to_haproxys_too(self):
        # As Debian's haproxy installs it.
        proxy = pathlib.Path("/lib/systemd/system/haproxy.service")
        if not proxy.exists():
            self.skipTest("needs haproxy")
        addition = pathlib.Path(self.folder.name) / "haproxy.service.d" / "warpline.conf"
        addition.parent.mkdir()
        shutil.copy(FOLDER / "haproxy.service.d" / "warpline.conf", addition)
        shutil.copy(proxy, self.folder.name)
        self.unit = self.unit.with_name("haproxy.service")
        code, text = self.analyze("verify", "--man=no")
        own = [line for line in text.splitlines() if "haproxy" in line]
        self.assertEqual((code, own), (0, []), text)
        self.assertIn("Environment=CONFIG=/etc/warpline/edge.cfg\n", addition.read_text())
        code, text = self.analyze("security", "--offline=true", "--threshold=30")
        self.assertEqual(code, 0, text)

    def test_it_is_exposed_no_more_than_it_needs(self):
        # Of 10, as systemd reckons it: 2.0 and less is "OK". What is left are the network and the devices.
        code, text = self.analyze("security", "--offline=true", "--threshold=20")
        self.assertEqual(code, 0, text)

    def test_it_waits_longer_for_the_end_than_the_daemon_for_its_calls(self):
        grace = re.search(r'^grace = "(.*)"$', (FOLDER / "warplined.toml").read_text(), re.M)[1]
        self.assertGreater(seconds(self.unit_value("TimeoutStopSec")), seconds(grace) + 2)


class TemplateTest(UnitTest):
    """The unit of one daemon for each GPU: all that holds for the other one, which it must not grow apart from."""

    SOURCE = "warplined@.service"

    def test_only_what_an_instance_needs_differs(self):
        def lines(name):
            text = (FOLDER / name).read_text().splitlines()
            return [line for line in text if line and not line.startswith("#")]

        own, common = lines(self.SOURCE), lines(UnitTest.SOURCE)
        self.assertEqual([line for line in common if line not in own],
                         ["Description=warpline GPU kernel server", "RuntimeDirectory=warpline"])
        self.assertEqual([line for line in own if line not in common],
                         ["Description=warpline GPU kernel server on GPU %i", "Environment=CUDA_DEVICE_ORDER=PCI_BUS_ID",
                          "Environment=CUDA_VISIBLE_DEVICES=%i", "Environment=WARPLINED_BACKEND=cuda",
                          "Environment=WARPLINED_LISTEN=unix:/run/warpline-%i/grpc",
                          "Environment=WARPLINED_METRICS_LISTEN=127.0.0.1:0", "EnvironmentFile=-/etc/warpline/warplined@%i.env",
                          "RuntimeDirectory=warpline-%i"])

    def test_the_daemon_takes_its_environment_before_the_common_file(self):
        text = (FOLDER / self.SOURCE).read_text().replace("%i", "1")
        environment = dict(re.findall(r"^Environment=(\w+)=(.*)$", text, re.M))
        done = subprocess.run([WARPLINED, "--check-config", f"--config={FOLDER}/warplined.toml"], capture_output=True,
                              text=True, timeout=60, env={**os.environ, **environment})
        self.assertEqual(done.returncode, 0, done.stderr)
        for line in ('listen = "unix:/run/warpline-1/grpc"', 'metrics-listen = "127.0.0.1:0"', 'backend = "cuda"'):
            self.assertIn(line, done.stdout)


class ConfigTest(unittest.TestCase):
    def check(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(text)
            file.flush()
            return subprocess.run([WARPLINED, "--check-config", f"--config={file.name}"], capture_output=True,
                                  text=True, timeout=60)

    def test_the_daemon_takes_it(self):
        done = self.check((FOLDER / "warplined.toml").read_text())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('listen = "127.0.0.1:50051,unix:/run/warpline/grpc"', done.stdout)
        self.assertIn("the configuration is valid", done.stderr)

    def test_the_daemon_knows_every_example_in_it(self):
        text = (FOLDER / "warplined.toml").read_text()
        names = re.findall(r"^(?:# )?([a-z-]+) = ", text, re.M)
        self.assertGreater(len(names), 10)
        # Files that are not there are named at once; everything before was read.
        done = self.check(re.sub(r"^# ([a-z-]+ = )", r"\1", text, flags=re.M))
        for name in names:
            self.assertIn(f"\n{name} = ", "\n" + done.stdout, done.stderr)
        self.assertEqual(done.returncode, 2)
        self.assertIn("/etc/warpline/server.crt", done.stderr)

    def test_a_mistake_ends_with_2_and_its_line(self):
        done = self.check("lanes = 4\nlane = 4\n")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r":2: lane: unknown setting; did you mean lanes\?")


class NotifyTest(unittest.TestCase):
    def life(self, path):
        """What a daemon whose service manager listens on `path` says from its start to SIGTERM."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind("\0" + path[1:] if path[0] == "@" else path)
            manager.settimeout(60)
            daemon = subprocess.Popen([WARPLINED, "--listen=127.0.0.1:0", "--metrics-listen=", "--backend=cpu"],
                                      env={**os.environ, "NOTIFY_SOCKET": path}, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL)
            try:
                said = [manager.recv(1000)]
                daemon.send_signal(signal.SIGTERM)
                said.append(manager.recv(1000))
                self.assertEqual(daemon.wait(60), 0)
                return said
            finally:
                daemon.kill()
                daemon.wait()

    def test_it_says_when_it_serves_and_when_it_stops(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.life(f"{folder}/notify"), [b"READY=1", b"STOPPING=1"])

    def test_the_socket_may_have_an_abstract_name(self):
        self.assertEqual(self.life(f"@warpline-test-{os.getpid()}"), [b"READY=1", b"STOPPING=1"])

    def test_a_manager_that_does_not_listen_is_logged_and_no_more(self):
        daemon = subprocess.Popen([WARPLINED, "--listen=127.0.0.1:0", "--metrics-listen=", "--backend=cpu"],
                                  env={**os.environ, "NOTIFY_SOCKET": "/nowhere/notify"}, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
        self.assertRegex(daemon.stdout.readline(), "^READY ")
        daemon.send_signal(signal.SIGTERM)
        _, log = daemon.communicate(timeout=60)
        self.assertEqual(daemon.returncode, 0)
        self.assertIn("the service manager was not told", log)
        self.assertIn("$NOTIFY_SOCKET=/nowhere/notify", log)


if __name__ == "__main__":
    WARPLINED = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
