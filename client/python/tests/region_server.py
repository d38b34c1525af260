"""A TensorServer that also shares memory, by a region socket in this process. Unlike a real one it can hold jobs up,
never confirm that they have ended, and tells where the elements of each request and result were."""

import contextlib
import fcntl
import mmap
import os
import secrets
import socket
import threading
from collections import Counter

import numpy as np
from google.protobuf.message import Message
from tensor_server import CODE, TensorServer

from messages import DTYPES, data_type
from messages import v1

NEEDED, FORBIDDEN = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW, fcntl.F_SEAL_WRITE | 0x10


class ServedRegion:
    """running: jobs by the number of their call. withdrawn: numbers that no job may have any more."""

    def __init__(self, connected, fd, size):
        self.id = "region-" + secrets.token_hex(16)
        self.socket, self.size = connected, size
        self.memory = np.frombuffer(mmap.mmap(fd, size), "u1")
        self.running, self.withdrawn, self.unanswered = Counter(), set(), set()


def slices_in(message):
    """All RegionSlices of a message."""
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for one in [value] if isinstance(value, Message) else value:
                if isinstance(one, v1.RegionSlice):
                    yield one
                else:
                    yield from slices_in(one)


class RegionServer(TensorServer):
    """max_region_bytes: of all regions. quota: of one region, which GetInfo does not tell. gate: jobs wait for it
    before they write results. confirms: withdrawals are answered. regions: by id, those whose connections are open.
    tickets: sizes. seen: of each request its name, and its numbers of inline operands, operands in regions, and results
    in regions. started: released by each job that has read its operands."""

    SERVICES = {**TensorServer.SERVICES, "RegionService": ("Open",), "InfoService": ("GetInfo",)}

    def __init__(self):
        super().__init__()
        self.max_region_bytes, self.quota, self.confirms = 4 << 30, 4 << 30, True
        self.regions, self.tickets, self.seen, self.opened, self.withdrawals = {}, {}, [], [], []
        self.gate, self.started = threading.Event(), threading.Semaphore(0)
        self.gate.set()

    def GetInfo(self, request, context):
        return v1.GetInfoResponse(limits=v1.Limits(max_region_bytes=self.max_region_bytes))

    def Open(self, request, context):
        if not self.max_region_bytes:
            context.abort(CODE.UNIMPLEMENTED, "no memory is shared")
        used = sum(region.size for region in self.regions.values())
        if used + request.size_bytes > self.max_region_bytes:
            context.abort(CODE.RESOURCE_EXHAUSTED, f"{used} of {self.max_region_bytes} bytes are used")
        if request.size_bytes > self.quota:
            context.abort(CODE.RESOURCE_EXHAUSTED, f"{request.size_bytes} bytes can never be had: {self.quota}")
        assert request.size_bytes > 0 and request.size_bytes % 4096 == 0
        ticket = secrets.token_hex(16)
        self.tickets[ticket] = request.size_bytes
        return v1.OpenResponse(ticket=ticket, ttl_seconds=10)

    # --- The region socket

    def accept(self, listening):
        while True:
            try:
                connected, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=self.attend, args=(connected,), daemon=True).start()

    def attend(self, connected):
        packet, fds, _, _ = socket.recv_fds(connected, 4096, 2)
        handover = v1.RegionRequest.FromString(packet).handover
        with self.lock:
            size = self.tickets.pop(handover.ticket, None)
        problem = None if size else v1.RegionError(code=5, message="no such ticket")
        if size:
            status, seals = os.fstat(fds[0]), fcntl.fcntl(fds[0], fcntl.F_GET_SEALS)
            fit = (len(fds) == 1 and status.st_size == size == status.st_blocks * 512 and seals & NEEDED == NEEDED
                   and not seals & FORBIDDEN)
            problem = None if fit else v1.RegionError(code=3, message=f"{status} with seals {seals}")
        if problem:
            connected.send(v1.RegionReply(error=problem).SerializeToString())
            connected.close()
            return
        region = ServedRegion(connected, fds[0], size)
        os.close(fds[0])
        with self.lock:
            self.regions[region.id] = region
            self.opened.append(size)
        connected.send(v1.RegionReply(ready=v1.RegionReady(id=region.id)).SerializeToString())
        with contextlib.suppress(OSError):
            while packet := connected.recv(4096):
                call = v1.RegionRequest.FromString(packet).withdrawal.call
                assert call > 0
                with self.lock:
                    self.withdrawals.append(call)
                    region.withdrawn.add(call)
                    region.unanswered.add(call)
                    self.answer(region)
        with self.lock:
            self.regions.pop(region.id, None)
        connected.close()

    def answer(self, region):
        for call in sorted(region.unanswered):
            if self.confirms and not region.running[call]:
                region.unanswered.discard(call)
                with contextlib.suppress(OSError):
                    region.socket.send(v1.RegionReply(ended=v1.RegionCallEnded(call=call)).SerializeToString())

    def drop_regions(self):
        """As the end of the server does."""
        for region in list(self.regions.values()):
            with contextlib.suppress(OSError):  # Its client was faster.
                region.socket.shutdown(socket.SHUT_RDWR)

    # --- Jobs

    def place(self, slice, nbytes, context):
        region = self.regions.get(slice.id)
        if region is None:
            context.abort(CODE.NOT_FOUND, f"no region ...{slice.id[-8:]}")
        if not 0 <= slice.offset <= slice.offset + nbytes <= region.size:
            context.abort(CODE.INVALID_ARGUMENT, f"{nbytes} bytes at {slice.offset} of {region.size}")
        return region.memory[slice.offset : slice.offset + nbytes]

    def value(self, tensor, context):
        if tensor.WhichOneof("source") == "resident":
            return super().value(tensor, context)
        shape, dtype = list(tensor.shape), DTYPES[tensor.data_type]
        stride = tensor.row_stride or (shape[-1] if shape else 1)
        nbytes = int(np.prod(shape[:-1], dtype="i8")) * stride * dtype.itemsize
        if shape and nbytes:
            nbytes -= (stride - shape[-1]) * dtype.itemsize
        if tensor.WhichOneof("source") == "region":
            assert tensor.region.offset % dtype.itemsize == 0
            data = self.place(tensor.region, nbytes, context)
        else:
            data = np.frombuffer(tensor.inline, "u1")
        assert len(data) == nbytes
        if not shape:
            return data.view(dtype).reshape(())
        # The padding that the last row lacks.
        padded = np.zeros(int(np.prod(shape[:-1], dtype="i8")) * stride, dtype)
        padded.view("u1")[: len(data)] = data
        return padded.reshape(*shape[:-1], stride)[..., : shape[-1]]

    def result(self, array, options, context, name=""):
        sinks = [sink for sink in options.sinks if sink.output == name and sink.WhichOneof("place") == "region"]
        if not sinks:
            return super().result(array, options, context, name)
        self.place(sinks[0].region, array.nbytes, context)[:] = np.ascontiguousarray(array).reshape(-1).view("u1")
        return v1.Tensor(data_type=data_type(array.dtype), shape=array.shape, region=sinks[0].region)

    def Run(self, request, context):
        slices = list(slices_in(request))
        sinks = [sink.region for sink in request.options.sinks if sink.WhichOneof("place") == "region"]
        kinds = Counter(named.tensor.WhichOneof("source") for named in request.inputs)
        assert len({slice.call for slice in slices}) <= 1, "several numbers in one request"
        with self.lock:
            self.seen.append(("Run", kinds["inline"], kinds["region"], len(sinks)))
            used = [self.regions[slice.id] for slice in slices if slice.id in self.regions]
            if any(slice.call in region.withdrawn for slice, region in zip(slices, used)):
                context.abort(CODE.ABORTED, "the call was withdrawn")
            for region in used:
                region.running[slices[0].call] += 1
        try:
            self.started.release()
            self.gate.wait()
            return TensorServer.Run(self, request, context)
        finally:
            with self.lock:
                for region in used:
                    region.running[slices[0].call] -= 1
                    self.answer(region)

    @contextlib.contextmanager
    def serving(self, address=None):
        """On a unix socket, `address`, with its region socket."""
        path = address.removeprefix("unix:") + ".regions"
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listening.bind(path)
        listening.listen()
        threading.Thread(target=self.accept, args=(listening,), daemon=True).start()
        try:
            with super().serving(address):
                yield address
                self.gate.set()
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            listening.close()
            os.unlink(path)
            self.drop_regions()
