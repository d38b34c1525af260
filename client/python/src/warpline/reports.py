"""Plain data classes that describe a server, and how it carried out a request."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from warpline._core import lib
from warpline.core import read
from warpline.dtypes import DTYPES


@dataclass(frozen=True)
class StageTimes:
    """Wall time of the stages of a request on the server, in seconds."""

    convert: float  # decoding and validating the request
    admission: float  # waiting for admission to the server's budget of jobs and bytes
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
    compute_capability: str  # CUDA compute capability, such as "9.0"; empty for the CPU
    lanes: int  # number of lanes; each runs one program at a time
    memory_bytes: int  # memory of the device; 0 for the CPU
    resident_bytes: int  # maximum memory of all resident tensors together


@dataclass(frozen=True)
class Variant:
    """An implementation of an operation."""

    name: str  # name by which a request can ask for it
    summary: str  # description for people
    reproducible: bool  # true if it gives the same bits in every run on the same device
    dtypes: tuple[np.dtype[Any], ...]  # data types that it supports
    configurations: tuple[str, ...]  # other configurations that a request can name, such as "cublas:2"


@dataclass(frozen=True)
class Operation:
    """An operation that the server supports."""

    name: str  # of the kernels: "transpose", "gemm", "reduce", "map", "sort" and so on
    dtypes: tuple[np.dtype[Any], ...]  # data types that at least one variant supports
    variants: tuple[Variant, ...]  # its implementations, in the order in which the server tries them


@dataclass(frozen=True)
class Limits:
    """The limits of a server."""

    max_inline_bytes: int  # maximum size of the arrays that travel inside one request or one response
    max_jobs: int  # maximum number of requests that are admitted and not yet answered
    max_job_bytes: int  # maximum size of all these requests, with their results
    max_rank: int  # maximum number of axes of an array
    max_steps: int  # maximum number of steps of a program
    max_inputs: int  # maximum number of inputs of a program
    max_nodes: int  # maximum number of operations of a map
    max_device_seconds: float  # maximum estimated time of one request on a device; 0: no limit
    max_chunk_bytes: int  # maximum size of one message of put and numpy
    max_ttl_seconds: float  # longest lease of a resident tensor
    max_region_bytes: int  # maximum shared memory of this client; 0: the server shares none
    max_upload_bytes: int  # maximum size of the large arrays of one call that travel in ranges; 0: the server takes none


@dataclass(frozen=True)
class ServerInfo:
    """Version, devices, operations and limits of a server."""

    version: str  # such as "0.1.0"
    revision: str  # revision of its source; "unknown" if it was built outside a checkout
    backend: str  # "cuda" or "cpu"
    devices: tuple[Device, ...]  # its GPUs; with the backend "cpu", the CPU
    operations: tuple[Operation, ...]  # operations that it supports
    limits: Limits  # its limits


def _dtypes(names: Iterable[str]) -> tuple[np.dtype[Any], ...]:
    """Skips data types that this package does not know: a newer server may have more."""
    return tuple(DTYPES[name] for name in names if name in DTYPES)


def execution_of(result: Any) -> Execution:
    """Reads the Execution of a warpline_result."""
    seconds = lib.warpline_result_seconds(result)
    variants = tuple(read(lib.warpline_result_variant(result, i))
                     for i in range(lib.warpline_result_variant_count(result)))
    return Execution(request_id=read(lib.warpline_result_request_id(result)),
                     backend=read(lib.warpline_result_backend(result)), device=lib.warpline_result_device(result),
                     variants=variants,
                     stage_times=StageTimes(convert=seconds.convert, admission=seconds.admission, queue=seconds.queue,
                                            stage=seconds.stage, device=seconds.device))


def server_info_of(text: bytes) -> ServerInfo:
    """Reads a GetInfoResponse that is JSON, in which 64-bit integers are strings."""
    message = json.loads(text)
    devices = tuple(Device(ordinal=device["ordinal"], name=device["name"],
                           compute_capability=device["compute_capability"], lanes=device["lanes"],
                           memory_bytes=int(device["memory_bytes"]), resident_bytes=int(device["resident_bytes"]))
                    for device in message["devices"])
    operations = tuple(
        Operation(name=operation["name"], dtypes=_dtypes(operation["data_types"]),
                  variants=tuple(Variant(name=variant["name"], summary=variant["summary"],
                                         reproducible=variant["reproducible"], dtypes=_dtypes(variant["data_types"]),
                                         configurations=tuple(variant["configurations"]))
                                 for variant in operation["variants"]))
        for operation in message["operations"])
    # Absent if the server does not tell its limits.
    limits = message.get("limits", {})
    return ServerInfo(
        version=message["version"], revision=message["revision"], backend=message["backend"], devices=devices,
        operations=operations,
        limits=Limits(**{field.name: field.type(limits.get(field.name, 0)) for field in fields(Limits)}))
