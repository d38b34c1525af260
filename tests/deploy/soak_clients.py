"""The clients of soak_test.py, which starts this program once for each kind of them:

    soak_clients.py KIND SEED SETTINGS LEDGER

SETTINGS is a file that soak_test.py writes. The program ends when its stdin does, after its calls in progress, with 0;
with 1 and a text if a result is wrong or an error comes that overload does not explain.
"""

import contextlib
import functools
import json
import os
import random
import socket
import sys
import threading
import time
import traceback

# Of each client: the cores are for the daemon.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")

with open(sys.argv[3]) as file:
    SETTINGS = json.load(file)
# Behind this script's own folder, whose modules the package's could hide.
sys.path[1:1] = [SETTINGS["python"], SETTINGS["bench"]]

import grpc
import numpy as np

import http2
import soak_calls
import warpline
from soak_ledger import METHODS, RARE, Counting, Ledger
import warpline_pb2 as v1

MIB = 1 << 20
CODE = grpc.StatusCode
# What overload explains. UNAVAILABLE: the server cuts connections when messages fill gRPC's memory.
EXPLAINED = {CODE.RESOURCE_EXHAUSTED, CODE.DEADLINE_EXCEEDED, CODE.CANCELLED, CODE.UNAVAILABLE, CODE.ABORTED}
# And, of a Put, this text of an INTERNAL: the server's gRPC lowers the windows of connections as messages fill its memory,
# and resets a stream that has sent more than the new one, unread, if it ends by a frame of its own (docs/clients.md).
WINDOW_WAS_LOWERED = "Received RST_STREAM with error code 1"
LEDGER = Ledger(sys.argv[4])
STOPPING = threading.Event()
OPTIONS = [("grpc.enable_http_proxy", 0), ("grpc.enable_retries", 0), ("grpc.use_local_subchannel_pool", 1),
           ("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]

plain_channel = grpc.insecure_channel


def counted_channel(target, options=None):
    return grpc.intercept_channel(plain_channel(target, options), Counting(LEDGER))


# The client library's channels are counted too.
grpc.insecure_channel = counted_channel


def connect(owner, target=None, **options):
    """A client of the library that tries nothing again, so that each call is one."""
    return warpline.connect(target or SETTINGS["address"], max_retries=0, token=SETTINGS["tokens"][owner], **options)


def short_or_long(rng):
    """Seconds of a deadline: one in eight is so short that it passes somewhere on the way."""
    return rng.uniform(0.001, 0.1) if rng.random() < 0.125 else rng.uniform(10, 20)


def pause(rng, error=None):
    """After a refusal for about as long as the server says."""
    seconds = getattr(error, "retry_after", None) or 0.02
    STOPPING.wait(rng.uniform(0.5, 1.5) * min(seconds, 0.2))


def is_lowered_window(code, text):
    if code is not CODE.INTERNAL or text != WINDOW_WAS_LOWERED:
        return False
    LEDGER.happened(RARE)
    return True


@contextlib.contextmanager
def explained(rng, *more, puts=False):
    """Takes errors that overload explains, and those codes."""
    try:
        yield
    except warpline.Error as error:
        if error.code not in EXPLAINED | set(more) and not (puts and is_lowered_window(error.code, error.message)):
            raise
        # It is stopping, or has lost its GPU. What has no request's id is of the library itself, as when a deadline
        # passes while it connects to the region socket.
        if error.code is CODE.UNAVAILABLE and error.answered and error.request_id:
            raise
        pause(rng, error)


def calls(rng, owner, elements, checks):
    """One call after the other, with numbers of elements up to `elements`."""
    operands = soak_calls.Operands(rng, elements)
    with connect(owner) as client:
        while not STOPPING.is_set():
            count = int(elements ** rng.uniform(0.3, 1))
            with explained(rng):
                check = rng.random() < checks
                soak_calls.random_call(rng, client, operands, count, check=check, timeout=short_or_long(rng))
                if check:
                    LEDGER.happened("checked")


def small(rng):
    calls(rng, "alice", 4096, 0.5)


def large(rng):
    calls(rng, "bob", 4 * MIB, 0.25)


def products(rng):
    """Long ones, several at a time, which are cancelled at random moments."""
    cuda = SETTINGS["backend"] == "cuda"
    sides, naive = ([1024, 2048, 3000], "naive") if cuda else ([100, 200, 300], "reference")
    bodies = [("Run", soak_calls.slow_program(side, steps, naive)) for side in sides for steps in (2, 6)]
    bodies += [("Gemm", soak_calls.square(side)) for side in ([2048] if cuda else [256, 600])]
    metadata = (("authorization", "Bearer " + SETTINGS["tokens"]["bob"]),)
    with counted_channel(SETTINGS["address"], OPTIONS) as channel:
        methods = {name: channel.unary_unary(soak_calls.KERNELS + name) for name in ("Run", "Gemm")}
        while not STOPPING.is_set():
            ahead = []
            for _ in range(rng.randint(1, 12)):
                name, body = rng.choice(bodies)
                ahead.append(methods[name].future(body, timeout=short_or_long(rng), metadata=metadata))
            for call in ahead:
                if rng.random() < 0.4:
                    time.sleep(rng.uniform(0, 0.3))
                    call.cancel()
                    LEDGER.happened("cancelled")
                try:
                    call.result()
                except grpc.FutureCancelledError:
                    pass
                except grpc.RpcError as error:
                    if error.code() not in EXPLAINED:
                        raise
            pause(rng)


def unread(rng):
    """A connection whose results nobody reads, until it is closed."""
    while not STOPPING.is_set():
        with contextlib.suppress(ConnectionError):
            connection = http2.Connection(SETTINGS["port"], takes_results=False, token=SETTINGS["tokens"]["bob"])
            with contextlib.closing(connection):
                for _ in range(rng.randint(1, 8)):
                    LEDGER.started("gemm")
                    body = soak_calls.outer(rng.randint(64, 2048), 1024)
                    connection.start(b"/warpline.v1.KernelService/Gemm", body)
                    LEDGER.happened("unread")
                # Longer than the send timeout, or not so long.
                STOPPING.wait(rng.uniform(0, 4))


def put_in_ranges(rng, channel, x, metadata):
    """A tensor by calls of our own: its ranges in any order, some of which are given up and sent again. Returns its
    id, or None if it was left incomplete, for its lease to end."""
    service, data = "/warpline.v1.TensorService/", x.tobytes()
    create = v1.CreateRequest(data_type=v1.DATA_TYPE_F32, shape=x.shape, ttl_seconds=rng.uniform(1, 3))
    answer = channel.unary_unary(service + "Create")(create.SerializeToString(), timeout=10, metadata=metadata)
    id = v1.CreateResponse.FromString(answer).tensor.resident.id
    cuts = sorted({0, len(data), *(rng.randrange(len(data)) for _ in range(3))})
    ranges = list(zip(cuts, cuts[1:]))
    rng.shuffle(ranges)

    def messages(begin, end, given_up):
        for at in range(begin, end, MIB):
            chunk = v1.PutRequest(id=id, offset=at, data=data[at:min(at + MIB, end)])
            yield chunk.SerializeToString()
            if given_up:
                time.sleep(0.05)

    for begin, end in ranges:
        if rng.random() < 0.25:
            given_up = channel.stream_unary(service + "Put").future(messages(begin, end, True), timeout=10,
                                                                    metadata=metadata)
            time.sleep(rng.uniform(0, 0.05))
            given_up.cancel()
        if rng.random() < 0.1:
            return None
        for _ in range(40):
            try:
                channel.stream_unary(service + "Put")(messages(begin, end, False), timeout=10, metadata=metadata)
                break
            except grpc.RpcError as error:
                # The one that was given up may have got through, or may not have ended yet.
                if error.code() is CODE.INVALID_ARGUMENT and "are there already" in (error.details() or ""):
                    break
                if error.code() is not CODE.ABORTED:
                    raise
                time.sleep(0.05)
        else:
            return None
    return id


def tensors(rng):
    """Resident tensors that are made, put in ranges, used, kept, read, dropped, or left to their leases."""
    operands = soak_calls.Operands(rng, MIB)
    metadata = (("authorization", "Bearer " + SETTINGS["tokens"]["carol"]),)
    with connect("carol") as client, plain_channel(SETTINGS["address"], OPTIONS) as channel:
        while not STOPPING.is_set():
            x = operands.array(rng.randint(1, 1024), rng.randint(1, 1024))
            with explained(rng, CODE.NOT_FOUND, puts=True), contextlib.ExitStack() as stack:
                if rng.random() < 0.3:
                    try:
                        id = put_in_ranges(rng, channel, x, metadata)
                    except grpc.RpcError as error:
                        if error.code() not in EXPLAINED | {CODE.NOT_FOUND} and not is_lowered_window(error.code(),
                                                                                                     error.details()):
                            raise
                        continue
                    if id is None:
                        continue
                    t = client.tensor(id, timeout=10)
                else:
                    channels = rng.choice([None, 2, 3])
                    t = client.put(x, ttl=rng.uniform(1, 5), channels=channels, timeout=short_or_long(rng))
                    stack.callback(t.release)
                LEDGER.happened("tensors")
                for _ in range(rng.randint(0, 4)):
                    soak_calls.random_call(rng, client, operands, 0, check=True, a=(x, t), timeout=short_or_long(rng))
                    LEDGER.happened("checked")
                if rng.random() < 0.5:
                    kept = client.transpose(t, keep=True, ttl=rng.uniform(1, 3), timeout=short_or_long(rng))
                    soak_calls.same(kept.numpy(timeout=10), x.T, "a result that was kept")
                    if rng.random() < 0.5:
                        kept.release()
                if rng.random() < 0.3:
                    soak_calls.same(t.numpy(timeout=10), x, "a tensor that was put")
                if rng.random() < 0.3:
                    t.drop(timeout=10)
                    try:
                        client.tensor(t.id, timeout=10)
                        raise soak_calls.Wrong("a tensor that was dropped is there")
                    except warpline.NotFound:
                        LEDGER.happened("gone")
                if rng.random() < 0.1:
                    client.tensors(timeout=10)


def regions(rng):
    """Clients that share memory, opened and closed, with arrays of theirs and without."""
    operands = soak_calls.Operands(rng, MIB)
    while not STOPPING.is_set():
        mode = rng.choice(["auto", "always"])
        with explained(rng, CODE.NOT_FOUND), connect("carol", SETTINGS["unix"], shared_memory=mode,
                                                     pool_bytes=rng.choice([4, 16, 64]) * MIB) as client:
            for _ in range(rng.randint(0, 20)):
                if STOPPING.is_set():
                    break
                x = operands.array(rng.randint(1, 1024), rng.randint(1, 1024))
                with explained(rng):
                    given = client.empty(x.shape, "f4", timeout=10)
                    given[...] = x
                    soak_calls.random_call(rng, client, operands, 0, check=True, a=(x, given),
                                           timeout=short_or_long(rng))
                    y = client.empty(x.shape[::-1], "f4", timeout=10)
                    soak_calls.same(client.transpose(given, out=y, timeout=short_or_long(rng)), x.T, "in shared memory")
                    LEDGER.happened("checked")
                    LEDGER.happened("regions")


def garbage_on_sockets(rng):
    """Bytes that are no HTTP/2, no HTTP and no packet of the region socket."""
    kind = rng.choice(["grpc", "metrics", "regions", "handover"])
    if kind in ("grpc", "metrics"):
        port = SETTINGS["port"] if kind == "grpc" else SETTINGS["metrics_port"]
        with socket.create_connection(("127.0.0.1", port)) as connection:
            preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" if rng.random() < 0.5 else b""
            connection.sendall(preface + rng.randbytes(rng.randint(0, 100_000)))
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.connect(SETTINGS["unix"].removeprefix("unix:") + ".regions")
        if kind == "regions":
            connection.send(rng.randbytes(rng.randint(1, 4096)))
            return
        packet = v1.RegionRequest(handover=v1.RegionHandover(ticket=rng.randbytes(16).hex())).SerializeToString()
        fd = os.memfd_create("soak", os.MFD_ALLOW_SEALING)
        try:
            socket.send_fds(connection, [packet], [fd] * rng.randint(0, 3))
            connection.recv(4096)
        finally:
            os.close(fd)


def malformed(rng):
    """Requests that are wrong in many ways, and callers whom the server does not know."""
    metadata = (("authorization", "Bearer " + SETTINGS["tokens"]["alice"]),)
    good = v1.TransposeRequest(x=soak_calls.tensor(np.ones((4, 6), "f4")))
    short = v1.TransposeRequest(x=v1.Tensor(data_type=v1.DATA_TYPE_F32, shape=[4, 6], inline=bytes(95)))
    huge = v1.TransposeRequest(x=v1.Tensor(data_type=v1.DATA_TYPE_F32, shape=[1 << 40, 1 << 40], inline=b"1234"))
    gone = v1.TransposeRequest(x=v1.Tensor(resident=v1.ResidentTensor(id="00000000-" + "0" * 32)))
    wrong = {CODE.INVALID_ARGUMENT, CODE.UNIMPLEMENTED}

    def bytes_of_a_request():
        data = bytearray(good.SerializeToString())
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        return bytes(data[:rng.randint(1, len(data))])

    with counted_channel(SETTINGS["address"], OPTIONS) as channel:
        def call(name, body, who=metadata):
            return channel.unary_unary(soak_calls.KERNELS + name)(body, timeout=10, metadata=who)

        # What each of them ends with beside what overload explains; OK is CODE.OK.
        ways = [(lambda: call("Transpose", bytes_of_a_request()),
                 wrong | {CODE.OK, CODE.NOT_FOUND, CODE.FAILED_PRECONDITION}),
                (lambda: call(rng.choice(["Run", "Gemm", "Reduce"]), rng.randbytes(rng.randint(0, 300))), wrong),
                (lambda: call("Transpose", short.SerializeToString()), wrong),
                (lambda: call("Transpose", huge.SerializeToString()), wrong),
                (lambda: call("Transpose", gone.SerializeToString()), {CODE.NOT_FOUND, CODE.FAILED_PRECONDITION}),
                (lambda: call("Nothing", b""), {CODE.UNIMPLEMENTED})]
        while not STOPPING.is_set():
            way, codes = rng.choice(ways)
            event = "malformed"
            if rng.random() < 0.2:
                event, codes = "strangers", {CODE.UNAUTHENTICATED}
                guess = ("authorization", "Bearer " + rng.randbytes(20).hex())
                who = rng.choice([(), (guess,), (("authorization", "x"),)])
                # Not of a kernel, whose calls are counted: the server refuses it before it comes to a method.
                way = functools.partial(channel.unary_unary("/warpline.v1.InfoService/GetInfo"), b"", timeout=10,
                                        metadata=who)
            try:
                way()
                code = CODE.OK
            except grpc.RpcError as error:
                code = error.code()
            if code not in codes | EXPLAINED:
                raise soak_calls.Wrong(f"{event}: {code}, and not one of {codes}")
            LEDGER.happened(event)
            if rng.random() < 0.1:
                with contextlib.suppress(OSError):
                    garbage_on_sockets(rng)
            STOPPING.wait(rng.uniform(0, 0.1))


def loop(kind, rng):
    try:
        globals()[kind](rng)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


def main():
    kind, seed = sys.argv[1], sys.argv[2]
    threads = [threading.Thread(target=loop, args=(kind, random.Random(f"{kind} {seed} {i}")))
               for i in range(SETTINGS["kinds"][kind])]
    for thread in threads:
        thread.start()
    sys.stdin.buffer.read()
    STOPPING.set()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
