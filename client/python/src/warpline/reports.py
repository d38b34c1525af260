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

    convert: float  # reading the message, validating
    admission: float  # asking for a share of the server's budget
    queue: float  # waiting for a free lane and for staging memory
    stage: float  # copying the elements into staging memory
    device: float  # launch to completion: transfers and kernels


@dataclass(frozen=True)
class Execution:
    """How a request was carried out."""

    request_id: str
    backend: str  # "cuda" or "cpu"
    device: int  # ordinal among ServerInfo.devices
    variants: tuple[str, ...]  # that ran, one a step
    stage_times: StageTimes


@dataclass(frozen=True)
class Device:
    ordinal: int
    name: str
    compute_capability: str  # as "9.0"; empty on the CPU
    lanes: int
    memory_bytes: int  # 0 on the CPU
    resident_bytes: int  # what all resident tensors may have together


@dataclass(frozen=True)
class Variant:
    """An implementation of an operation."""

    name: str
    summary: str
    reproducible: bool  # the same bits from run to run on the same device
    dtypes: tuple[np.dtype[Any], ...]
    configurations: tuple[str, ...]  # further ways to run it, as "cublas:2"


@dataclass(frozen=True)
class Operation:
    name: str
    dtypes: tuple[np.dtype[Any], ...]
    variants: tuple[Variant, ...]  # in the order in which the server tries them


@dataclass(frozen=True)
class Limits:
    """0: there is no limit, but for max_region_bytes, where it means that there are no regions."""

    max_inline_bytes: int  # of one request's arrays together, and of one response's
    max_jobs: int  # requests at one time
    max_job_bytes: int  # of requests and results at one time
    max_rank: int
    max_device_seconds: float  # of one request, as the server estimates it
    max_chunk_bytes: int  # of one message of put and numpy
    max_ttl_seconds: float  # of resident tensors
    max_region_bytes: int  # of shared memory, of one owner


@dataclass(frozen=True)
class ServerInfo:
    """What a server is and can do."""

    version: str
    revision: str  # of the source; "unknown" where it was built outside a checkout
    backend: str  # "cuda" or "cpu"
    devices: tuple[Device, ...]
    operations: tuple[Operation, ...]
    limits: Limits


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
