"""The generated messages of warpline.proto, for servers of our own. The package has none."""

import importlib.util
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from google.protobuf import json_format

import warpline

PROTO = "warpline/v1/warpline.proto"
ROOT = Path(__file__).resolve().parents[3] / "proto"

with tempfile.TemporaryDirectory(prefix="warpline-") as folder:
    subprocess.run(["/usr/bin/protoc", f"--proto_path={ROOT}", f"--python_out={folder}", PROTO], check=True)
    spec = importlib.util.spec_from_file_location("warpline_pb2", f"{folder}/warpline/v1/warpline_pb2.py")
    v1 = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(v1)

DTYPES = {v1.DataType.Value(name): dtype for name, dtype in warpline.dtypes.DTYPES.items()}


def data_type(dtype):
    """The number of a dtype."""
    return v1.DataType.Value(warpline.dtypes.data_type(dtype))


def memory(dense):
    """The bytes of a contiguous array. memoryview(array) does not support types that NumPy lacks."""
    return dense.reshape(-1).view(np.uint8).data


def address_of(array):
    """Address of the first element."""
    return array.__array_interface__["data"][0]


def run_request(call):
    """The RunRequest with the program and the arrays of a call."""
    request = v1.RunRequest()
    json_format.Parse(call.program.message, request.program)
    for name, operand in call.inputs:
        sent = operand.stored
        tensor = v1.Tensor(data_type=data_type(sent.dtype), shape=sent.shape, inline=sent.tobytes())
        request.inputs.append(v1.NamedTensor(name=name, tensor=tensor))
    return request
