"""What a machine can run out of, and a clock that jumps."""

import contextlib
import glob
import os
import re
import resource
import socket
import subprocess
import time

import numpy as np

import warpline
from daemon import environment, wait_until
from edge import make_tokens
from faults import MIB, Loop, Skipped, await_rest, check, code_of, serves, tell, transpose_of

SMALL_DISK = "64k"


@contextlib.contextmanager
def small_disk(path):
    """A tmpfs, which only this process and its children see."""
    os.makedirs(path, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK}", "tmpfs", path], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", path], check=True)


def fill(path):
    """Leaves no byte on its disk."""
    with contextlib.suppress(OSError), open(path, "wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def call_many(client, count):
    for _ in range(count):
        check(code_of(lambda: transpose_of(client, 4, timeout=30)) == "OK", "calls do not notice")


def access_lines(daemon):
    return {labels["state"]: int(value)
            for labels, value in daemon.metrics().by_labels("warpline_access_log_lines_total")}


def full_access_log(scene):
    """The disk of the access log is full, and has room again later."""
    log = f"{scene.folder}/disk/access.log"
    with small_disk(f"{scene.folder}/disk"), scene.daemon(f"--access-log={log}") as daemon, \
            warpline.connect(daemon.address, max_retries=0) as client:
        for _ in range(20):
            call_many(client, 100)
        wait_until("lines are dropped", lambda: access_lines(daemon)["dropped"] > 0)
        check(daemon.http("/healthz")[0] == 200, "it is alive")
        check(any("access log" in line for line in daemon.log_lines("warning")), "the log says so")
        full = access_lines(daemon)
        os.truncate(log, 0)
        begun = time.monotonic()

        def written_again():
            call_many(client, 1)
            return access_lines(daemon)["written"] > full["written"]

        wait_until("lines are written again", written_again)
        tell("full_access_log", f"all calls OK; lines until then {full}; written again after there is room",
             time.monotonic() - begun)
        with open(log) as lines:
            check(all(line == "\n" or line.startswith("time=") for line in lines), "each line is whole")
        check(daemon.stop() == 0, "the daemon ends well")


def full_stderr(scene):
    """The disk of the daemon's own log is full."""
    with small_disk(f"{scene.folder}/disk") as disk, contextlib.ExitStack() as stack:
        fill(f"{disk}/filling")
        daemon = stack.enter_context(scene.daemon("--access-log=-", log=f"{disk}/log"))
        with warpline.connect(daemon.address, max_retries=0) as client:
            call_many(client, 500)
        check(daemon.http("/healthz")[0] == 200, "it is alive")
        check(os.path.getsize(daemon.log) == 0, "nothing of the log fits")
        check(daemon.stop() == 0, "the daemon ends well")
    tell("full_stderr", "all calls OK, lines of the log are lost; exit code 0")


def full_shm(scene):
    """/dev/shm is full: shared regions are memfds, which are not there."""
    address = f"unix:{scene.folder}/socket"
    with small_disk("/dev/shm"), scene.daemon(listen=address) as daemon:
        fill("/dev/shm/filling")
        with warpline.connect(address, max_retries=0, shared_memory="always") as client:
            array = client.empty((1024, 1024), "f4")
            array[...] = 1
            check(client.transpose(array).sum() == 1024 * 1024, "it is computed in shared memory")
            check(daemon.metrics().total("warpline_regions") == 1, "there is a region")
        check(daemon.stop() == 0, "the daemon ends well")
    tell("full_shm", "regions of 4 MiB and more are made and used: OK")


def unread_access_log(scene):
    """The access log is a FIFO that nobody reads."""
    os.mkfifo(f"{scene.folder}/fifo")
    with scene.daemon(f"--access-log={scene.folder}/fifo") as daemon:
        with warpline.connect(daemon.address, max_retries=0) as client:
            call_many(client, 500)
        wait_until("lines are dropped", lambda: access_lines(daemon)["dropped"] >= 500)
        check(daemon.stop() == 0, "the daemon ends well")
    tell("unread_access_log", "READY, all calls OK, lines are dropped; exit code 0")


def unread_stderr(scene):
    """stderr is a pipe that is full, and nobody reads it."""
    pipe = f"{scene.folder}/pipe"
    os.mkfifo(pipe)
    with contextlib.ExitStack() as stack:
        end = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
        stack.callback(os.close, end)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(end, b"-" * 512)
        daemon = stack.enter_context(scene.daemon("--access-log=-", log=pipe))
        with warpline.connect(daemon.address, max_retries=0) as client:
            call_many(client, 500)
        check(daemon.http("/healthz")[0] == 200, "it is alive")
        check(daemon.stop() == 0, "the daemon ends well")
    tell("unread_stderr", "READY, all calls OK, lines of the log are lost; exit code 0")


def spoilt_tokens(scene):
    """The file of tokens is replaced while the daemon runs: by arrays within arrays, by a gigabyte, by a good one."""
    path = f"{scene.folder}/tokens.toml"
    make_tokens(scene.warplined, scene.folder, "old", "new")
    with open(path) as file:
        both = file.read()
    tokens = {}
    for owner in ("old", "new"):
        with open(f"{scene.folder}/{owner}") as file:
            tokens[owner] = file.read().strip()

    def replace(write):
        with open(f"{path}.next", "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            write(file)
        os.replace(f"{path}.next", path)

    first = both[:both.index('[owner."token:new"]')]
    replace(lambda file: file.write(first.encode()))
    with scene.daemon(f"--tokens={path}", token=tokens["old"]) as daemon:
        def code(owner):
            with warpline.connect(daemon.address, max_retries=0, token=tokens[owner],
                                  own_connection=True) as client:
                return code_of(lambda: transpose_of(client, timeout=20))

        check((code("old"), code("new")) == ("OK", "UNAUTHENTICATED"), "it has the first file")
        spoilt = {"nested": lambda file: file.write(b"x = " + b"[" * 1_000_000),
                  "of 1 GiB": lambda file: file.truncate(1 << 30)}
        for what, write in spoilt.items():
            warned, before = len(daemon.log_lines("warning")), daemon.status()["VmRSS"]
            replace(write)
            wait_until("the log says why", lambda: len(daemon.log_lines("warning")) > warned
                       or daemon.process.poll() is not None)
            check(daemon.process.poll() is None, "the daemon goes on")
            check((code("old"), code("new")) == ("OK", "UNAUTHENTICATED"), "the old file still counts")
            check(daemon.status()["VmRSS"] - before < 64 * MIB, "the file is not read into memory")
            tell("spoilt_tokens", f"{what}: {daemon.log_lines('warning')[-1].partition('msg=')[2]}")
        replace(lambda file: file.write(both.encode()))
        wait_until("the next good file counts", lambda: code("new") == "OK")
        check(daemon.stop() == 0, "the daemon ends well")


def crowd(daemon, count):
    """So many connections that never make a call."""
    stack = contextlib.ExitStack()
    stack.sockets = [stack.enter_context(socket.create_connection(("127.0.0.1", daemon.port))) for _ in range(count)]
    return stack


def is_closed(connection):
    """Whether the daemon has closed it, before gRPC's own 20 s for a handshake are over."""
    connection.settimeout(10)
    try:
        while connection.recv(1024):
            pass
        return True
    except ConnectionError:
        return True
    except TimeoutError:
        return False


def few_descriptors(scene):
    """The daemon is started with a low hard limit of descriptors, by which it bounds its connections."""
    with scene.daemon(prefix=["prlimit", "--nofile=128:128"]) as daemon:
        descriptors = daemon.descriptors()
        with warpline.connect(daemon.address, max_retries=0) as old:
            transpose_of(old)
            with crowd(daemon, 150) as many:
                check(is_closed(many.sockets[0]), "the connection that was idle for longest is closed")
                check(serves(daemon.address), "a new client is served")
                check(code_of(lambda: transpose_of(old, timeout=20)) == "OK", "who is connected goes on")
                check(daemon.http("/healthz", 5)[0] == 200, "health is answered: connections leave descriptors for it")
        tell("few_descriptors", "new connections: OK, for each the longest idle one is closed; /healthz: 200")
        await_rest(daemon, descriptors)
        check(daemon.stop() == 0, "the daemon ends well")


def no_descriptors(scene):
    """There is none left, as the limit is lowered behind its back; or something else of the process has taken them."""
    with scene.daemon() as daemon:
        descriptors = daemon.descriptors()
        before = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (descriptors + 20, before[1]))
        with warpline.connect(daemon.address, max_retries=0) as old:
            transpose_of(old)
            with crowd(daemon, 40), warpline.connect(daemon.address, max_retries=0, own_connection=True) as new:
                code = code_of(lambda: transpose_of(new, timeout=20))
                check(code == "UNAVAILABLE", f"a new client gets UNAVAILABLE, and not {code}")
                check(code_of(lambda: transpose_of(old, timeout=20)) == "OK", "who is connected goes on")
                check(daemon.http("/healthz", 5)[0] == 200, "health is answered: its port has descriptors of its own")
            begun = time.monotonic()
            wait_until("new clients are served", lambda: serves(daemon.address))
            tell("no_descriptors", "new connections: UNAVAILABLE; old ones OK; /healthz: 200; after others have ended, OK",
                 time.monotonic() - begun)
        check(any("connection refused" in line for line in daemon.log_lines("warning")), "the log says so")
        await_rest(daemon, descriptors)
        check(daemon.stop() == 0, "the daemon ends well")


@contextlib.contextmanager
def cgroup(limit):
    """A new cgroup whose memory is limited to so many bytes, and the prefix of a command that is to run in it. Skipped
    where none can be made."""
    with open("/proc/self/cgroup") as file:
        mine = [line.strip().split(":", 2) for line in file]
    old = [path for _, controllers, path in mine if "memory" in controllers.split(",")]
    root = f"/sys/fs/cgroup/memory{old[0]}" if old else f"/sys/fs/cgroup{mine[-1][2]}"
    names = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes") if old else ("memory.max", "memory.swap.max")
    folder = f"{root.rstrip('/')}/warpline-faults-{os.getpid()}"
    try:
        os.mkdir(folder)
    except OSError as error:
        raise Skipped(f"no cgroup can be made: {error}") from None
    try:
        try:
            with open(f"{folder}/{names[0]}", "w") as file:
                file.write(str(limit))
        except OSError as error:
            raise Skipped(f"no cgroup's memory can be limited: {error}") from None
        with contextlib.suppress(OSError), open(f"{folder}/{names[1]}", "w") as file:
            file.write(str(limit) if old else "0")
        yield folder, ["sh", "-c", f'echo $$ >"{folder}/cgroup.procs" && exec "$@"', "sh"]
    finally:
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def usage_of(folder):
    for name in ("memory.max_usage_in_bytes", "memory.peak"):
        with contextlib.suppress(OSError), open(f"{folder}/{name}") as file:
            return int(file.read()) / MIB
    return float("nan")


def large_calls(address, threads, side, seconds):
    """Transposes from so many connections at a time. Returns the codes with which they have ended."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(warpline.connect(address, max_retries=0, own_connection=True)) for _ in range(threads)]
        x = np.ones((side, side), "f4")
        loops = [Loop(lambda client=client: client.transpose(x, timeout=30)) for client in clients]
        time.sleep(seconds)
        return sum((loop.end() for loop in loops), start=type(loops[0].codes)())


def memory_limit(scene):
    """A cgroup that has what `warplined --help` says is the most, and more load than fits."""
    flags = ["--max-inline-bytes=16M", "--device-bytes=128M", "--resident-bytes=0", "--region-bytes=0"]
    text = subprocess.run([scene.warplined, "--backend=cpu", *flags, "--help"], capture_output=True, text=True,
                          env=environment(scene.warplined)).stdout
    worst = int(re.search(r"with these flags on this machine: (\d+) MiB on cpu", text)[1])
    limit = worst + 100  # of the program itself
    with cgroup(limit * MIB) as (folder, prefix), scene.daemon(*flags, prefix=prefix) as daemon:
        codes = large_calls(daemon.address, 12, 2000, 10)
        tell("memory_limit", f"{limit} MiB allowed, {usage_of(folder):.0f} used at most: {dict(codes)}")
        check(set(codes) <= {"OK", "RESOURCE_EXHAUSTED", "UNAVAILABLE", "CANCELLED"} and codes["OK"] > 0,
              "calls are served or refused")
        # Connections are cut while gRPC's buffers are full.
        wait_until("the daemon serves again", lambda: daemon.process.poll() is not None or serves(daemon.address))
        check(daemon.process.poll() is None, "the daemon goes on")
        check(daemon.stop() == 0, "the daemon ends well")


def too_little_memory(scene):
    """A cgroup that has less than the flags allow: the kernel kills the daemon, as by kill -9."""
    with cgroup(260 * MIB) as (_, prefix), scene.daemon(prefix=prefix) as daemon:
        check(serves(daemon.address), "it serves while there is little to do")
        codes = large_calls(daemon.address, 8, 4000, 5)
        code = daemon.process.wait(timeout=60)
        tell("too_little_memory", f"260 MiB allowed: the daemon ends with {code}; {dict(codes)}")
        check(code == -9, "the kernel has killed it")
        check(set(codes) <= {"OK", "UNAVAILABLE", "RESOURCE_EXHAUSTED"} and codes["UNAVAILABLE"] > 0,
              "its clients see UNAVAILABLE")


def clock_jump(scene):
    """The wall clock jumps, by libfaketime: an hour ahead, and two back. The monotonic one goes on."""
    libraries = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
    if not libraries:
        raise Skipped("libfaketime is not installed")
    told, access_log = f"{scene.folder}/clock", f"{scene.folder}/access.log"

    def jump(offset):
        with open(f"{told}.new", "w") as file:
            file.write(offset)
        os.replace(f"{told}.new", told)

    jump("+0")
    env = {"LD_PRELOAD": libraries[0], "FAKETIME_TIMESTAMP_FILE": told, "FAKETIME_CACHE_DURATION": "1",
           "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}
    with scene.daemon(f"--access-log={access_log}", env=env) as daemon:
        def hours():
            """Of the access log's last line beside the time here."""
            with open(access_log) as lines:
                last = re.match(r"time=(\S+)Z", lines.readlines()[-1])[1]
            here = time.time()
            there = time.mktime(time.strptime(last.partition(".")[0], "%Y-%m-%dT%H:%M:%S")) - time.timezone
            return round((there - here) / 3600)

        with warpline.connect(daemon.address, max_retries=0) as client:
            resident = client.put(np.ones((4, 4), "f4"), ttl=600)
            for offset, meant in [("+3600", 1), ("-3600", -1), ("+0", 0)]:
                load = [Loop(lambda: transpose_of(client, 256, timeout=10)) for _ in range(2)]
                begun = time.monotonic()
                load[0].await_answer_after(begun)
                jump(offset)
                wait_until("the daemon has the other time", lambda: hours() == meant)
                for loop in load:
                    loop.await_answer_after(time.monotonic())
                codes = sum((loop.end() for loop in load), start=type(load[0].codes)())
                # A deadline comes as a time from now. A call in whose first microseconds the clock jumps may lose it.
                # While there is load, absl::Now() goes on with the old time for up to two seconds.
                others = {code: count for code, count in codes.items() if code != "OK"}
                check(set(others) <= {"DEADLINE_EXCEEDED"} and sum(others.values()) <= len(load),
                      f"calls with deadlines of 10 s do not notice: {codes}")
                check(code_of(lambda: client.transpose(resident)) == "OK", "a lease of 10 minutes has not ended")
                check(serves(daemon.address), "new connections are served")
                tell("clock_jump", f"{offset} s: {dict(codes)}, leases go on, new connections OK")
            resident.drop()
        check(daemon.stop() == 0, "the daemon ends well")
