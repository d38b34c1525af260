"""Clients that mean no harm, while others attack the server: what they notice."""

import math
import os
import statistics
import struct
import threading
import time

import greedy

# A call fails that takes longer.
CALL_SECONDS = 10
# The longest call of a client, and the median of all: for a machine on which other tests run.
MOST_SECONDS, TYPICAL_SECONDS = 5, 0.5


class Victim(threading.Thread):
    """A client that means no harm: one small call after the other, on one connection, and a new connection each
    second. Public: latencies in seconds, of all calls; failures; how many calls were refused for want of room."""

    PAUSE_SECONDS, RENEW_SECONDS = 0.01, 1

    def __init__(self, daemon, address, ca):
        super().__init__(daemon=True)
        self.latencies, self.failures, self.refused, self.refusal = [], [], 0, ""
        self.server, self._address, self._ca, self._ended = daemon, address, ca, threading.Event()
        self.identity = [("authorization", f"Bearer {daemon.token}")]
        self.prepare()
        self.start()

    def prepare(self):
        """What it needs before its first call."""

    def connect(self):
        import grpc
        # The first options keep the channel from sharing the connection of another one.
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0)]
        if not self._ca:
            return grpc.insecure_channel(self._address, options)
        with open(self._ca, "rb") as ca:
            return grpc.secure_channel(self._address, grpc.ssl_channel_credentials(ca.read()),
                                       [*options, ("grpc.ssl_target_name_override", "localhost")])

    def run(self):
        try:
            while not self._ended.is_set():
                with self.connect() as channel:
                    renewed = time.monotonic() + self.RENEW_SECONDS
                    while time.monotonic() < renewed and not self._ended.is_set():
                        self.timed_call(channel)
        except Exception as error:  # whatever it is, nobody was served
            self.failures.append(repr(error))

    def timed_call(self, channel):
        import grpc
        begun = time.monotonic()
        try:
            if not self.call(channel):
                self.failures.append("a wrong result")
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED:
                self.refused, self.refusal = self.refused + 1, error.details()
            else:
                self.failures.append(f"{error.code().name}: {error.details()}")
        self.latencies.append(time.monotonic() - begun)
        time.sleep(self.PAUSE_SECONDS)

    def call(self, channel):
        """Returns whether the result is right."""
        x = bytes(range(16))
        # A TransposeRequest of 2 x 2 f32, and what must be in the answer.
        request = b"\x0a\x18\x08\x0c\x12\x02\x02\x02\x42\x10" + x + b"\x12\x02\x01\x00"
        answer = x[:4] + x[8:12] + x[4:8] + x[12:]
        return answer in self.ask(channel.unary_unary, "Kernel", "Transpose", request)

    def ask(self, kind, service, name, request):
        return kind(f"/warpline.v1.{service}Service/{name}")(request, timeout=CALL_SECONDS, metadata=self.identity)

    def take(self):
        """What it has measured since the last time."""
        taken, self.latencies = self.latencies, []
        return taken

    def end(self):
        self._ended.set()
        self.join(2 * CALL_SECONDS)
        if self.is_alive():
            self.failures.append("its last call does not end")

    def complaints(self, latencies, most_refused):
        """What it did not get."""
        said = [f"the victim: {failure}" for failure in sorted(set(self.failures))[:3]]
        if not latencies or statistics.median(latencies) > TYPICAL_SECONDS:
            said.append(f"half of the victim's calls took more than {TYPICAL_SECONDS} s")
        if max(latencies, default=0) > MOST_SECONDS:
            said.append(f"a call of the victim took more than {MOST_SECONDS} s")
        if self.refused > most_refused * len(latencies):
            said.append(f"of {len(latencies)} calls of the victim {self.refused} were refused: {self.refusal}")
        return said


class Settled(Victim):
    """Keeps its connection."""

    RENEW_SECONDS = math.inf


class Health(Victim):
    """Asks the metrics port whether the daemon is alive."""

    def call(self, _):
        return self.server.http("/healthz", CALL_SECONDS)[0] == 200


class Scrapes(Victim):
    """Asks the metrics port for all that it has."""

    def call(self, _):
        return all(self.server.http(path, CALL_SECONDS)[0] == 200 for path in ("/healthz", "/metrics"))


