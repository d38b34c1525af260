"""What deploy/haproxy/edge.cfg does with calls: those with a token go through, also while the daemon is started again;
those without are refused, logged and counted, and who makes many gets no further connection.

    edge_test.py --warplined PATH          77: HAProxy, openssl or Python's gRPC is missing
"""

import argparse
import sys
import tempfile
import threading
import time

from daemon import Daemon, wait_until
from edge import Proxy, certificate, free_port, make_tokens, skip_without_tools

# More than edge.cfg allows of one address in ten seconds.
REFUSALS = 130
# Longer than HAProxy waits for a server by itself, which is three seconds.
DOWN_SECONDS = 4
X = bytes(range(16))
# A TransposeRequest of 2 x 2 f32, and what must be in the answer.
REQUEST = b"\x0a\x18\x08\x0c\x12\x02\x02\x02\x42\x10" + X + b"\x12\x02\x01\x00"
ANSWER = X[:4] + X[8:12] + X[4:8] + X[12:]


class Client:
    """A channel of its own through the proxy."""

    def __init__(self, folder, address):
        import grpc
        self._error = grpc.RpcError
        with open(f"{folder}/ca.crt", "rb") as ca:
            credentials = grpc.ssl_channel_credentials(ca.read())
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.ssl_target_name_override", "localhost"),
                   ("grpc.enable_http_proxy", 0)]
        self.channel = grpc.secure_channel(address, credentials, options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()

    def code(self, authorization, method="/warpline.v1.KernelService/Transpose", request=REQUEST, want=ANSWER, text=""):
        """Of one call: "OK" if the answer is right, else the name of the status, which must have `text` in its text."""
        try:
            answer = self.channel.unary_unary(method)(
                request, timeout=30, metadata=[("authorization", authorization)] if authorization else [])
            return "OK" if want in answer else "a wrong result"
        except self._error as error:
            return error.code().name if text in error.details() else f"{error.code().name}: {error.details()}"


def expect(what, got, want):
    if got != want:
        sys.exit(f"{what}: {got!r} instead of {want!r}")


def refused(folder, proxy, log):
    """Last: afterwards this address is shut out."""
    with Client(folder, proxy.address) as client:
        codes = {client.code("", text="wants authorization: Bearer TOKEN") for _ in range(REFUSALS)}
        expect("calls without a token", codes, {"UNAUTHENTICATED"})
    with Client(folder, proxy.address) as client:
        expect("a new connection of an address with many refusals", client.code(proxy.token), "UNAVAILABLE")
    lines = [line for line in open(log, errors="replace").read().splitlines() if " 401 " in line]
    if len(lines) != REFUSALS or any("127.0.0.1:" not in line for line in lines):
        sys.exit(f"{REFUSALS} refusals are {len(lines)} lines of the log, the first: {lines[:1]}")


def restarted(folder, start, proxy):
    """Calls that come while the daemon is away wait for the next one. Returns the next one."""
    codes = []
    with Client(folder, proxy.address) as client:
        caller = threading.Thread(target=lambda: codes.append(client.code(proxy.token)))
        caller.start()
        time.sleep(DOWN_SECONDS)
        daemon = start()
        caller.join()
    expect("a call during a restart", codes, ["OK"])
    return daemon


def main():
    parser = argparse.ArgumentParser(description="deploy/haproxy/edge.cfg before a daemon.")
    parser.add_argument("--warplined", required=True)
    arguments = parser.parse_args()
    skip_without_tools()
    with tempfile.TemporaryDirectory(prefix="edge") as folder:
        certificate(folder)
        make_tokens(arguments.warplined, folder, "alice")
        token = open(f"{folder}/alice").read()
        port, proxied = free_port(), free_port()

        def start():
            return Daemon(arguments.warplined, "--backend=cpu", f"--tokens={folder}/tokens.toml", "--access-log=-",
                          listen=f"127.0.0.1:{port}", proxied=f"127.0.0.1:{proxied}", token=token, log=f"{folder}/log")

        daemon = start()
        with Proxy(folder, daemon.proxied_address) as proxy:
            proxy.token = f"Bearer {token}"
            with Client(folder, proxy.address) as client:
                expect("a call with a token", client.code(proxy.token), "OK")
                expect("the scheme in small letters", client.code(f"bearer {token}"), "OK")
                expect("another token", client.code(f"Bearer {'0' * len(token)}"), "UNAUTHENTICATED")
                # Its answer is SERVING: field 1, value 1.
                expect("a health check without a token", client.code("", "/grpc.health.v1.Health/Check", b"", b"\x08\x01"), "OK")
            expect("the daemon's exit code", daemon.stop(), 0)
            daemon = restarted(folder, start, proxy)
            refused(folder, proxy, proxy.log.name)
        wait_until("the daemon is at rest", lambda: not daemon.metrics().work())
        expect("the daemon's exit code", daemon.stop(), 0)


if __name__ == "__main__":
    main()
