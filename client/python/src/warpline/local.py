"""A private daemon for one client, on the same host."""

import importlib.util
import os
import re
import select
import shutil
import subprocess
import tempfile
import time
import weakref
from typing import Any, NamedTuple

from warpline.client import Client
from warpline.connecting import connect

# The longest path of a unix socket, and what is added to the folder's.
_PATH_MAX = 107
_SOCKET, _REGIONS, _LOG = "socket", "socket.regions", "log"
# The daemon may finish what it computes; then it is killed. In seconds.
_GRACE, _KILL_AFTER = 5, 10
# Lines of the daemon's log that an error shows.
_LAST_WORDS = 20

# Runs the daemon until standard input ends, which is a pipe from the client's process: the kernel closes it however that
# process ends, also by kill -9. A signal at the parent's death (prctl PR_SET_PDEATHSIG) would not do: it comes when the
# thread that started the daemon ends, and asking for it runs Python code in a fork of a process with threads. A shell,
# because sys.executable is not Python everywhere.
_SUPERVISOR = f"""
folder=$1
shift
"$@" </dev/null 2>"$folder/{_LOG}" &
daemon=$!
exec >/dev/null 2>&1
read -r nothing
kill "$daemon"
(sleep {_KILL_AFTER}; kill -9 "$daemon") &
killer=$!
wait "$daemon"
kill "$killer"
wait "$killer"
rm -rf "$folder"
"""


class _Daemon(NamedTuple):
    """The supervisor of a daemon, and the process that has started it."""

    supervisor: subprocess.Popen[bytes]
    owner: int

    def end(self) -> None:
        """Asks the daemon to end, without waiting for it. May be called again; does nothing in a fork."""
        if os.getpid() != self.owner:
            return
        for pipe in (self.supervisor.stdin, self.supervisor.stdout):
            if pipe is not None:
                pipe.close()

    def stop(self) -> None:
        """Ends the daemon and waits until it has ended."""
        self.end()
        if os.getpid() == self.owner:
            self.supervisor.wait()


def local(*flags: str, timeout: float = 30.0, **connect_arguments: Any) -> Client:
    """Starts a private daemon, and makes a client of it: `with warpline.local() as c:`. The client ends the daemon when
    it is closed.

    The daemon is the program $WARPLINED, else that of the package `warpline-server` if it is installed beside this one, else
    `warplined` on the PATH.
    It listens on a unix socket in a new folder that only this user can enter. The daemon and the folder are gone after
    `close`, at the end of `with`, when the client is garbage-collected, and when this process ends, even if it is killed.
    Children that were forked from this process keep the daemon running until they end, too. Raises FileNotFoundError if
    there is no daemon, and RuntimeError if it ends before it serves. The message has the last lines of its log.

    flags: Further flags of the daemon, such as "--backend=cpu". They come after those that choose its addresses.
    timeout: Seconds that the daemon may take to start. Raises TimeoutError after that.
    connect_arguments: Arguments of `connect`, except for `target` and `timeout`.
    """
    program, environment = _program()
    folder = _folder()
    address = f"unix:{folder}/{_SOCKET}"
    command = [program, f"--listen={address}", "--metrics-listen=", f"--grace={_GRACE}s", *flags]
    try:
        # Signals of the terminal, such as that of Ctrl-C, are for the client alone.
        daemon = _Daemon(subprocess.Popen(["/bin/sh", "-c", _SUPERVISOR, "sh", folder, *command], stdin=subprocess.PIPE,
                                          stdout=subprocess.PIPE, start_new_session=True, env=environment), os.getpid())
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    try:
        _await_ready(daemon.supervisor, program, f"{folder}/{_LOG}", timeout)
        client = connect(address, **connect_arguments)
    except BaseException:
        daemon.stop()
        raise
    _end_with(client, daemon)
    return client


def _end_with(client: Client, daemon: _Daemon) -> None:
    """Makes the client's close end the daemon."""
    # Also if nobody closes the client, at the latest when the interpreter ends. Garbage collection waits for nobody.
    weakref.finalize(client, daemon.end)
    # The client's own method, which does not keep it alive.
    close_client, reference = type(client).close, weakref.ref(client)

    def close() -> None:
        """Closes the client and ends its daemon."""
        try:
            itself = reference()
            if itself is not None:
                close_client(itself)
        finally:
            daemon.stop()

    setattr(client, "close", close)


def _program() -> tuple[str, dict[str, str] | None]:
    """The daemon's program, and its environment if that is not this process's."""
    given = os.environ.get("WARPLINED")
    if given:
        if not os.access(given, os.X_OK):
            raise FileNotFoundError(f"$WARPLINED is {given}, which is not a program")
        return given, None
    if importlib.util.find_spec("warpline_server") is not None:
        server = importlib.import_module("warpline_server")
        return server.program("warplined"), server.environment()
    found = shutil.which("warplined")
    if not found:
        raise FileNotFoundError("there is no warplined: $WARPLINED is not set, the package warpline-server is not installed, "
                                "and the PATH has none")
    return found, None


def _folder() -> str:
    """A new folder of mode 0700, whose path leaves room for the names of sockets."""
    folder = tempfile.mkdtemp(prefix="warpline-")
    if len(os.fsencode(f"{folder}/{_REGIONS}")) > _PATH_MAX:
        os.rmdir(folder)
        folder = tempfile.mkdtemp(prefix="warpline-", dir="/tmp")
    return folder


def _await_ready(supervisor: subprocess.Popen[bytes], program: str, log: str, timeout: float) -> None:
    """Returns when the daemon serves."""
    assert supervisor.stdout is not None
    output = supervisor.stdout.fileno()
    readable = select.poll()
    readable.register(output, select.POLLIN)
    end = time.monotonic() + timeout
    printed = b""
    while not re.match(rb"READY .*\n", printed):
        left = end - time.monotonic()
        if left <= 0 or not readable.poll(left * 1000):
            raise TimeoutError(f"{program} does not serve after {timeout:g} s{_last_words(log)}")
        some = os.read(output, 4096)
        if not some:
            raise RuntimeError(f"{program} ended before it served{_last_words(log)}")
        printed += some


def _last_words(log: str) -> str:
    """The end of the daemon's log, as the end of a message."""
    try:
        with open(log, "rb") as file:
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        lines = []
    return ":\n" + "\n".join(lines[-_LAST_WORDS:]) if lines else ", and has logged nothing"
