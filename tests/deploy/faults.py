"""What the tests of faults have in common: a place for daemons and clients, and how a call has ended."""

import collections
import contextlib
import os
import socket
import subprocess
import sys
import threading
import time

import grpc
import numpy as np

import warpline
from daemon import Daemon, wait_until
from dashboard import ROOT

MIB = 1 << 20
OPTIONS = [("grpc.enable_http_proxy", 0), ("grpc.enable_retries", 0), ("grpc.use_local_subchannel_pool", 1),
           ("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1),
           ("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 500)]
KERNELS = "/warpline.v1.KernelService/"


class Skipped(Exception):
    """The fault cannot be caused here."""


def check(holds, what):
    if not holds:
        sys.exit(f"it is not so that {what}")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Scene:
    """Where a fault happens. Public: folder, for its files."""

    def __init__(self, warplined, folder):
        self.folder, self._warplined, self._begun = folder, os.path.abspath(warplined), time.monotonic()

    def daemon(self, *flags, send_timeout="2s", **options):
        """One on the cpu backend with small limits."""
        options.setdefault("log", f"{self.folder}/log")
        return Daemon(self._warplined, "--backend=cpu", "--max-inline-bytes=64M", "--region-bytes=256M",
                      "--resident-bytes=256M", f"--send-timeout={send_timeout}", *flags, **options)

    @property
    def warplined(self):
        return self._warplined

    def client(self, role, *arguments, prefix=()):
        """A process of faults_clients.py, of which lines can be read and to which lines can be written."""
        command = [*prefix, sys.executable, "-B", str(ROOT / "tests/deploy/faults_clients.py"),
                   os.path.dirname(os.path.dirname(warpline.__file__)), role, *arguments]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def tell(fault, what, seconds=None):
    """A line for docs/faults.md."""
    print(f"{fault}: {what}" + ("" if seconds is None else f" [{seconds:.2f} s]"), flush=True)


def transpose_of(client, side=16, **options):
    """A call, whose result is checked."""
    x = np.arange(side * side, dtype="f4").reshape(side, side)
    check(np.array_equal(client.transpose(x, **options), x.T), "a transpose is right")


def code_of(call):
    """How a call of the client library has ended."""
    try:
        call()
        return "OK"
    except warpline.Error as error:
        return error.code.name


def serves(address, **options):
    """Whether a new client, which tries nothing again, gets an answer."""
    with warpline.connect(address, max_retries=0, own_connection=True, **options) as client:
        return code_of(lambda: transpose_of(client, timeout=20)) == "OK"


class Loop(threading.Thread):
    """One call after the other. Public: codes, how many there were of each; answered, when the last good one ended, of
    time.monotonic."""

    def __init__(self, call):
        super().__init__(daemon=True)
        self.codes, self.answered, self._call, self._ended = collections.Counter(), 0.0, call, threading.Event()
        self.start()

    def run(self):
        while not self._ended.is_set():
            try:
                self._call()
                code, self.answered = "OK", time.monotonic()
            except warpline.Error as error:
                code = error.code.name
            except grpc.RpcError as error:
                code = error.code().name
            self.codes[code] += 1
            time.sleep(0.005 if code == "OK" else 0.02)

    def await_answer_after(self, moment):
        wait_until("a client gets answers again", lambda: self.answered > moment)
        return self.answered

    def end(self):
        self._ended.set()
        self.join()
        return self.codes


@contextlib.contextmanager
def ending(process):
    """Kills it at the end, if it is still there."""
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()


def await_rest(daemon, descriptors):
    """Returns the seconds until the daemon has nothing in progress and no more descriptors than that."""
    return wait_until("the daemon has nothing left of the clients",
                      lambda: not daemon.metrics().work() and daemon.descriptors() <= descriptors)
