"""What a user would write for the chain of chain_bench: one method of a Python gRPC service over torch.

Usage: chain_rival.py SIDE ROUNDS. Server and client are two processes; prints the median seconds as JSON.
"""

import json
import statistics
import subprocess
import sys
import time
from concurrent import futures

import grpc

OPTIONS = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]


def serve():
    import torch

    def chain(request, _):
        data = torch.frombuffer(bytearray(request), dtype=torch.bfloat16).cuda()
        side = int((data.numel() // 2) ** 0.5)
        a, b = data.reshape(2, side, side)
        return (a @ b).t().sum(1).cpu().view(torch.int16).numpy().tobytes()

    handler = grpc.method_handlers_generic_handler("Chain", {"Run": grpc.unary_unary_rpc_method_handler(chain)})
    server = grpc.server(futures.ThreadPoolExecutor(4), options=OPTIONS)
    server.add_generic_rpc_handlers((handler,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    sys.stdin.read()


def main(side, rounds):
    import torch

    with subprocess.Popen([sys.executable, __file__, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as server:
        channel = grpc.insecure_channel(f"127.0.0.1:{int(server.stdout.readline())}", options=OPTIONS)
        call = channel.unary_unary("/Chain/Run")
        matrices = torch.randn(2, side, side).to(torch.bfloat16).view(torch.int16).numpy()
        seconds = []
        for _ in range(rounds + 2):
            start = time.perf_counter()
            call(matrices.tobytes())
            seconds.append(time.perf_counter() - start)
        server.stdin.close()
    print(json.dumps({"seconds": statistics.median(seconds[2:])}))


if sys.argv[1] == "serve":
    serve()
else:
    main(int(sys.argv[1]), int(sys.argv[2]))
