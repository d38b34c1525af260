"""Clients with a token of their own that ask for more than their part, of whatever the server has: more attacks, which
speak gRPC as it should be spoken.

    greedy.py NAME HOST:PORT --python DIR --token FILE [--unix PATH]

runs one of them until it is killed. It writes what attacks.py writes; its calls are counted as connections. --python: as
of soak_test.py. --unix: a socket of the same daemon that has regions.
"""

import argparse
import functools
import itertools
import operator
import struct
import sys
import threading
import time

from http2_by_hand import (END_HEADERS, HEADERS, KIB, MIB, WINDOW_UPDATE, Cut, Target, frame, headers, identity,
                           in_frames, message, protobuf)

TENSOR_BYTES = 2 * MIB


class Client:
    """What the attacks are made with. Threads may share it."""

    def __init__(self, arguments):
        import numpy
        import warpline
        self.numpy, self.warpline, self.arguments = numpy, warpline, arguments
        with open(arguments.token) as file:
            self.token = file.read().strip()
        self.lock, self.calls, self.bytes = threading.Lock(), 0, 0
        self.connection = self.connect()

    def connect(self, address=None, **options):
        return self.warpline.connect(address or self.arguments.address, max_retries=0, timeout=600, token=self.token, **options)

    def count(self, data=0):
        with self.lock:
            self.calls += 1
            self.bytes += data

    def attempt(self, call, *arguments, data=0, **options):
        """Returns what the call does, or None if it was refused."""
        self.count(data)
        try:
            return call(*arguments, **options)
        except self.warpline.Error:
            time.sleep(0.01)

    def side_by_side(self, count, work):
        """Runs work(number) again and again, on so many threads."""
        def loop(number):
            while True:
                work(number)
        threads = [threading.Thread(target=loop, args=[number], daemon=True) for number in range(count)]
        for thread in threads:
            thread.start()
        threads[0].join()


def long_jobs(client):
    """Six products that take a lane for seconds each."""
    x = client.numpy.ones((1200, 1200), "f4")
    client.side_by_side(6, lambda _: client.attempt(client.connection.gemm, x, x, variant="reference", data=2 * x.nbytes))


def unread_gets(client):
    """One connection with 64 Gets of 2 MiB, whose windows stay closed."""
    tensor = client.connection.put(client.numpy.ones(TENSOR_BYTES, "u1"))
    get = message(protobuf(1, tensor.id.encode()))
    identity.append((b"authorization", b"Bearer " + client.token.encode()))
    target = Target(client.arguments.address, None)
    while True:
        try:
            connection = target.dial(struct.pack(">HI", 4, 0))
            for stream in range(1, 129, 2):
                connection.send(frame(HEADERS, END_HEADERS, stream, headers(b"/warpline.v1.TensorService/Get"))
                                + in_frames(stream, get))
                client.count(len(get))
            while connection.is_open():
                time.sleep(0.1)
        except Cut:
            time.sleep(0.1)


def slow_puts(client):
    """64 Puts of 2 MiB that get 32 KiB a second each."""
    import grpc
    import warpline_pb2 as v1
    channel = grpc.insecure_channel(client.arguments.address)
    create = channel.unary_unary("/warpline.v1.TensorService/Create", v1.CreateRequest.SerializeToString,
                                 v1.CreateResponse.FromString)
    put = channel.stream_unary("/warpline.v1.TensorService/Put", v1.PutRequest.SerializeToString, v1.PutResponse.FromString)
    token = [("authorization", f"Bearer {client.token}")]

    def parts(id, first):
        for offset in range(first, TENSOR_BYTES, 32 * KIB):
            client.count(32 * KIB)
            yield v1.PutRequest(id=id, offset=offset, data=bytes(32 * KIB))
            time.sleep(1)

    def work(_):
        made = create(v1.CreateRequest(data_type=v1.DATA_TYPE_U8, shape=[TENSOR_BYTES]), metadata=token)
        missing = TENSOR_BYTES
        while missing > 0:
            try:
                missing = put(parts(made.tensor.resident.id, TENSOR_BYTES - missing), metadata=token).missing_bytes
            except grpc.RpcError:
                time.sleep(0.1)
    client.side_by_side(64, work)


