"""HTTP/2 by hand: gRPC calls that take next to no time of the client, or whose results nobody reads."""

import select
import socket
import struct

DATA, HEADERS, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE = 0, 1, 3, 4, 6, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4
FRAME_BYTES = 16384


def field(name, value):
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def headers(path, *more):
    return b"".join(field(n, v) for n, v in [(b":method", b"POST"), (b":scheme", b"http"), (b":path", path),
                                             (b":authority", b"bench"), (b"te", b"trailers"),
                                             (b"content-type", b"application/grpc"), *more])


class Connection:
    """One connection, for one thread. `takes_results`: the server may send as much as it likes. Otherwise it may send
    64 KiB, as HTTP/2 has it at the start, and never more: then its results stay with it. `token` goes with each call,
    if there is one."""

    def __init__(self, port, takes_results=True, token=""):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, b""))
        self.takes_results = takes_results
        self.identity = [(b"authorization", b"Bearer " + token.encode())] if token else []
        self.received = b""
        self.next_stream = 1
        self.window = 65535  # how much the server takes now: on the connection, on a new stream, on each open stream
        self.initial_window = 65535
        self.windows = {}

    def close(self):
        self.socket.close()

    def call(self, path, message, *more):
        """Returns when the call has ended, however it did."""
        stream = self.start(path, message, *more)
        while stream in self.windows:
            self.read_frame()

    def start(self, path, message, *more):
        """Sends a request, as fast as the server takes it, and returns its stream. `more` are headers, of a compressed
        message."""
        stream = self.next_stream
        self.next_stream += 2
        self.windows[stream] = self.initial_window
        self.socket.sendall(frame(HEADERS, END_HEADERS, stream, headers(path, *self.identity, *more)))
        body = memoryview(struct.pack(">BI", 1 if more else 0, len(message)) + message)
        while len(body) > 0:
            part = body[:min(FRAME_BYTES, self.window, self.windows.get(stream, 0))]
            if len(part) == 0:
                self.read_frame()
                if stream not in self.windows:
                    break
                continue
            body = body[len(part):]
            self.window -= len(part)
            self.windows[stream] -= len(part)
            self.socket.sendall(frame(DATA, 0 if len(body) > 0 else END_STREAM, stream, part))
        return stream

    def has_frame(self):
        return len(self.received) >= 9 and len(self.received) >= 9 + int.from_bytes(self.received[:3], "big")

    def read_frame(self):
        while not self.has_frame():
            got = self.socket.recv(65536)
            if not got:
                raise ConnectionError("the server has closed the connection")
            self.received += got
        size = int.from_bytes(self.received[:3], "big")
        kind, flags = self.received[3], self.received[4]
        stream = int.from_bytes(self.received[5:9], "big")
        payload, self.received = self.received[9:9 + size], self.received[9 + size:]
        if kind == WINDOW_UPDATE and stream == 0:
            self.window += int.from_bytes(payload, "big")
        elif kind == WINDOW_UPDATE and stream in self.windows:
            self.windows[stream] += int.from_bytes(payload, "big")
        elif kind == DATA and size and self.takes_results:
            self.socket.sendall(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", size)))
        elif kind == PING and not flags & ACK:
            self.socket.sendall(frame(PING, ACK, 0, payload))
        elif kind == SETTINGS and not flags & ACK:
            for name, value in struct.iter_unpack(">HI", payload):
                if name == 4:  # SETTINGS_INITIAL_WINDOW_SIZE, which also changes the windows of open streams
                    for open_stream in self.windows:
                        self.windows[open_stream] += value - self.initial_window
                    self.initial_window = value
            self.socket.sendall(frame(SETTINGS, ACK, 0, b""))
        if kind == RST_STREAM or (kind in (DATA, HEADERS) and flags & END_STREAM):
            self.windows.pop(stream, None)
