"""The clients of restarts_test.py: loops of calls, by grpcio and by the C++ library, whose ends are counted."""

import collections
import os
import subprocess
import sys
import threading
import time

import grpc
import numpy as np

PATIENCE_SECONDS = 60
# grpcio shares connections between channels of a process, unless it is told not to.
PLAIN = [("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1),
         ("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


class PythonClients:
    """Threads that make one call after the other on one channel: with small requests, with 4 MiB there and back, and
    with products that take about a second."""

    def __init__(self, messages, target, options, kinds=("small", "small", "small", "small", "upload", "slow")):
        self.counts, self.lock, self.stopping = collections.Counter(), threading.Lock(), threading.Event()
        self.first_errors = {}
        self.channel = grpc.insecure_channel(target, options=[*PLAIN, *options])
        calls = {"small": self.transpose(messages, 8), "upload": self.transpose(messages, 1024),
                 "slow": self.product(messages, 700)}
        self.threads = [threading.Thread(target=self.loop, args=(kind, calls[kind])) for kind in kinds]
        for thread in self.threads:
            thread.start()

    def tensor(self, messages, array):
        return messages.Tensor(data_type=messages.DATA_TYPE_F32, shape=array.shape, inline=array.tobytes())

    def call(self, method, request):
        return self.channel.unary_unary(f"/warpline.v1.KernelService/{method}")(request, timeout=PATIENCE_SECONDS)

    def transpose(self, messages, side):
        x = np.arange(side * side, dtype=np.float32).reshape(side, side)
        request = messages.TransposeRequest(x=self.tensor(messages, x)).SerializeToString()
        want = x.T.tobytes()
        return lambda: messages.TransposeResponse.FromString(self.call("Transpose", request)).y.inline == want

    def product(self, messages, side):
        a = self.tensor(messages, np.ones((side, side), np.float32))
        request = messages.GemmRequest(a=a, b=a, variant="reference").SerializeToString()
        want = np.full((side, side), side, np.float32).tobytes()
        return lambda: messages.GemmResponse.FromString(self.call("Gemm", request)).d.inline == want

    def loop(self, kind, call):
        while not self.stopping.is_set():
            try:
                code = "OK" if call() else "WRONG"
            except grpc.RpcError as error:
                code = error.code().name
                self.first_errors.setdefault(code, error.details())
                time.sleep(0.01)
            with self.lock:
                self.counts[kind, code] += 1

    def end(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join()
        self.channel.close()
        return self.counts


class CppClients:
    """The same with the C++ library (closed_loop.cc)."""

    def __init__(self, bin_dir, target, retries):
        self.process = subprocess.Popen([os.path.join(bin_dir, "closed_loop"), target, str(retries)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def end(self):
        out, _ = self.process.communicate(timeout=2 * PATIENCE_SECONDS)
        if self.process.returncode != 0:
            sys.exit(f"closed_loop exited with {self.process.returncode}")
        lines = [line.split() for line in out.splitlines()]
        return collections.Counter({(kind, code): int(count) for kind, code, count in lines})


class TensorClient:
    """Transposes one tensor again and again, by calls with one affinity, and puts it anew when its server is gone."""

    def __init__(self, messages, address, number):
        self.messages, self.metadata = messages, [("x-warpline-affinity", f"client-{number}")]
        self.array = np.arange(64, dtype=np.float32).reshape(8, 8) + number
        self.answers, self.losses, self.error = 0, 0, None
        self.stopping = threading.Event()
        self.channel = grpc.insecure_channel(address, options=PLAIN)
        self.thread = threading.Thread(target=self.loop)

    def call(self, method, request, response):
        call = self.channel.unary_unary(f"/warpline.v1.{method}")
        return response.FromString(call(request.SerializeToString(), timeout=PATIENCE_SECONDS, metadata=self.metadata))

    def put(self):
        m = self.messages
        request = m.CreateRequest(data_type=m.DATA_TYPE_F32, shape=self.array.shape)
        tensor = self.call("TensorService/Create", request, m.CreateResponse).tensor.resident
        chunk = m.PutRequest(id=tensor.id, data=self.array.tobytes()).SerializeToString()
        self.channel.stream_unary("/warpline.v1.TensorService/Put")(iter([chunk]), timeout=PATIENCE_SECONDS,
                                                                    metadata=self.metadata)
        return tensor

    def loop(self):
        m, tensor = self.messages, None
        while not self.stopping.is_set():
            try:
                tensor = tensor or self.put()
                request = m.TransposeRequest(x=m.Tensor(resident=tensor))
                answer = self.call("KernelService/Transpose", request, m.TransposeResponse)
                if answer.y.inline != self.array.T.tobytes():
                    self.error = "a result is wrong"
                self.answers += 1
            except grpc.RpcError as error:
                if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.FAILED_PRECONDITION):
                    self.error = f"{error.code().name}: {error.details()}"
                self.losses += tensor is not None
                tensor = None
                time.sleep(0.05)
