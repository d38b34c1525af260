"""A scratch folder in which the commands of pages run as they stand."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERVER, METRICS = "127.0.0.1:50051", "127.0.0.1:9400"  # as the pages have them
# As pages have it. Another one is taken, as for addresses.
SOCKET = "/tmp/warpline.sock"
# Ports that pages use beside those, for which others are taken so that tests can run beside each other.
FURTHER = ("127.0.0.1:50052", "127.0.0.1:50100", "127.0.0.1:8404")
# A block of one line that runs the daemon, which goes on if it becomes ready.
SERVE = re.compile(r"(build/release/bin/)?warplined( .*)?\n")


def blocks(page):
    """Language and text of each that is not left out."""
    found = re.finditer(r"(<!-- not run by tests: .+? -->\n)?^```(\w*)\n(.*?)^```$", page.read_text(), re.M | re.S)
    return [(language, text) for left_out, language, text in (each.groups() for each in found) if not left_out]


def matches(printed, text):
    """Whether a program printed this text, in which "..." stands for anything on its line."""
    return re.fullmatch(re.escape(text).replace(re.escape("..."), ".*"), printed) is not None


class Checkout:
    """A folder like the checkout after ./quickstart, with the programs on the PATH too, in which the latest server's
    addresses stand for the usual ones."""

    def __init__(self, folder, bin_folder):
        self.folder, self.servers, self.sessions = pathlib.Path(folder), [], []
        self.addresses = {usual: f"127.0.0.1:{free_port()}" for usual in (SERVER, METRICS, *FURTHER)}
        self.addresses[SOCKET] = str(self.folder / "warpline.sock")
        (self.folder / "build/release").mkdir(parents=True)
        (self.folder / "build/release/bin").symlink_to(bin_folder)
        for name in ("lib", "licenses"):
            (self.folder / "build/release" / name).symlink_to(pathlib.Path(bin_folder).resolve().parent / name)
        for name in ("proto", "client/python", "client/examples", "deploy"):
            shutil.copytree(ROOT / name, self.folder / name,
                            ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__", "node_modules"))
        for config in (self.folder / "deploy/haproxy").iterdir():
            config.write_text(self.with_own_addresses(config.read_text()))
        # The last one is what the Python package builds its module of.
        for name in ("CMakeLists.txt", "LICENSE", "client/include"):
            (self.folder / name).symlink_to(ROOT / name)
        local = "127.0.0.1,localhost"
        self.environment = os.environ | {
            "PATH": f"{bin_folder}:{os.environ['PATH']}",
            # README exports it, too.
            "WARPLINED": f"{bin_folder}/warplined",
            "WARPLINED_LISTEN": "127.0.0.1:0", "WARPLINED_METRICS_LISTEN": "127.0.0.1:0",
            "WARPLINED_BACKEND": os.environ.get("WARPLINE_TEST_BACKEND", "cpu"), "no_proxy": local, "NO_PROXY": local,
            "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}

    def with_own_addresses(self, text):
        for usual, own in self.addresses.items():
            text = text.replace(usual, own)
            if own.startswith("127.0.0.1:"):
                text = text.replace(usual.replace("127.0.0.1", "localhost"), own.replace("127.0.0.1", "localhost"))
        return text

    def run(self, language, text):
        """What the block prints. A server, which has a line to itself, goes on until stop()."""
        if SERVE.fullmatch(text):
            text = text.replace(SOCKET, self.addresses[SOCKET])
            return self.serve(re.sub(r"--(?:metrics-)?listen=(?!unix:)\S+|--backend=auto", "", text))
        program = {"sh": ["bash", "-eu", "-o", "pipefail", "-c"], "python": [".venv/bin/python", "-c"]}[language]
        code, printed, errors = self.end_of([*program, self.with_own_addresses(text)])
        assert code == 0, f"{text}\nended with {code}:\n{printed}{errors}"
        return printed

    def end_of(self, command):
        """Code, output and errors of a program. What it leaves in the background goes on until stop()."""
        with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
            # Files, and not pipes, which would be open for as long as the background goes on.
            process = subprocess.Popen(command, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=errors, start_new_session=True)
            self.sessions.append(process.pid)
            code = process.wait(120)
            for file in (output, errors):
                file.seek(0)
            return code, output.read(), errors.read()

    def serve(self, text):
        log = self.folder / f"log{len(self.servers)}"
        with open(log, "w") as errors:
            server = subprocess.Popen(["bash", "-c", "exec " + text], cwd=self.folder, env=self.environment, text=True,
                                      stdout=subprocess.PIPE, stderr=errors)
        self.servers.append(server)
        printed = ""
        for line in server.stdout:
            printed += line
            ready = re.fullmatch(r"READY grpc=(\S+) metrics=(\S+) backend=\S+\n", line)
            if ready:
                self.addresses |= {SERVER: ready[1], METRICS: ready[2]}
                self.environment["WARPLINE_SERVER"] = ready[1]
                return printed
        server.stdout.close()
        assert server.wait(60) == 0, f"{text}\nended with {server.returncode}:\n{printed}{log.read_text()}"
        self.servers.remove(server)
        return printed

    def stop(self):
        """All servers end well."""
        for server in self.servers:
            server.terminate()
        ends = []
        for server in self.servers:
            try:
                ends.append(server.wait(60))
            except subprocess.TimeoutExpired:
                server.kill()
                ends.append("killed")
            server.stdout.close()
        for session in self.sessions:
            end_session(session)
        assert not any(ends), ends


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def end_session(session):
    """Asks the processes that a block has left behind to end, and waits until they have."""
    for _ in range(150):
        try:
            os.killpg(session, signal.SIGTERM)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    os.killpg(session, signal.SIGKILL)


@contextlib.contextmanager
def checkout(bin_folder):
    with tempfile.TemporaryDirectory() as folder:
        made = Checkout(folder, bin_folder)
        try:
            yield made
        finally:
            made.stop()
