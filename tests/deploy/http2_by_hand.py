"""Frames and headers of HTTP/2, put together by hand as no library would, and connections that send them without
listening: what the attacks of attacks.py are made of."""

import select
import socket
import ssl
import struct
import threading

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION, UNKNOWN = 0, 1, 2, 3, 4, 6, 8, 9, 0xFA
END_STREAM, END_HEADERS = 1, 4
FRAME_BYTES = 16384
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
TRANSPOSE, GEMM = b"/warpline.v1.KernelService/Transpose", b"/warpline.v1.KernelService/Gemm"
FROM = "127.0.0.2"
NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
KIB, MIB = 1 << 10, 1 << 20


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def varint(value, prefix_bits):
    """An integer of HPACK, with the other bits of its first byte zero."""
    most = (1 << prefix_bits) - 1
    if value < most:
        return bytes([value])
    out, value = [most], value - most
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def field(name, value):
    """A literal that is not put into the table."""
    return b"\0" + varint(len(name), 7) + name + varint(len(value), 7) + value


identity = []  # what goes with each call besides, such as a token


def headers(path=TRANSPOSE, scheme=b"https", more=()):
    more = (*more, *identity)
    return b"".join(field(n, v) for n, v in [(b":method", b"POST"), (b":scheme", scheme), (b":path", path),
                                             (b":authority", b"localhost"), (b"te", b"trailers"),
                                             (b"content-type", b"application/grpc"), *more])


def protobuf(number, payload):
    size, length = len(payload), b""
    while size >= 128:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + payload


def message(payload, compressed=False):
    return struct.pack(">BI", compressed, len(payload)) + payload


def tensor(rows, columns):
    """A warpline.v1.Tensor of f32 zeros."""
    def number(value):
        return bytes([value & 127 | 128, value >> 7]) if value >= 128 else bytes([value])
    return b"\x08\x0c" + protobuf(2, number(rows) + number(columns)) + protobuf(8, bytes(4 * rows * columns))


TRANSPOSE_MESSAGE = message(protobuf(1, tensor(2, 2)) + protobuf(2, b"\1\0"))
OUTER_PRODUCT = message(protobuf(1, tensor(1024, 1)) + protobuf(2, tensor(1, 512)))  # its result has 2 MiB


def in_frames(stream, body):
    """DATA that ends the stream; only for as much as HTTP/2's first window takes."""
    assert len(body) < 65536
    parts = [body[i:i + FRAME_BYTES] for i in range(0, len(body), FRAME_BYTES)]
    return b"".join(frame(DATA, END_STREAM if i == len(parts) - 1 else 0, stream, part) for i, part in enumerate(parts))


class Cut(Exception):
    """The other side has ended the connection."""


class Target:
    """Whom an attack is meant for. Counts connections, cuts and bytes, for all threads of the attack."""

    def __init__(self, address, ca):
        host, _, port = address.rpartition(":")
        self.address = (host, int(port))
        self.tls, self.source = None, FROM
        if ca:
            self.tls = ssl.create_default_context(cafile=ca)
            self.tls.check_hostname = False
            self.tls.set_alpn_protocols(["h2"])
        self.lock = threading.Lock()
        self.connections = self.cuts = self.sent = 0

    def count(self, **counts):
        with self.lock:
            for name, number in counts.items():
                setattr(self, name, getattr(self, name) + number)

    def bare(self):
        """A connection of TCP."""
        connection = socket.socket()
        connection.settimeout(10)
        connection.bind((self.source, 0))
        try:
            connection.connect(self.address)
        except OSError as error:
            connection.close()
            raise Cut from error
        self.count(connections=1)
        return connection

    def dial(self, settings=b""):
        """One of HTTP/2, past the preface."""
        return Connection(self, settings)


class Connection:
    def __init__(self, target, settings):
        self.target, self.socket = target, target.bare()
        try:
            if target.tls:
                self.socket = target.tls.wrap_socket(self.socket, server_hostname="localhost")
        except OSError as error:
            self.close()
            raise Cut from error
        self.send(PREFACE + frame(SETTINGS, 0, 0, settings))

    def send(self, data):
        """Sends it, and throws away what has come. Cut if neither is possible for 10 seconds."""
        rest = memoryview(data)
        try:
            self.socket.setblocking(False)
            while len(rest) > 0:
                self.throw_away()
                try:
                    sent = self.socket.send(rest)
                    rest = rest[sent:]
                    self.target.count(sent=sent)
                except NOT_NOW:
                    poll = select.poll()
                    poll.register(self.socket, select.POLLIN | select.POLLOUT)
                    if not poll.poll(10000):
                        raise Cut from None
        except OSError as error:
            raise Cut from error

    def throw_away(self):
        try:
            while self.socket.recv(65536):
                pass
            raise Cut
        except NOT_NOW:
            pass

    def is_open(self):
        try:
            self.throw_away()
            return True
        except (Cut, OSError):
            return False

    def close(self):
        self.socket.close()
