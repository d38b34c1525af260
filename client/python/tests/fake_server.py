"""A gRPC server that answers as a test says."""

import contextlib
from concurrent import futures

import grpc


@contextlib.contextmanager
def serving(answer):
    """`answer(method, request, context)` gives the response's bytes. Yields the address."""

    class Handler(grpc.GenericRpcHandler):
        def service(self, details):
            return grpc.unary_unary_rpc_method_handler(lambda r, c: answer(details.method, r, c))

    server = grpc.server(futures.ThreadPoolExecutor(4), options=[("grpc.max_receive_message_length", -1)])
    server.add_generic_rpc_handlers((Handler(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()
