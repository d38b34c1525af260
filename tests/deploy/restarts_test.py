"""Two daemons are restarted in turn under load, and no call fails: behind HAProxy with deploy/haproxy's file, with gRPC's
own balancing and health checks in the client, and through the retries of the C++ client on a plain channel to one.

    restarts_test.py BIN_DIR [--full]      ten restarts each way with --full, instead of two or three

Exits with 77 where HAProxy, the Python packages of gRPC and protobuf, or protoc are not installed.
"""

import contextlib
import importlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

import edge
from dashboard import ROOT

try:
    import numpy as np
    from restarts_clients import PATIENCE_SECONDS, CppClients, PythonClients, TensorClient
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

CONFIG = ROOT / "deploy/haproxy/haproxy.cfg"
# Whatever http_proxy says: a proxy does not reach this machine's loopback address.
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
BALANCED = [("grpc.service_config", json.dumps({"loadBalancingConfig": [{"round_robin": {}}],
                                                "healthCheckConfig": {"serviceName": ""}}))]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def get(url, headers={}):
    request = urllib.request.Request(url, headers=headers)
    with contextlib.suppress(OSError), DIRECT.open(request, timeout=5) as response:
        return response.read().decode()
    return ""


def wait_until(what, holds):
    end = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > end:
            sys.exit(f"after {PATIENCE_SECONDS} s still not: {what}")
        time.sleep(0.05)


def stub_messages(directory):
    """The module of the messages, made by protoc."""
    subprocess.run(["protoc", f"-I{ROOT}/proto", f"--python_out={directory}", "warpline/v1/warpline.proto"], check=True)
    sys.path.insert(0, directory)
    return importlib.import_module("warpline.v1.warpline_pb2")


class Daemon:
    """On one port for good, which the metrics do not have."""

    def __init__(self, bin_dir, stack, *flags, metrics_token=None):
        self.headers = {"Authorization": f"Bearer {metrics_token}"} if metrics_token else {}
        self.path, self.flags, self.port = os.path.join(bin_dir, "warplined"), flags, free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.process = None
        self.stop_seconds = []
        stack.callback(self.stop)
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", self.path, f"--listen={self.address}", "--metrics-listen=127.0.0.1:0",
             "--backend=cpu", *self.flags], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        ready = re.match(r"READY grpc=\S+ metrics=(\S+) ", self.process.stdout.readline())
        if ready is None:
            sys.exit(f"a daemon did not become ready on {self.address}")
        self.metrics = ready[1]

    def stop(self, number=signal.SIGTERM):
        begun = time.monotonic()
        self.process.send_signal(number)
        code = self.process.wait(timeout=PATIENCE_SECONDS)
        self.process.stdout.close()
        self.stop_seconds.append(time.monotonic() - begun)
        if code != (-number if number == signal.SIGKILL else 0):
            sys.exit(f"a daemon exited with {code}")

    def restart(self, number=signal.SIGTERM):
        self.stop(number)
        self.start()

    def begun(self, method):
        """Calls of a method, or of "one|another", since it started."""
        found = re.findall(rf'^grpc_server_started_total{{.*grpc_method="(?:{method})".*}} (\S+)$',
                           get(f"http://{self.metrics}/metrics", self.headers), re.M)
        return sum(map(float, found))


def check(way, clients, daemons, restarts, asserted=True):
    """Ends the clients, prints what became of their calls, and exits if one failed."""
    counts = clients.end()
    told = ", ".join(f"{kind} {code} {count}" for (kind, code), count in sorted(counts.items()))
    stops = [seconds for daemon in daemons for seconds in daemon.stop_seconds]
    print(f"{way}, {type(clients).__name__}: {restarts} restarts, each stop {max(stops):.2f} s at most: {told}", flush=True)
    errors = {call: count for call, count in counts.items() if call[1] != "OK"}
    for code, details in getattr(clients, "first_errors", {}).items():
        print(f"  {code}: {details}")
    # No retry policy covers it, as it stands for what the client itself has asked for.
    if (errors and asserted) or any(code in ("CANCELLED", "WRONG") for _, code in errors):
        sys.exit(f"{way}: {errors}")
    if asserted and not {kind for kind, _ in counts} >= {"small", "upload", "slow"}:
        sys.exit(f"{way}: not every kind of call was made")


def restart_in_turn(daemons, restarts, is_back):
    """Each time once the other one is serving."""
    for i in range(restarts):
        daemon = daemons[i % len(daemons)]
        daemon.restart()
        wait_until(f"calls come to {daemon.address} again", lambda: is_back(daemon) and daemon.begun("Transpose|Run") > 20)