class Transfers(Victim):
    """Makes a resident tensor of 2 MiB, reads it and drops it, without a pause."""

    PAUSE_SECONDS = 0
    BYTES = 2 << 20

    def prepare(self):
        import warpline_pb2 as v1
        self.data = os.urandom(self.BYTES)
        self.create = v1.CreateRequest(data_type=v1.DATA_TYPE_U8, shape=[self.BYTES]).SerializeToString()

    def call(self, channel):
        import warpline_pb2 as v1
        made = self.ask(channel.unary_unary, "Tensor", "Create", self.create)
        id = v1.CreateResponse.FromString(made).tensor.resident.id
        parts = [v1.PutRequest(id=id, offset=offset, data=self.data[offset:offset + (1 << 20)]).SerializeToString()
                 for offset in range(0, self.BYTES, 1 << 20)]
        self.ask(channel.stream_unary, "Tensor", "Put", iter(parts))
        got = self.ask(channel.unary_stream, "Tensor", "Get", v1.GetRequest(id=id).SerializeToString())
        right = b"".join(v1.GetResponse.FromString(part).data for part in got) == self.data
        self.ask(channel.unary_unary, "Tensor", "Drop", v1.DropRequest(id=id).SerializeToString())
        return right


class Streams(Victim):
    """Has a result of 2 MiB wait on the server, reads it and drops it."""

    BYTES = 2 << 20

    def call(self, channel):
        import warpline_pb2 as v1
        request = greedy.waiting_result(v1, self.BYTES).SerializeToString()
        made = v1.RunResponse.FromString(self.ask(channel.unary_unary, "Kernel", "Run", request))
        id = made.outputs[0].tensor.resident.id
        got = self.ask(channel.unary_stream, "Tensor", "Get", v1.GetRequest(id=id).SerializeToString())
        right = b"".join(v1.GetResponse.FromString(part).data for part in got) == bytes(self.BYTES)
        self.ask(channel.unary_unary, "Tensor", "Drop", v1.DropRequest(id=id).SerializeToString())
        return right


class Sums(Victim):
    """Adds up two million numbers: not what the lanes for short jobs are kept for."""

    COUNT = 2 << 20

    def call(self, channel):
        import warpline_pb2 as v1
        ones = v1.MapStep(nodes=[v1.MapNode(op=v1.MAP_OP_CONSTANT, data_type=v1.DATA_TYPE_F64, real=1)], shape=[self.COUNT])
        total = v1.ReduceStep(op=v1.REDUCE_OP_SUM)
        steps = [v1.Step(name="ones", map=ones), v1.Step(name="sum", inputs=["ones"], reduce=total)]
        request = v1.RunRequest(program=v1.Program(steps=steps, outputs=["sum"])).SerializeToString()
        answer = v1.RunResponse.FromString(self.ask(channel.unary_unary, "Kernel", "Run", request))
        return struct.unpack("<d", answer.outputs[0].tensor.inline) == (self.COUNT,)


class Shapes(Victim):
    """Runs programs, each of a shape that the server has not seen."""

    def prepare(self):
        self.columns = 1000

    def call(self, channel):
        import warpline_pb2 as v1
        self.columns += 1
        x = v1.Tensor(data_type=v1.DATA_TYPE_F32, shape=[1, self.columns], inline=bytes(4 * self.columns))
        step = v1.Step(name="y", inputs=["x", "x"], add=v1.AddStep())
        request = v1.RunRequest(program=v1.Program(steps=[step], outputs=["y"]), inputs=[v1.NamedTensor(name="x", tensor=x)])
        return self.ask(channel.unary_unary, "Kernel", "Run", request.SerializeToString()) != b""


class Creates(Victim):
    """Makes resident tensors, and drops them."""

    def call(self, channel):
        import warpline_pb2 as v1
        request = v1.CreateRequest(data_type=v1.DATA_TYPE_F32, shape=[16]).SerializeToString()
        made = v1.CreateResponse.FromString(self.ask(channel.unary_unary, "Tensor", "Create", request))
        drop = v1.DropRequest(id=made.tensor.resident.id).SerializeToString()
        return v1.DropResponse.FromString(self.ask(channel.unary_unary, "Tensor", "Drop", drop)).dropped == 1


class Regions(Victim):
    """Shares memory with the server, and gives it back."""

    def call(self, _):
        import warpline
        with warpline.connect(f"unix:{self.server.unix}", max_retries=0, token=self.server.token,
                              shared_memory="always") as client:
            return client.empty((4096,), "u1").nbytes == 4096
