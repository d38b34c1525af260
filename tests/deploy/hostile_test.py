"""A daemon answers whatever it is sent: spoilt requests of every method, and packets on the region socket.

    hostile_test.py BIN_DIR [--calls N] [--seed S] [--in-flight N] [--backend cpu|cuda]

All calls of gRPC go over one channel, several at a time; their codes must be among those that the API documents. In
between, a valid request must still get the right answer. At the end the daemon must hold nothing of anybody, must not
have grown, and must end with code 0, for which a daemon with AddressSanitizer also looks for leaks.
"""

import argparse
import collections
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

try:
    import grpc
    import numpy as np
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

DOCUMENTED = {grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNIMPLEMENTED,
              grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.NOT_FOUND, grpc.StatusCode.FAILED_PRECONDITION,
              grpc.StatusCode.ABORTED}
# Of these the first is OK, the others INVALID_ARGUMENT, NOT_FOUND and RESOURCE_EXHAUSTED.
PACKET_CODES = {0, 3, 5, 8}
GAUGES = ["warpline_requests_in_flight", "warpline_queue_depth", 'warpline_admission_bytes{state="used"',
          'warpline_pinned_bytes{state="used"', "warpline_resident_tensors", "warpline_resident_bytes",
          "warpline_regions", "warpline_region_bytes"]
CHECK_EVERY = 500
REGION_BYTES = 4096


class Daemon:
    def __init__(self, bin_dir, folder, log, backend):
        self.region_socket = f"{folder}/regions"
        # Freed memory is kept to find uses of it, but the daemon's own growth is to be seen.
        sanitizer = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=32"
        self.process = subprocess.Popen(
            [f"{bin_dir}/warplined", "--listen=127.0.0.1:0", "--metrics-listen=127.0.0.1:0", f"--backend={backend}",
             "--max-inline-bytes=1M", "--resident-bytes=8M", "--region-bytes=1M", f"--regions={self.region_socket}"],
            stdout=subprocess.PIPE, stderr=log, text=True, env=os.environ | {"ASAN_OPTIONS": sanitizer})
        said = dict(re.findall(r"(\w+)=(\S+)", self.process.stdout.readline()))
        self.address, self.metrics = said["grpc"], said["metrics"]

    def memory_mib(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1)) / 1024

    def gauges(self):
        with urllib.request.urlopen(f"http://{self.metrics}/metrics", timeout=60) as answer:
            lines = answer.read().decode().splitlines()
        values = {}
        for gauge in GAUGES:
            found = [float(l.rsplit(" ", 1)[1]) for l in lines if l.startswith((gauge + " ", gauge + "{", gauge + "}"))]
            assert found, f"there is no metric {gauge}"
            values[gauge] = sum(found)
        return values


class Caller:
    """Keeps up to `in_flight` calls on one channel, and counts how they end."""

    def __init__(self, address, in_flight):
        self.channel = grpc.insecure_channel(address, options=[("grpc.max_receive_message_length", -1)])
        self.free = threading.Semaphore(in_flight)
        self.in_flight = in_flight
        self.lock = threading.Lock()
        self.codes = collections.Counter()
        self.wrong = []
        self.answers = collections.deque(maxlen=200)  # of calls that give something out
        self.methods = {}

    def start(self, path, messages):
        self.free.acquire()
        name = path.rsplit("/", 1)[1]
        kind = {"Put": self.channel.stream_unary, "Get": self.channel.unary_stream}.get(name, self.channel.unary_unary)
        method = self.methods.get(path) or self.methods.setdefault(path, kind(path))
        if name == "Get":
            call = method(messages[0], timeout=120)
            threading.Thread(target=self.read, args=(call, messages)).start()
            return
        call = method.future(iter(messages) if name == "Put" else messages[0], timeout=120)
        call.add_done_callback(lambda done: self.ended(name, done, messages))

    def read(self, call, messages):
        try:
            for _ in call:
                pass
        except grpc.RpcError:
            pass
        self.ended("Get", call, messages)

    def ended(self, name, call, messages):
        code = call.code()
        with self.lock:
            self.codes[name, code.name] += 1
            # A request with uploads, which nobody sends here, ends with the send timeout.
            stalled = code is grpc.StatusCode.CANCELLED and "of the request's uploads" in call.details()
            if code not in DOCUMENTED and not stalled:
                self.wrong.append(f"{name}: {code.name} {call.details()}: {[m.hex() for m in messages]}"[:4000])
            if code is grpc.StatusCode.OK and name in ("Create", "Open"):
                self.answers.append((name, call.result()))
        self.free.release()

    def wait(self):
        for _ in range(self.in_flight):
            assert self.free.acquire(timeout=180), "calls hang"
        self.free.release(self.in_flight)

    def call(self, path, request, response_type):
        return response_type.FromString(self.channel.unary_unary(path)(request.SerializeToString(), timeout=120))