def start_haproxy(stack, directory, daemons):
    """Returns its address and a function that tells whether it finds a daemon healthy."""
    listen, metrics = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    config = CONFIG.read_text()
    for old, new, times in [("server one 127.0.0.1:50051", f"server one {daemons[0].address}", 2),
                            ("server two 127.0.0.1:50052", f"server two {daemons[1].address}", 2),
                            ("bind 127.0.0.1:50100", f"bind {listen}", 1),
                            ("bind 127.0.0.1:8404", f"bind {metrics}", 1)]:
        if config.count(old) != times:
            sys.exit(f"{CONFIG} has {config.count(old)} times {old!r}, and not {times}")
        config = config.replace(old, new)
    path = os.path.join(directory, "haproxy.cfg")
    with open(path, "w") as out:
        out.write(config)
    log = stack.enter_context(open(os.path.join(directory, "haproxy.log"), "w"))
    process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "haproxy", "-db", "-f", path], stdout=log, stderr=log)
    stack.callback(process.wait)
    stack.callback(process.kill)

    def is_up(daemon):
        name = ["one", "two"][daemons.index(daemon)]
        return re.search(rf'^haproxy_server_status{{proxy="warpline",server="{name}",state="UP"}} 1$',
                         get(f"http://{metrics}/metrics"), re.M) is not None

    for daemon in daemons:
        wait_until("HAProxy finds the daemons healthy", lambda: is_up(daemon))
    return listen, is_up


def behind_haproxy(bin_dir, directory, messages, restarts):
    with contextlib.ExitStack() as stack:
        daemons = [Daemon(bin_dir, stack, "--drain-delay=2s") for _ in range(2)]
        address, is_up = start_haproxy(stack, directory, daemons)
        clients = [PythonClients(messages, address, []), CppClients(bin_dir, address, 0)]
        restart_in_turn(daemons, restarts, is_up)
        for each in clients:
            check("HAProxy", each, daemons, restarts)


def tensors_behind_haproxy(bin_dir, directory):
    """Calls that name tensors meet the server that has them: each client one, and not all the same."""
    x = np.random.default_rng(0).random((3000, 2000), dtype="f4")
    np.save(f"{directory}/x.npy", x)
    with contextlib.ExitStack() as stack:
        daemons = [Daemon(bin_dir, stack) for _ in range(2)]
        address, _ = start_haproxy(stack, directory, daemons)
        clients = 0
        while not all(daemon.begun("Put") for daemon in daemons):
            clients += 1
            if clients > 40:
                sys.exit("HAProxy: 40 clients with tensors came to one server")
            subprocess.run([f"{bin_dir}/warpline", "transpose", "x.npy", "-o", "y.npy", "--transport=stream",
                            f"--server={address}"], cwd=directory, check=True)
            if not np.array_equal(np.load(f"{directory}/y.npy"), x.T):
                sys.exit("HAProxy: a transpose by way of tensors is wrong")
        print(f"HAProxy: {clients} clients with tensors, none of which met two servers")


def one_of_two_is_lost(bin_dir, directory, messages):
    """A daemon for each GPU: the end of one is seen by the clients whose tensors it had, and by nobody else."""
    with contextlib.ExitStack() as stack:
        daemons = [Daemon(bin_dir, stack) for _ in range(2)]
        address, _ = start_haproxy(stack, directory, daemons)
        clients = {0: [], 1: []}
        # One after the other, so that the daemon that has the tensor of each is known.
        while not all(clients.values()) or sum(map(len, clients.values())) < 8:
            client = TensorClient(messages, address, sum(map(len, clients.values())))
            before = [daemon.begun("Create") for daemon in daemons]
            client.thread.start()
            stack.callback(client.thread.join)
            stack.callback(client.stopping.set)
            wait_until("a client has an answer", lambda: client.answers > 0 or client.error)
            came = [daemon.begun("Create") > count for daemon, count in zip(daemons, before)]
            clients[came.index(True)].append(client)
        # Of calls without tensors, too: HAProxy sends those that were not begun to the other daemon.
        others = CppClients(bin_dir, address, 10)
        time.sleep(0.5)
        daemons[0].stop(signal.SIGKILL)
        answers = [client.answers for client in clients[0] + clients[1]]
        for client, before in zip(clients[0] + clients[1], answers):
            wait_until("every client gets answers again", lambda: client.answers > before + 100 or client.error)
        for where, group in clients.items():
            for client in group:
                if client.error or client.losses != (1 if where == 0 else 0):
                    sys.exit(f"one of two is lost: a client of {where} lost {client.losses} tensors, error {client.error}")
        daemons[0].start()
        counts = others.end()
        if any(code != "OK" for _, code in counts):
            sys.exit(f"one of two is lost: {counts}")
        print(f"HAProxy, SIGKILL of one: {len(clients[0])} clients put their tensors again, {len(clients[1])} saw nothing",
              flush=True)


