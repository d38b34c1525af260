"""Runs programs on a server: one channel, and several requests in flight."""

import dataclasses
import re
import time

import grpc

from request import copy_request, create_request, run_request, rows_of, type_name

DEADLINE_SECONDS = 60
FULL = re.compile("at present|at one time")
# Of a step whose variant does not suit, or of one that turned out not to when it was to run.
VARIANT = re.compile(r"\.variant|^variant: .* cannot run this problem after all")


@dataclasses.dataclass
class Result:
    """A tensor as the server has sent it."""
    type: str
    shape: tuple
    content: bytes


class CallFailed(Exception):
    def __init__(self, method, error):
        self.method, self.code, self.details = method, error.code(), error.details() or ""
        super().__init__(f"{method}: {self.code.name}: {self.details}")

    @property
    def is_variant(self):
        """True if a named variant does not suit its step."""
        return self.code is grpc.StatusCode.INVALID_ARGUMENT and VARIANT.search(self.details) is not None

    @property
    def is_full(self):
        """True if the server has no room at present, as other programs have it, or a transfer that has just ended."""
        return self.code is grpc.StatusCode.RESOURCE_EXHAUSTED and FULL.search(self.details) is not None

    @property
    def is_lost(self):
        return self.code is grpc.StatusCode.UNAVAILABLE


@dataclasses.dataclass
class Running:
    """A request in flight."""
    program: object
    call: object
    resident_ids: dict


class Caller:
    def __init__(self, api, address):
        self.api = api
        self.channel = grpc.insecure_channel(address, options=[("grpc.max_receive_message_length", -1),
                                                               ("grpc.enable_retries", 0)])

    def close(self):
        self.channel.close()

    def method(self, service, name, kind="unary_unary"):
        request = "RunRequest" if name == "Run" else f"{name}Request"
        response = getattr(self.api, request.replace("Request", "Response"))
        return getattr(self.channel, kind)(f"/warpline.v1.{service}/{name}", getattr(self.api, request).SerializeToString,
                                           response.FromString)

    def call(self, service, name, request, kind="unary_unary"):
        """Makes a call, again if the server has no room at present. `request` is a list if requests are streamed."""
        end = time.monotonic() + DEADLINE_SECONDS
        while True:
            try:
                sent = iter(request) if kind == "stream_unary" else request
                response = self.method(service, name, kind)(sent, timeout=DEADLINE_SECONDS)
                return list(response) if kind == "unary_stream" else response
            except grpc.RpcError as error:
                failed = CallFailed(name, error)
                if not failed.is_full or time.monotonic() > end:
                    raise failed from None
            time.sleep(0.02)

    def info(self):
        return self.call("InfoService", "GetInfo", self.api.GetInfoRequest())

    def variants(self):
        """Names of variants, with their configurations, by operation."""
        return {operation.name: [name for v in operation.variants for name in (v.name, *v.configurations)]
                for operation in self.info().operations}

    def make_resident(self, given):
        """Makes an input a resident tensor, and returns its id."""
        if given.place == "sink":
            response = self.call("KernelService", "Run", copy_request(self.api, given))
            return response.outputs[0].tensor.resident.id
        created = self.call("TensorService", "Create", create_request(self.api, given)).tensor.resident.id
        content = rows_of(given)
        middle = len(content) // 3
        pieces = [self.api.PutRequest(id=created, data=content[:middle]),
                  self.api.PutRequest(offset=middle, data=content[middle:])]
        self.call("TensorService", "Put", pieces, "stream_unary")
        return created

    def begin(self, program):
        """Sends a program. Raises CallFailed if its resident inputs cannot be made."""
        ids = {name: self.make_resident(given) for name, given in program.inputs.items() if given.place != "inline"}
        request = run_request(self.api, program, ids)
        return Running(program, self.method("KernelService", "Run").future(request, timeout=DEADLINE_SECONDS), ids)

    def finish(self, running):
        """Returns the results by name, and the names of what ran for the steps. Raises CallFailed."""
        made = []
        try:
            try:
                response = running.call.result()
            except grpc.RpcError as error:
                raise CallFailed("Run", error) from None
            results = {}
            for output in response.outputs:
                tensor = output.tensor
                content = tensor.inline
                if tensor.WhichOneof("source") == "resident":
                    made.append(tensor.resident.id)
                    content = self.get(tensor.resident.id)
                results[output.name] = Result(type_name(tensor.data_type), tuple(tensor.shape), content)
            places = {o.name: o.tensor.WhichOneof("source") for o in response.outputs}
            for name in running.program.sinks:
                assert places.get(name) == "resident", f"{name} comes as {places.get(name)}, but has a sink"
            return results, list(response.execution.variants)
        finally:
            self.drop([*running.resident_ids.values(), *made])

    def get(self, id_):
        """The elements of a tensor."""
        answers = self.call("TensorService", "Get", self.api.GetRequest(id=id_), "unary_stream")
        return b"".join(answer.data for answer in answers)

    def drop(self, ids):
        """Drops tensors, if they are still there and the server is."""
        if ids:
            try:
                self.call("TensorService", "Drop", self.api.DropRequest(ids=ids))
            except CallFailed as error:
                if not error.is_lost:
                    raise

    def left(self):
        """The number of resident tensors that are still there."""
        return len(self.call("TensorService", "List", self.api.ListRequest()).tensors)

    def run(self, program):
        return self.finish(self.begin(program))