class RegionSocket:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(60)
        self.socket.connect(path)

    def send(self, packet, descriptors=()):
        """Whether the daemon is still there to take it."""
        try:
            socket.send_fds(self.socket, [packet], descriptors)
            return True
        except (BrokenPipeError, ConnectionResetError):
            return False

    def receive(self):
        try:
            return self.socket.recv(65536)
        except ConnectionResetError:
            return b""


class Hostile:
    def __init__(self, daemon, api, requests, arguments):
        self.daemon, self.api, self.requests = daemon, api, requests
        self.random = random.Random(arguments.seed)
        self.caller = Caller(daemon.address, arguments.in_flight)
        self.made = requests.Requests(api, self.random)
        self.tickets = []
        self.seen_tickets = collections.deque(maxlen=2000)  # those of the last 30 s among them, for which they last
        self.regions = []  # sockets that are open, which keep their regions
        self.replies = collections.Counter()
        self.files = [self.memfd(REGION_BYTES), self.memfd(REGION_BYTES, sealed=False), self.memfd(2 * REGION_BYTES),
                      os.open("/dev/null", os.O_RDWR), os.open("/tmp", os.O_RDONLY), *os.pipe()]

    @staticmethod
    def memfd(size, sealed=True):
        import fcntl
        fd = os.memfd_create("region", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.posix_fallocate(fd, 0, size)
        if sealed:
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
        return fd

    def spoilt(self):
        path, messages = self.made.any()
        spoilt = [self.requests.spoil(self.random, m) if self.random.random() < 0.9 else m.SerializeToString()
                  for m in messages]
        if self.random.random() < 0.02:
            path = self.made.any()[0]  # a message of another method
        if path.endswith("/Put") and self.random.random() < 0.05:
            spoilt = []
        elif not spoilt or not path.endswith("/Put"):
            spoilt = spoilt[:1] or [b""]
        return path, spoilt

    def learn(self):
        """Takes note of what the server gave out, so that later requests name it."""
        while self.caller.answers:
            name, data = self.caller.answers.popleft()
            if name == "Create":
                self.made.ids.append(self.api.CreateResponse.FromString(data).tensor.resident.id)
            else:
                self.tickets.append(self.api.OpenResponse.FromString(data).ticket)
                self.seen_tickets.append(self.tickets[-1])
        del self.made.ids[:-20]

    def talk(self, ticket=None):
        """One conversation on the region socket, mostly with a spoilt packet in it."""
        connection = RegionSocket(self.daemon.region_socket)
        ticket = ticket or (self.tickets.pop() if self.tickets else "00000000-" + 32 * "0")
        for step in range(self.random.randrange(1, 4)):
            request = self.api.RegionRequest()
            if step == 0 or self.random.random() < 0.2:
                request.handover.ticket = ticket
            else:
                request.withdrawal.call = self.random.choice([1, 2, 2**63 - 1, 0, -1])
            packet = request.SerializeToString()
            if self.random.random() < 0.3:
                packet = self.requests.spoil(self.random, request)
            if self.random.random() < 0.02:
                packet += bytes(5000)
            count = self.random.choice([1, 1, 1, 1, 0, 2, 16])
            files = [self.files[0] if self.random.random() < 0.6 else self.random.choice(self.files) for _ in range(count)]
            if not packet and not files:
                continue  # to the socket, that is the end
            if not connection.send(packet, files):
                break
            reply = self.read_reply(connection)
            if reply is None or reply.HasField("error"):
                break
            if reply.HasField("ready"):
                self.made.regions.append(reply.ready.id)
                self.regions.append(connection)
        else:
            return
        connection.socket.close()
        if connection in self.regions:
            self.regions.remove(connection)

    def read_reply(self, connection):
        data = connection.receive()
        if not data:
            return None
        reply = self.api.RegionReply.FromString(data)
        code = reply.error.code if reply.HasField("error") else 0
        self.replies[code] += 1
        assert code in PACKET_CODES, f"the region socket answers {reply}"
        return reply

    def is_well(self):
        """The right answer to a valid request, and nothing wrong so far."""
        assert self.daemon.process.poll() is None, f"the daemon has ended with code {self.daemon.process.returncode}"
        with self.caller.lock:
            assert not self.caller.wrong, "\n".join(self.caller.wrong[:5])
        x = np.arange(35, dtype=np.float32).reshape(5, 7) + self.random.random()
        request = self.api.TransposeRequest(perm=[1, 0])
        request.x.data_type, request.x.inline = 12, x.tobytes()
        request.x.shape.extend(x.shape)
        try:
            answer = self.caller.call(self.requests.KERNELS + "Transpose", request, self.api.TransposeResponse)
        except grpc.RpcError as error:
            # What is full says so and has room again soon.
            assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED, f"a valid request fails: {error}"
            self.caller.wait()
            answer = self.caller.call(self.requests.KERNELS + "Transpose", request, self.api.TransposeResponse)
        assert answer.y.inline == x.T.tobytes(), "a valid request gets a wrong answer"

    def drop_tensors(self):
        """Those of spoilt requests too, of which nobody knows the ids."""
        while True:
            listed = self.caller.call(self.requests.TENSORS + "List", self.api.ListRequest(), self.api.ListResponse)
            for tensor in listed.tensors:
                request = self.api.DropRequest(id=tensor.resident.id)
                try:
                    self.caller.call(self.requests.TENSORS + "Drop", request, self.api.DropResponse)
                except grpc.RpcError as error:  # it has expired, or a spoilt Drop was valid
                    assert error.code() is grpc.StatusCode.NOT_FOUND, error
            if not listed.next_page_token:
                return

    def close_regions(self):
        for connection in self.regions:
            connection.socket.close()
        self.regions.clear()
        self.made.regions.clear()

    def give_all_back(self):
        self.caller.wait()
        self.learn()
        self.drop_tensors()
        self.close_regions()
        for ticket in self.seen_tickets:  # a handover without a descriptor is refused, and the ticket is used up
            connection = RegionSocket(self.daemon.region_socket)
            packet = self.api.RegionRequest()
            packet.handover.ticket = ticket
            connection.send(packet.SerializeToString())
            self.read_reply(connection)
            connection.socket.close()
        end = time.monotonic() + 60  # tickets whose answers were lost last for 30 s
        while any(self.daemon.gauges().values()):
            assert time.monotonic() < end, f"something is left: {self.daemon.gauges()}"
            time.sleep(0.1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_dir")
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--in-flight", type=int, default=16)
    parser.add_argument("--backend", choices=["cpu", "cuda"], default="cpu")
    arguments = parser.parse_args()
    # Both are beside this file.
    import api as messages
    import spoilt_requests
    api = messages.load(arguments.bin_dir)
    with tempfile.TemporaryDirectory() as folder:
        log = open(f"{folder}/log", "w+")
        daemon = Daemon(arguments.bin_dir, folder, log, arguments.backend)
        ended_well = False
        try:
            hostile = Hostile(daemon, api, spoilt_requests, arguments)
            start, halfway = time.monotonic(), None
            for call in range(arguments.calls):
                hostile.caller.start(*hostile.spoilt())
                if call % 50 == 0:
                    hostile.learn()
                    hostile.talk()
                if call % CHECK_EVERY == CHECK_EVERY - 1:
                    print(f"{call + 1} calls", flush=True)
                    hostile.is_well()
                    if hostile.random.random() < 0.3:
                        hostile.drop_tensors()
                        hostile.close_regions()
                if call == arguments.calls // 2:
                    halfway = daemon.memory_mib()
            hostile.caller.wait()
            seconds = time.monotonic() - start
            hostile.is_well()
            hostile.give_all_back()
            grown = daemon.memory_mib() - halfway
            assert grown < 150, f"the daemon has grown by {grown:.0f} MiB in the second half"
            hostile.caller.channel.close()
            ended_well = True
        finally:
            daemon.process.send_signal(signal.SIGTERM)
            code = daemon.process.wait(120)
            if not ended_well or code != 0:
                log.seek(0)
                sys.stderr.writelines(log.readlines()[-100:])
        assert code == 0, f"the daemon ends with code {code}"
    for (method, code), count in sorted(hostile.caller.codes.items()):
        print(f"{method:10} {code:20} {count}")
    print(f"replies on the region socket, by code: {dict(hostile.replies)}")
    print(f"{arguments.calls} calls, {arguments.calls / seconds:.0f} a second; "
          f"{halfway:.0f} MiB halfway, {halfway + grown:.0f} at the end")
    assert sum(n for (_, code), n in hostile.caller.codes.items() if code == "OK") > arguments.calls / 20


main()