def new_shapes(client):
    """384 programs at a time, each of a shape that the server has not seen."""
    numbers = itertools.count(1)
    x = client.warpline.placeholder("x")
    sums = functools.reduce(operator.add, [x] * 9)

    def work(_):
        number = next(numbers)
        x = client.numpy.ones((1 + number % 251, 1 + number // 251 % 241), "f4")
        client.attempt(client.connection.run, sums, x=x, data=x.nbytes)
    client.side_by_side(384, work)


def lists(client):
    """128 pages of 1,000 tensors at a time."""
    import grpc
    kept = [client.connection.put(client.numpy.ones(1, "f4")) for _ in range(1000)]
    ask = grpc.insecure_channel(client.arguments.address, [("grpc.max_receive_message_length", -1)]).unary_unary(
        "/warpline.v1.TensorService/List")
    page = b"\x08\xe8\x07"  # of 1,000

    def work(_):
        client.count(len(page))
        try:
            ask(page, metadata=[("authorization", f"Bearer {client.token}")])
        except grpc.RpcError:
            time.sleep(0.01)
    client.side_by_side(128, work)
    del kept


def empty_tensors(client):
    """Tensors without elements, until no more are to be had."""
    import warpline_pb2 as v1
    body = message(v1.CreateRequest(data_type=v1.DATA_TYPE_F32, shape=[0], ttl_seconds=86400).SerializeToString())
    identity.append((b"authorization", b"Bearer " + client.token.encode()))
    target = Target(client.arguments.address, None)
    while True:
        try:
            connection = target.dial()
            connection.send(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 30)))
            for stream in range(1, 20001, 2):
                connection.send(frame(HEADERS, END_HEADERS, stream, headers(b"/warpline.v1.TensorService/Create"))
                                + in_frames(stream, body))
                client.count(len(body))
                if stream % 100 == 1:
                    time.sleep(0.004)
            connection.close()
        except Cut:
            time.sleep(0.01)


def regions(client):
    """Regions of shared memory, until no more are to be had."""
    # An array that finds no room is an error, not one in the attacker's own memory.
    connection, kept = client.connect(f"unix:{client.arguments.unix}", shared_memory="always"), []

    def work(_):
        # More than half of a region, so that the next array needs one of its own.
        array = client.attempt(connection.empty, (48 * MIB,), "u1")
        if array is not None:
            kept.append(array)
    client.side_by_side(1, work)


def waiting_result(v1, size):
    """A request of a few bytes, whose result of so many waits on the server."""
    zero = v1.MapStep(nodes=[v1.MapNode(op=v1.MAP_OP_CONSTANT, data_type=v1.DATA_TYPE_U8)], shape=[size])
    sink = v1.Sink(output="zeros", stream=v1.StreamSink())
    return v1.RunRequest(program=v1.Program(steps=[v1.Step(name="zeros", map=zero)], outputs=["zeros"]),
                         options=v1.RequestOptions(sinks=[sink]))


def largest_first(client, hold):
    """Runs hold(bytes), which returns once it has failed, on many threads: the first has taken the most that it can
    before the others begin."""
    # Each several times, as another client may have some just then.
    sizes = [MIB << shift for shift in (10, 9, 8, 7, 6, 5, 4, 3, 2) for _ in range(20)]
    begun = threading.Event()

    def work(number):
        if number > 0:
            begun.wait()
        for size in sizes:
            hold(size, begun.set)
            time.sleep(0.01)
        begun.set()
    client.side_by_side(16, work)


