"""warpline from Python with plain gRPC, for machines that the package `warpline` does not fit: macOS, Windows, an older
Python. It transposes a matrix, keeps one on the server, and makes a request that is refused. Every result is checked; the
exit code is 1 if one is wrong.

    pip install grpcio grpcio-tools numpy
    python -m grpc_tools.protoc -I ../../../proto --python_out=. warpline/v1/warpline.proto
    python example.py 127.0.0.1:50051

The generated messages are the package `warpline.v1`, which an installed `warpline` would hide. TLS is as in the other
examples: $WARPLINE_TLS_CA, $WARPLINE_TLS_CERT and $WARPLINE_TLS_KEY.
"""

import os
import sys
import uuid

import grpc
import numpy as np

from warpline.v1 import warpline_pb2 as v1

# Element types by their names in NumPy.
TYPES = {"float16": v1.DATA_TYPE_F16, "float32": v1.DATA_TYPE_F32, "float64": v1.DATA_TYPE_F64, "int8": v1.DATA_TYPE_I8,
         "int32": v1.DATA_TYPE_I32, "int64": v1.DATA_TYPE_I64, "bool": v1.DATA_TYPE_BOOL}
DTYPES = {number: np.dtype(name).newbyteorder("<") for name, number in TYPES.items()}
# Messages of this size are fastest.
CHUNK_BYTES = 1 << 20
SECONDS_MAX = 60


def connect(target):
    """A channel, with TLS if $WARPLINE_TLS_CA names a file."""
    # gRPC limits responses to 4 MiB unless this is set. Only the server limits requests.
    options = [("grpc.max_receive_message_length", -1)]
    ca, cert, key = (read(os.environ.get(f"WARPLINE_TLS_{name}")) for name in ("CA", "CERT", "KEY"))
    if ca is None:
        return grpc.insecure_channel(target, options)
    return grpc.secure_channel(target, grpc.ssl_channel_credentials(ca, key, cert), options)


def read(path):
    if not path:
        return None
    with open(path, "rb") as file:
        return file.read()


def call(channel, method, request, response_type):
    """Calls a method that takes and returns one message. The server logs the request id."""
    invoke = channel.unary_unary(f"/warpline.v1.{method}", lambda message: message.SerializeToString(),
                                 response_type.FromString)
    return invoke(request, timeout=SECONDS_MAX, metadata=[("x-request-id", str(uuid.uuid4()))])


def tensor(array):
    """An array as a message, which holds a copy of the elements."""
    array = np.asarray(array, order="C")
    return v1.Tensor(data_type=TYPES[array.dtype.name], shape=array.shape, inline=array.tobytes())


def array_of(tensor):
    """The elements of a message: a view of it."""
    return np.frombuffer(tensor.inline, DTYPES[tensor.data_type]).reshape(tensor.shape)


def transpose(channel, x, perm=()):
    """x is a Tensor: elements, or a tensor that the server has."""
    response = call(channel, "KernelService/Transpose", v1.TransposeRequest(x=x, perm=perm), v1.TransposeResponse)
    execution = response.execution
    print(f"transpose: {', '.join(execution.variants)} on {execution.backend}")
    return array_of(response.y)


def put(channel, array):
    """Makes a tensor on the server, which lasts until its lease ends. Returns its id, which is a secret."""
    array = np.asarray(array, order="C")
    made = call(channel, "TensorService/Create", v1.CreateRequest(data_type=TYPES[array.dtype.name], shape=array.shape),
                v1.CreateResponse)
    ident, elements = made.tensor.resident.id, memoryview(array.reshape(-1).view(np.uint8))
    chunks = (v1.PutRequest(id=ident, offset=start, data=bytes(elements[start:start + CHUNK_BYTES]))
              for start in range(0, len(elements), CHUNK_BYTES))
    send = channel.stream_unary("/warpline.v1.TensorService/Put", lambda message: message.SerializeToString(),
                                v1.PutResponse.FromString)
    assert send(chunks, timeout=SECONDS_MAX).missing_bytes == 0
    return ident


def get(channel, ident):
    """The elements of a tensor on the server."""
    receive = channel.unary_stream("/warpline.v1.TensorService/Get", lambda message: message.SerializeToString(),
                                   v1.GetResponse.FromString)
    array = None
    for message in receive(v1.GetRequest(id=ident), timeout=SECONDS_MAX):
        if array is None:  # only the first message says what it is
            array = np.empty(message.tensor.shape, DTYPES[message.tensor.data_type])
            elements = array.reshape(-1).view(np.uint8)
        elements[message.offset:message.offset + len(message.data)] = np.frombuffer(message.data, np.uint8)
    return array


def check(what, result, want):
    if not np.array_equal(result, want):
        sys.exit(f"{what}: the result is wrong")


def main():
    with connect(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:50051") as channel:
        x = np.arange(700 * 900, dtype="f4").reshape(700, 900)
        check("transpose", transpose(channel, tensor(x)), x.T)

        ident = put(channel, x)
        resident = v1.Tensor(resident=v1.ResidentTensor(id=ident))
        check("transpose of what was put", transpose(channel, resident), x.T)
        check("get", get(channel, ident), x)
        call(channel, "TensorService/Drop", v1.DropRequest(id=ident), v1.DropResponse)

        try:
            transpose(channel, tensor(x), perm=(0, 0))
            sys.exit("a request with a mistake was not refused")
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.INVALID_ARGUMENT:
                raise
            print(f"refused, as it should be: {error.code().name}, {error.details()}")


main()
