"""What a server says of itself and of a request that it has carried out, in plain data classes."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpline.dtypes import DTYPES
from warpline.v1 import warpline_pb2 as v1


@dataclass(frozen=True)
class StageTimes:
    """Wall time of the stages of a request on the server, in seconds."""

    convert: float  # decoding and validating the request
    admission: float  # asking for a share of the server's budget of jobs and bytes
    queue: float  # waiting for a free lane and for staging memory
    stage: float  # copying the elements into staging memory
    device: float  # from the launch to the completion: transfers and kernels


@dataclass(frozen=True)
class Execution:
    """How a request was carried out."""

    request_id: str  # finds the request in the server's log
    backend: str  # "cuda" or "cpu"
    device: int  # ordinal among `ServerInfo.devices`
    variants: tuple[str, ...]  # names of the implementations that ran, one for each step
    stage_times: StageTimes  # how long each stage took


@dataclass(frozen=True)
class Device:
    """A GPU of the server, or its CPU."""

    ordinal: int  # number of the device, from 0
    name: str  # name of the device
    compute_capability: str  # of CUDA, such as "9.0"; empty for the CPU
    lanes: int  # each runs one program at a time
    memory_bytes: int  # memory of the device; 0 for the CPU
    resident_bytes: int  # memory that all resident tensors together may take


@dataclass(frozen=True)
class Variant:
    """An implementation of an operation."""

    name: str  # name by which a request can ask for it
    summary: str  # what it does, for people
    reproducible: bool  # whether it gives the same bits from run to run on the same device
    dtypes: tuple[np.dtype[Any], ...]  # data types that it takes
    configurations: tuple[str, ...]  # further ways to run it, such as "cublas:2"


@dataclass(frozen=True)
class Operation:
    """Something that the server can compute."""

    name: str  # "transpose", "gemm", "reduce", "cast", "scale" or "add"
    dtypes: tuple[np.dtype[Any], ...]  # data types that at least one variant takes
    variants: tuple[Variant, ...]  # its implementations, in the order in which the server tries them


@dataclass(frozen=True)
class Limits:
    """What the server allows."""

    max_inline_bytes: int  # size of the arrays in one request, or in one response, that travel in messages
    max_jobs: int  # how many requests may be admitted and not yet answered at one time
    max_job_bytes: int  # size of all these requests, with their results
    max_rank: int  # most axes of an array
    max_device_seconds: float  # time of one request on a device, as the server estimates it; 0: no limit
    max_chunk_bytes: int  # size of one message of put and numpy
    max_ttl_seconds: float  # longest lease of a resident tensor
    max_region_bytes: int  # shared memory of one owner; 0: the server shares none


@dataclass(frozen=True)
class ServerInfo:
    """What a server is and can do."""

    version: str  # such as "0.1.0"
    revision: str  # revision of its source; "unknown" if it was built outside a checkout
    backend: str  # "cuda" or "cpu"
    devices: tuple[Device, ...]  # its GPUs, or with the backend "cpu" the CPU
    operations: tuple[Operation, ...]  # what it can compute
    limits: Limits  # what it allows


def _dtypes(numbers: Iterable[v1.DataType]) -> tuple[np.dtype[Any], ...]:
    """A server that is newer than this package may have more."""
    return tuple(DTYPES[number] for number in numbers if number in DTYPES)


def execution_of(message: v1.Execution) -> Execution:
    times = message.stage_times
    return Execution(request_id=message.request_id, backend=message.backend, device=message.device,
                     variants=tuple(message.variants),
                     stage_times=StageTimes(convert=times.convert, admission=times.admission, queue=times.queue,
                                            stage=times.stage, device=times.device))


def server_info_of(message: v1.GetInfoResponse) -> ServerInfo:
    devices = tuple(Device(ordinal=device.ordinal, name=device.name, compute_capability=device.compute_capability,
                           lanes=device.lanes, memory_bytes=device.memory_bytes, resident_bytes=device.resident_bytes)
                    for device in message.devices)
    operations = tuple(
        Operation(name=operation.name, dtypes=_dtypes(operation.data_types),
                  variants=tuple(Variant(name=variant.name, summary=variant.summary,
                                         reproducible=variant.reproducible, dtypes=_dtypes(variant.data_types),
                                         configurations=tuple(variant.configurations))
                                 for variant in operation.variants))
        for operation in message.operations)
    limits = message.limits
    return ServerInfo(
        version=message.version, revision=message.revision, backend=message.backend, devices=devices,
        operations=operations,
        limits=Limits(max_inline_bytes=limits.max_inline_bytes, max_jobs=limits.max_jobs,
                      max_job_bytes=limits.max_job_bytes, max_rank=limits.max_rank,
                      max_device_seconds=limits.max_device_seconds, max_chunk_bytes=limits.max_chunk_bytes,
                      max_ttl_seconds=limits.max_ttl_seconds, max_region_bytes=limits.max_region_bytes))