def held_results(client):
    """Results of as much of --upload-bytes as a client may have, made by 36 bytes, of which a byte is read now and then."""
    import grpc
    import warpline_pb2 as v1
    channel = grpc.insecure_channel(client.arguments.address)
    token = [("authorization", f"Bearer {client.token}")]
    run = channel.unary_unary("/warpline.v1.KernelService/Run", v1.RunRequest.SerializeToString, v1.RunResponse.FromString)
    get = channel.unary_stream("/warpline.v1.TensorService/Get", v1.GetRequest.SerializeToString)

    def hold(size, held):
        client.count(36)
        try:
            id = run(waiting_result(v1, size), metadata=token).outputs[0].tensor.resident.id
            held()
            while True:
                client.count(1)
                list(get(v1.GetRequest(id=id, length=1), metadata=token))
                time.sleep(0.2)
        except grpc.RpcError:
            pass
    largest_first(client, hold)


def trickled_uploads(client):
    """Requests that announce as much of --upload-bytes as a client may have, of which 1 MiB comes each second."""
    import grpc
    import warpline_pb2 as v1
    channel = grpc.insecure_channel(client.arguments.address)
    token = [("authorization", f"Bearer {client.token}")]
    # Of a unary call grpcio hands the metadata over with the response only.
    transpose = channel.unary_stream("/warpline.v1.KernelService/Transpose", v1.TransposeRequest.SerializeToString)
    put = channel.stream_unary("/warpline.v1.TensorService/Put", v1.PutRequest.SerializeToString)

    def hold(size, held):
        client.count(36)
        x = v1.Tensor(data_type=v1.DATA_TYPE_U8, shape=[1, size], upload=v1.Upload())
        options = v1.RequestOptions(sinks=[v1.Sink(stream=v1.StreamSink())])
        call = transpose(v1.TransposeRequest(x=x, options=options), metadata=token)
        try:
            accepted = dict(call.initial_metadata()).get("x-warpline-uploads-bin")
            if accepted is None:
                return
            held()
            id = v1.Uploads.FromString(accepted).ids[0]
            for offset in range(0, size, MIB):
                client.count(MIB)
                put(iter([v1.PutRequest(id=id, offset=offset, data=bytes(MIB))]), metadata=token)
                time.sleep(1)
        except grpc.RpcError:
            pass
    largest_first(client, hold)


def abandoned_jobs(client):
    """Searches, remainders and products that take a lane for seconds, of callers that leave at once."""
    xp, numpy, connection = client.warpline, client.numpy, client.connection
    line, small = xp.arange(1 << 24, dtype="f8"), numpy.full((1, 1), 5e-324)
    square = xp.arange(1 << 22, dtype="f4").reshape(2048, 2048)
    programs = [square.gemm(square, variant="reference"), numpy.searchsorted(line, line),
                (line + numpy.finfo("f8").max) % small, numpy.sort(-line)]

    def work(number):
        client.attempt(connection.run, programs[number % len(programs)].sum(), timeout=0.05, data=200)
    client.side_by_side(8, work)


def crowd(client):
    """Fifty clients that mean no harm, from one address, each with a connection of its own."""
    x = client.numpy.ones((2, 2), "f4")
    connections = [client.warpline.connect(client.arguments.address, max_retries=0, token=client.token,
                                             own_connection=True) for _ in range(50)]

    def work(number):
        client.count(16)
        connections[number].transpose(x)  # an error ends the program, and so fails the test
        time.sleep(0.2)
    failed = threading.Event()
    threading.excepthook = lambda what: (print(what.exc_value, file=sys.stderr), failed.set())
    for number in range(50):
        threading.Thread(target=lambda number=number: [work(number) for _ in itertools.count()], daemon=True).start()
    failed.wait()


ATTACKS = {attack.__name__: attack for attack in (
    long_jobs, unread_gets, slow_puts, new_shapes, lists, empty_tensors, regions, held_results, trickled_uploads,
    abandoned_jobs, crowd)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("attack", choices=ATTACKS)
    parser.add_argument("address")
    parser.add_argument("--python", required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--unix")
    arguments = parser.parse_args()
    sys.path.insert(1, arguments.python)
    client = Client(arguments)

    def tell():
        while True:
            time.sleep(0.25)
            print(client.calls, 0, client.bytes, flush=True)

    threading.Thread(target=tell, daemon=True).start()
    ATTACKS[arguments.attack](client)


if __name__ == "__main__":
    main()
