"""GetInfo beside concurrent gzip bombs: how long it takes at worst.

Usage: bombs.py BIN_DIR [--warplined PATH] [--bombs N] [--mib M] [--rounds R] [--seconds S]. Every bomb is a call
of Transpose whose message is M MiB of zeros, compressed; N of them are in flight from as many connections while
another connection asks GetInfo, one call after the other.
"""

import argparse
import gzip
import os
import re
import signal
import socket
import statistics
import struct
import subprocess
import threading
import time


def field(name, value):
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def headers(path, *more):
    return b"".join(field(n, v) for n, v in [(b":method", b"POST"), (b":scheme", b"http"), (b":path", path),
                                             (b":authority", b"bombs"), (b"te", b"trailers"),
                                             (b"content-type", b"application/grpc"), *more])


class Connection:
    """One HTTP/2 connection by hand, so that the client takes next to no time: two cores are all there is."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b""))
        self.stream = -1
        self.received = b""
        self.window = 65535

    def call(self, path, message, *more):
        """Returns when the call has ended, however it did."""
        self.stream += 2
        self.ended = False
        body = struct.pack(">BI", 1 if more else 0, len(message)) + message
        self.socket.sendall(frame(1, 4, self.stream, headers(path, *more)))
        for begin in range(0, len(body), 16384):
            part = body[begin:begin + 16384]
            while self.window < len(part) and not self.ended:
                self.read_frame()
            if self.ended:
                return
            self.window -= len(part)
            self.socket.sendall(frame(0, 1 if begin + 16384 >= len(body) else 0, self.stream, part))
        while not self.ended:
            self.read_frame()

    def read_frame(self):
        while len(self.received) < 9 or len(self.received) < 9 + int.from_bytes(self.received[:3], "big"):
            got = self.socket.recv(65536)
            if not got:
                raise ConnectionError
            self.received += got
        size = int.from_bytes(self.received[:3], "big")
        kind, flags = self.received[3], self.received[4]
        stream = int.from_bytes(self.received[5:9], "big")
        payload, self.received = self.received[9:9 + size], self.received[9 + size:]
        if kind == 8 and stream == 0:
            self.window += int.from_bytes(payload, "big")
        elif kind == 0 and size:
            self.socket.sendall(frame(8, 0, 0, struct.pack(">I", size)))
        elif kind == 6 and not flags & 1:
            self.socket.sendall(frame(6, 1, 0, payload))
        elif kind == 4 and not flags & 1:
            self.socket.sendall(frame(4, 1, 0, b""))
        if kind == 3 or (kind in (0, 1) and flags & 1 and stream == self.stream):
            self.ended = True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_dir")
    parser.add_argument("--warplined")
    parser.add_argument("--bombs", type=int, default=12)
    parser.add_argument("--mib", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6)
    arguments = parser.parse_args()
    bomb = gzip.compress(bytes(arguments.mib << 20), 9)
    daemon = arguments.warplined or os.path.join(arguments.bin_dir, "warplined")
    for _ in range(arguments.rounds):
        process = subprocess.Popen([daemon, "--listen=127.0.0.1:0", "--metrics-listen=", "--backend=cpu"],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        port = int(re.search(r"grpc=127.0.0.1:(\d+)", process.stdout.readline()).group(1))
        stop = time.monotonic() + arguments.seconds
        sent = [0]

        def throw():
            while time.monotonic() < stop:
                try:
                    Connection(port).call(b"/warpline.v1.KernelService/Transpose", bomb, (b"grpc-encoding", b"gzip"))
                    sent[0] += 1
                except OSError:
                    pass

        threads = [threading.Thread(target=throw, daemon=True) for _ in range(arguments.bombs)]
        for thread in threads:
            thread.start()
        probe, times = Connection(port), []
        while time.monotonic() < stop:
            begin = time.monotonic()
            probe.call(b"/warpline.v1.InfoService/GetInfo", b"")
            times.append(time.monotonic() - begin)
            time.sleep(0.005)
        with open(f"/proc/{process.pid}/status") as status:
            peak = int(re.search(r"VmHWM:\s+(\d+)", status.read()).group(1)) / 1024
        process.send_signal(signal.SIGKILL)
        process.wait()
        print(f"{len(times)} calls of GetInfo: median {statistics.median(times) * 1e3:.1f} ms, worst "
              f"{max(times) * 1e3:.0f} ms, beside {sent[0]} bombs; daemon's memory at most {peak:.0f} MiB", flush=True)


if __name__ == "__main__":
    main()
