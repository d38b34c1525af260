"""A server of TensorService, and of as much of KernelService as tests of it need, over NumPy arrays in this
process. Unlike a real one it can fail when it is told to, and tells what it was asked."""

import contextlib
import math
import secrets
import threading
import time
from concurrent import futures

import grpc
import numpy as np

from messages import memory
from messages import DTYPES, data_type
from messages import v1

MAX_CHUNK = 4 << 20
MAX_TTL = 3600
PAGE = 3
CODE = grpc.StatusCode


class Stored:
    """A tensor under a lease. Its lock is the server's."""

    def __init__(self, number, shape, ttl):
        self.id = "fake-" + secrets.token_hex(16)
        self.array = np.zeros(shape, DTYPES[number])
        self.ranges = []
        self.renew(ttl or 600)

    def renew(self, ttl=0):
        self.ttl = ttl or self.ttl
        self.end = time.monotonic() + self.ttl

    @property
    def missing(self):
        return self.array.nbytes - sum(end - begin for begin, end in self.ranges)

    def resident(self):
        return v1.ResidentTensor(id=self.id, ttl_seconds=self.end - time.monotonic())

    def info(self):
        return v1.TensorInfo(resident=self.resident(), data_type=data_type(self.array.dtype), shape=self.array.shape,
                             device=1, size_bytes=self.array.nbytes, missing_bytes=self.missing)


