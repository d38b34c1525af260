"""A server of the API that computes with the references, with a mistake on request.

    fake_daemon.py --descriptors=FILE [--wrong=KIND] [--dies=KIND] [FLAG...]

It stands for warplined in tests of the random programs: steps of KIND give wrong results, or end it.
"""

import concurrent.futures
import os
import pathlib
import sys
import uuid

import grpc
import numpy as np
from google.protobuf import json_format

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "deploy"))
import api as api_module  # noqa: E402  of tests/deploy
import reference  # noqa: E402
from element_types import BY_NUMBER, TYPES, decoded, encoded  # noqa: E402
from program import Step  # noqa: E402
from value import Value  # noqa: E402


def elements(tensor):
    """The value of an operand that comes inline, without the padding of its rows."""
    t = BY_NUMBER[tensor.data_type]
    shape = tuple(tensor.shape)
    content = tensor.inline
    if tensor.row_stride > 0 and content:
        row, stride = shape[-1] * t.size, tensor.row_stride * t.size
        content = b"".join(content[at:at + row] for at in range(0, len(content), stride))
    return Value(t.name, decoded(t.name, content, shape))


def fields_of(message):
    fields = json_format.MessageToDict(message, preserving_proto_field_name=True)
    # 64-bit integers come as texts.
    return {key: numbers(value) for key, value in fields.items()}


def numbers(value):
    if isinstance(value, list):
        return [numbers(v) for v in value]
    if isinstance(value, dict):
        return {key: numbers(v) if key not in ("name", "op") else v for key, v in value.items()}
    if value in ("Infinity", "-Infinity", "NaN"):
        return float(value)
    if isinstance(value, str) and value.lstrip("-").isdigit():
        return int(value)
    return value


class Service:
    def __init__(self, api, wrong, dies):
        self.api, self.wrong, self.dies, self.tensors = api, wrong, dies, {}

    def keep(self, value, content=None):
        id_ = uuid.uuid4().hex
        self.tensors[id_] = [value.type, value.shape, encoded(value.type, value.data) if content is None else content]
        return id_

    def operand(self, tensor):
        if tensor.WhichOneof("source") == "resident":
            type_, shape, content = self.tensors[tensor.resident.id]
            return Value(type_, decoded(type_, bytes(content), shape))
        return elements(tensor)

    def Run(self, request, _):
        values = {i.name: self.operand(i.tensor) for i in request.inputs}
        for message in request.program.steps:
            kind = message.WhichOneof("operation")
            if kind == self.dies:
                os._exit(3)
            step = Step(message.name, kind, list(message.inputs), fields_of(getattr(message, kind)), message.variant)
            found = reference.results(step, [Value(values[name].type, values[name].data) for name in step.inputs])
            if kind == self.wrong and found[0].data.size and found[0].kind in "ui":
                data = np.array(found[0].data, order="C")
                data.reshape(-1)[:1] ^= 1
                found[0].data = data
            values.update(zip(step.results, found))
        for id_ in request.options.free_after:
            self.tensors.pop(id_, None)
        return self.answer(request, values)

    def answer(self, request, values):
        response, sinks = self.api.RunResponse(), {sink.output for sink in request.options.sinks}
        for name in request.program.outputs:
            value = values[name]
            tensor = response.outputs.add(name=name).tensor
            tensor.data_type = TYPES[value.type].number
            tensor.shape.extend(value.shape)
            if name in sinks:
                tensor.resident.id = self.keep(value)
            else:
                tensor.inline = encoded(value.type, value.data)
        if request.options.report:
            response.execution.variants.extend("reference" for _ in request.program.steps)
        return response

    def Create(self, request, _):
        t = BY_NUMBER[request.data_type]
        content = bytearray(int(np.prod(request.shape)) * t.size)
        id_ = self.keep(Value(t.name, np.zeros(tuple(request.shape), t.held)), content)
        response = self.api.CreateResponse()
        response.tensor.resident.id = id_
        return response

    def Put(self, requests, _):
        id_ = None
        for request in requests:
            id_ = id_ or request.id
            self.tensors[id_][2][request.offset:request.offset + len(request.data)] = request.data
        return self.api.PutResponse()

    def Get(self, request, _):
        yield self.api.GetResponse(data=bytes(self.tensors[request.id][2]))

    def Drop(self, request, _):
        return self.api.DropResponse(dropped=sum(self.tensors.pop(id_, None) is not None for id_ in request.ids))

    def List(self, request, _):
        response = self.api.ListResponse()
        for id_ in self.tensors:
            response.tensors.add().resident.id = id_
        return response

    def GetInfo(self, *_):
        response = self.api.GetInfoResponse()
        response.operations.add(name="map").variants.add(name="reference")
        return response


KINDS = {"Put": grpc.stream_unary_rpc_method_handler, "Get": grpc.unary_stream_rpc_method_handler}


def main():
    options = dict(flag.removeprefix("--").partition("=")[::2] for flag in sys.argv[1:])
    api = api_module.Api(pathlib.Path(options["descriptors"]).read_bytes())
    service = Service(api, options.get("wrong"), options.get("dies"))
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
    for name, methods in (("Kernel", ["Run"]), ("Info", ["GetInfo"]), ("Tensor", ["Create", "Put", "Get", "Drop", "List"])):
        handlers = {}
        for method in methods:
            request = getattr(api, f"{method}Request")
            response = getattr(api, f"{method}Response")
            make = KINDS.get(method, grpc.unary_unary_rpc_method_handler)
            handlers[method] = make(getattr(service, method), request.FromString, response.SerializeToString)
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(f"warpline.v1.{name}Service", handlers)])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(f"READY grpc=127.0.0.1:{port} metrics= backend=cpu", flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