class LargeCall:
    """One transpose of 200 MiB in ranges, by the command line. Its result is compared at its end."""

    def __init__(self, bin_dir, directory, address, *flags):
        self.directory = directory
        self.process = subprocess.Popen([f"{bin_dir}/warpline", "transpose", "large.npy", "-o", "y.npy", "--transport=stream",
                                         "--retries=20", "--deadline=60s", f"--server={address}", *flags], cwd=directory)

    def await_ranges(self, daemons):
        """Returns the daemon that its ranges have begun to come to."""
        found = []
        wait_until("ranges come to a daemon", lambda: found.extend(each for each in daemons if each.begun("Put")) or found)
        if self.process.poll() is not None:
            sys.exit("the large call ended before a daemon could be restarted midway")
        return found[0]

    def end(self, way):
        if self.process.wait(timeout=2 * PATIENCE_SECONDS) != 0:
            sys.exit(f"{way}: the large call failed")
        if not np.array_equal(np.load(f"{self.directory}/y.npy"), np.load(f"{self.directory}/large.npy").T):
            sys.exit(f"{way}: the large call's result is wrong")
        print(f"{way}: a call of 200 MiB ended well", flush=True)


def large_calls(bin_dir, directory):
    """A daemon ends midway in a large call: what was accepted is served to the end, and what is lost is made again."""
    np.save(f"{directory}/large.npy", np.random.default_rng(0).integers(0, 100, (6400, 8192), dtype="i4"))
    for end, name in [(signal.SIGTERM, "SIGTERM"), (signal.SIGKILL, "SIGKILL")]:
        with contextlib.ExitStack() as stack:
            daemons = [Daemon(bin_dir, stack, "--drain-delay=1s") for _ in range(2)]
            address, _ = start_haproxy(stack, directory, daemons)
            call = LargeCall(bin_dir, directory, address)
            call.await_ranges(daemons).restart(end)
            call.end(f"HAProxy, {name} midway")
    edge.certificate(directory)
    edge.make_tokens(f"{bin_dir}/warplined", directory, "somebody")
    proxied = f"127.0.0.1:{free_port()}"
    with contextlib.ExitStack() as stack:
        daemon = Daemon(bin_dir, stack, f"--proxy-listen={proxied}", f"--tokens={directory}/tokens.toml",
                        metrics_token=open(f"{directory}/somebody").read())
        proxy = stack.enter_context(edge.Proxy(directory, proxied))
        call = LargeCall(bin_dir, directory, proxy.address.replace("127.0.0.1", "localhost"), f"--tls-ca={directory}/ca.crt",
                         f"--token-file={directory}/somebody")
        call.await_ranges([daemon]).restart(signal.SIGKILL)
        call.end("edge.cfg, SIGKILL midway")


def balanced_by_the_client(bin_dir, messages, restarts):
    with contextlib.ExitStack() as stack:
        daemons = [Daemon(bin_dir, stack, "--drain-delay=1s") for _ in range(2)]
        target = "ipv4:" + ",".join(daemon.address for daemon in daemons)
        clients = PythonClients(messages, target, BALANCED)
        restart_in_turn(daemons, restarts, lambda daemon: True)
        check("round_robin", clients, daemons, restarts)


def with_retries(bin_dir, messages, restarts):
    with contextlib.ExitStack() as stack:
        daemon = Daemon(bin_dir, stack)
        clients = CppClients(bin_dir, daemon.address, 10)
        # Nothing helps these while nobody listens.
        foreign = PythonClients(messages, daemon.address, [], ["small"])
        # The others run no programs.
        restart_in_turn([daemon], restarts, lambda daemon: daemon.begun("Run") > 0)
        check("retries", clients, [daemon], restarts)
        check("nothing", foreign, [daemon], restarts, asserted=False)


def main():
    bin_dir, full = sys.argv[1], "--full" in sys.argv[2:]
    for tool in [["haproxy", "-v"], ["protoc", "--version"], ["openssl", "version"]]:
        try:
            subprocess.run(tool, stdout=subprocess.DEVNULL, check=True)
        except FileNotFoundError:
            print(f"skipped: no {tool[0]} here")
            sys.exit(77)
    with tempfile.TemporaryDirectory() as directory:
        messages = stub_messages(directory)
        behind_haproxy(bin_dir, directory, messages, 10 if full else 2)
        tensors_behind_haproxy(bin_dir, directory)
        one_of_two_is_lost(bin_dir, directory, messages)
        large_calls(bin_dir, directory)
        balanced_by_the_client(bin_dir, messages, 10 if full else 2)
        with_retries(bin_dir, messages, 10 if full else 3)


main()