class TensorServer:
    """asked: (method, peer, request id) of each call. faults: by method, what happens to its next calls: a function
    of the context that aborts it, or None for nothing, each once; "counted" in place of it for a Put that aborts
    after its range counts. stored: by id. slack: seconds for which a tensor outlives its lease."""

    def __init__(self):
        self.stored, self.asked, self.faults = {}, [], {}
        self.lock, self.slack = threading.RLock(), 0

    def count(self, method):
        return sum(name == method for name, _, _ in self.asked)

    def find(self, id, context):
        stored = self.stored.get(id)
        if stored is None or stored.end + self.slack < time.monotonic():
            self.stored.pop(id, None)
            code = CODE.NOT_FOUND if id.startswith("fake-") else CODE.FAILED_PRECONDITION
            context.abort(code, f"no tensor ...{id[-8:]}")
        return stored

    def complete(self, id, context):
        stored = self.find(id, context)
        if stored.missing:
            context.abort(CODE.INVALID_ARGUMENT, f"{stored.missing} bytes are missing")
        stored.renew()
        return stored

    def make(self, number, shape, ttl, context):
        if not 0 <= ttl <= MAX_TTL:
            context.abort(CODE.INVALID_ARGUMENT, f"ttl_seconds is {ttl}, the limit {MAX_TTL}")
        stored = Stored(number, shape, ttl)
        self.stored[stored.id] = stored
        return stored

    # --- TensorService

    def Create(self, request, context):
        stored = self.make(request.data_type, list(request.shape), request.ttl_seconds, context)
        return v1.CreateResponse(tensor=stored.info())

    def Put(self, requests, context, fault=None):
        begin, data = None, bytearray()
        for request in requests:
            if begin is None:
                id, begin = request.id, request.offset
            if request.offset != begin + len(data) or request.id not in ("", id) or len(request.data) > MAX_CHUNK:
                context.abort(CODE.INVALID_ARGUMENT, f"offset {request.offset} after {begin} + {len(data)}")
            data += request.data
            if fault == "midway":
                context.abort(CODE.UNAVAILABLE, "midway")
        with self.lock:
            stored, end = self.find(id, context), begin + len(data)
            if end > stored.array.nbytes or any(b < end and begin < e for b, e in stored.ranges):
                context.abort(CODE.INVALID_ARGUMENT, f"bytes {begin} to {end} are not to be put")
            memory(stored.array)[begin:end] = data
            stored.ranges.append((begin, end))
            stored.renew()
            if fault == "counted":
                context.abort(CODE.UNAVAILABLE, "the answer was lost")
            return v1.PutResponse(missing_bytes=stored.missing)

    def Get(self, request, context, fault=None):
        stored = self.complete(request.id, context)
        end = request.offset + (request.length or stored.array.nbytes - request.offset)
        if not 0 <= request.offset <= end <= stored.array.nbytes:
            context.abort(CODE.INVALID_ARGUMENT, f"bytes {request.offset} to {end} are not there")
        data = bytes(memory(stored.array)[request.offset : end])
        size = 300_000  # Neither of pages nor of elements.
        for at in range(0, max(len(data), 1), size):
            if fault == "midway" and at:
                context.abort(CODE.UNAVAILABLE, "midway")
            skew = 1 if fault == "skewed" else 0
            yield v1.GetResponse(tensor=None if at else stored.info(), offset=request.offset + at + skew,
                                 data=data[at : at + size] if fault != "short" else b"")

    def Drop(self, request, context):
        if request.ids:
            return v1.DropResponse(dropped=sum(self.stored.pop(id, None) is not None for id in request.ids))
        self.find(request.id, context)
        del self.stored[request.id]
        return v1.DropResponse()

    def Renew(self, request, context):
        if request.ids:
            for id in request.ids:
                if id in self.stored:
                    self.stored[id].renew(request.ttl_seconds)
            return v1.RenewResponse(ttl_seconds=[self.stored[id].ttl if id in self.stored else 0 for id in request.ids])
        stored = self.find(request.id, context)
        stored.renew(request.ttl_seconds)
        return v1.RenewResponse(tensor=stored.info())

    def List(self, request, context):
        ids = sorted(id for id in self.stored if id > request.page_token)
        return v1.ListResponse(tensors=[self.stored[id].info() for id in ids[:PAGE]],
                               next_page_token=ids[PAGE - 1] if len(ids) > PAGE else "")

    # --- KernelService

    def announce(self, request, context):
        """Waits for the uploads of a request, if it has any."""
        tensors = [named.tensor for named in getattr(request, "inputs", ())]
        uploads = {t.upload.number: t for t in tensors if t.WhichOneof("source") == "upload"}
        if not uploads:
            return
        context.uploads = [self.make(uploads[i].data_type, list(uploads[i].shape), 30, context)
                           for i in range(len(uploads))]
        ids = [upload.id for upload in context.uploads]
        accepted = v1.Uploads(ids=ids, channels=8).SerializeToString()
        context.send_initial_metadata([("x-warpline-uploads-bin", accepted)])
        while context.is_active() and any(upload.missing for upload in context.uploads):
            time.sleep(0.001)
        for id in ids:
            del self.stored[id]

    def value(self, tensor, context):
        if tensor.WhichOneof("source") == "upload":
            return context.uploads[tensor.upload.number].array
        if tensor.WhichOneof("source") == "resident":
            return self.complete(tensor.resident.id, context).array
        return np.frombuffer(tensor.inline, DTYPES[tensor.data_type]).reshape(tensor.shape)

    def result(self, array, options, context, name=""):
        array = np.ascontiguousarray(array).reshape(array.shape)
        number, sinks = data_type(array.dtype), [sink for sink in options.sinks if sink.output == name]
        if not sinks:
            return v1.Tensor(data_type=number, shape=array.shape, inline=array.tobytes())
        stored = self.make(number, array.shape, sinks[0].resident.ttl_seconds, context)
        stored.array, stored.ranges = array, [(0, array.nbytes)]
        return v1.Tensor(data_type=number, shape=array.shape, resident=stored.resident())

    def apply(self, kind, fields, x):
        if kind == "transpose":
            if fields.perm or x[0].ndim < 2:
                return np.transpose(x[0], fields.perm or None)
            return np.swapaxes(x[0], -1, -2)
        if kind == "gemm":
            return (np.swapaxes(x[0], -1, -2) if fields.trans_a else x[0]) @ (
                np.swapaxes(x[1], -1, -2) if fields.trans_b else x[1])
        if kind == "reduce":
            op = {v1.REDUCE_OP_SUM: np.sum, v1.REDUCE_OP_MAX: np.max, v1.REDUCE_OP_MEAN: np.mean,
                  v1.REDUCE_OP_STD: np.std}[fields.op]
            return np.asarray(op(x[0], tuple(fields.axes) or None, keepdims=fields.keepdims))
        if kind == "scale":
            return x[0] * x[0].dtype.type(fields.factor)
        if kind == "map":
            return self.map(fields.nodes, list(x))[-1]
        return np.asarray(x[0] + x[1])

    def map(self, nodes, values):
        for node in nodes:
            name = v1.MapOp.Name(node.op).removeprefix("MAP_OP_").lower()
            operands = [values[i] for i in node.operands]
            if name == "constant":
                number = node.integer if DTYPES[node.data_type].kind in "biu" else node.real
                operands, name = [np.asarray(number)], "cast"
            values.append(np.asarray(operands[0].astype(DTYPES[node.data_type]) if name == "cast"
                                     else getattr(np, name)(*operands)))
        return values

    def Run(self, request, context):
        values = {named.name: self.value(named.tensor, context) for named in request.inputs}
        for step in request.program.steps:
            kind = step.WhichOneof("operation")
            inputs = [values[name] for name in step.inputs]
            values[step.name] = self.apply(kind, getattr(step, kind), inputs)
            for further in step.map.outputs:
                values[further.name] = self.map(step.map.nodes, list(inputs))[len(inputs) + further.node]
        outputs = [v1.NamedTensor(name=name, tensor=self.result(values[name], request.options, context, name))
                   for name in request.program.outputs]
        return v1.RunResponse(outputs=outputs, execution=v1.Execution(device=1))

    # --- gRPC

    def handler(self, service, name):
        def take(context):
            """What is to go wrong with this call."""
            with self.lock:
                request_id = dict(context.invocation_metadata()).get("x-request-id", "")
                self.asked.append((name, context.peer(), request_id))
                faults = self.faults.get(name)
                fault = faults.pop(0) if faults else None
            if callable(fault):
                fault(context)
            return {"fault": fault} if isinstance(fault, str) else {}

        def unary(request, context):
            faults = take(context)
            if name != "Put":  # whose requests are a stream
                self.announce(request, context)
            return getattr(self, name)(request, context, **faults)

        def stream(request, context):
            yield from getattr(self, name)(request, context, **take(context))

        kind = {"Put": grpc.stream_unary_rpc_method_handler, "Get": grpc.unary_stream_rpc_method_handler}
        return kind.get(name, grpc.unary_unary_rpc_method_handler)(
            stream if name == "Get" else unary, getattr(v1, f"{name}Request").FromString,
            getattr(v1, f"{name}Response").SerializeToString)

    SERVICES = {"TensorService": ("Create", "Put", "Get", "Drop", "Renew", "List"),
                "KernelService": ("Run",)}

    @contextlib.contextmanager
    def serving(self, address=None):
        """Yields the address: a free port, or what is given."""
        options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        server = grpc.server(futures.ThreadPoolExecutor(16), options=options)
        for service, names in self.SERVICES.items():
            handlers = {name: self.handler(service, name) for name in names}
            server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(f"warpline.v1.{service}", handlers),))
        port = server.add_insecure_port(address or "127.0.0.1:0")
        server.start()
        try:
            yield address or f"127.0.0.1:{port}"
        finally:
            server.stop(None).wait()


def abort(code, text="on purpose", details=b""):
    """A fault."""
    def fault(context):
        if details:
            context.set_trailing_metadata((("grpc-status-details-bin", details),))
        context.abort(code, text)

    return fault
