"""The self-contained wheel of the Python package, in a fresh environment, in processes that have other copies of gRPC.

    wheel_test.py BUILD_DIR [--wheel FILE]

The wheel is that of deploy/make_wheels, with the library of BUILD_DIR, unless one is given. grpcio and
pyarrow are the newest of PyPI: both contain gRPC, protobuf and Abseil of other versions. Each order of importing them and
our library is a process of its own, which calls with each of them after each import, over TLS too, and again at the end.
Exits with 77 where PyPI does not answer.
"""

import argparse
import itertools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BESIDE = ["grpcio", "pyarrow"]
SECONDS_MAX = 120

# Runs in the environment: NAME... are what it imports, in this order.
CHILD = r"""
import importlib.util, os, ssl, sys
import numpy as np

unix, tls, ca = sys.argv[1:4]
names = sys.argv[4:]


class Core:
    "The library by itself, without the package's own imports."

    def __init__(self):
        folder = importlib.util.find_spec("warpline").submodule_search_locations[0]
        spec = importlib.util.spec_from_file_location("warpline._core", f"{folder}/_core.abi3.so")
        core = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(core)
        self.ffi, self.lib = core.ffi, core.lib
        self.clients = [self.client(unix), self.client(tls, ca)]

    def check(self, error):
        if error != self.ffi.NULL:
            raise RuntimeError(self.ffi.string(self.lib.warpline_error_message(error)).decode())

    def client(self, target, ca=None):
        options = self.ffi.new("warpline_client_options*")
        options.size = self.ffi.sizeof("warpline_client_options")
        path = self.ffi.new("char[]", ca.encode()) if ca else self.ffi.NULL
        options.tls_ca = path
        client = self.ffi.new("warpline_client**")
        self.check(self.lib.warpline_client_create(target.encode(), options, client))
        return client[0]

    def call(self):
        ffi, lib = self.ffi, self.lib
        x = np.arange(6, dtype="f4").reshape(2, 3)
        shape = ffi.new("int64_t[]", x.shape)
        array = ffi.new("DLTensor*", {"data": ffi.from_buffer(x), "device": (lib.kDLCPU, 0), "ndim": 2,
                                      "dtype": (lib.kDLFloat, 32, 1), "shape": shape})
        name = ffi.new("char[]", b"x")
        for client in self.clients:
            program, result = ffi.new("warpline_program**"), ffi.new("warpline_result**")
            self.check(lib.warpline_program_parse(b"transpose(x)", program))
            given = ffi.new("warpline_input[1]", [{"name": name, "array": array}])
            self.check(lib.warpline_run(client, program[0], given, 1, ffi.NULL, 0, ffi.NULL, result))
            y = lib.warpline_result_array(result[0], 0)
            assert np.frombuffer(ffi.buffer(y.data, x.nbytes), "f4").tolist() == x.T.ravel().tolist()
            lib.warpline_result_free(result[0])
            lib.warpline_program_free(program[0])
            try:
                self.check(lib.warpline_program_parse(b"transpose(", program))
                raise AssertionError("no error")
            except RuntimeError:
                pass


class Package:
    def __init__(self):
        import warpline
        self.clients = [warpline.connect(unix), warpline.connect(tls, tls_ca=ca)]
        self.error = warpline.InvalidArgument

    def call(self):
        x = np.arange(6.0).reshape(2, 3)
        for client in self.clients:
            assert np.array_equal(client.transpose(x), x.T)
            try:
                client.transpose(x, variant="none such")
                raise AssertionError("no error")
            except self.error:
                pass


class Grpcio:
    def __init__(self):
        import grpc
        trusted = grpc.ssl_channel_credentials(open(ca, "rb").read())
        self.channels = [grpc.insecure_channel(unix), grpc.secure_channel(tls, trusted)]

    def call(self):
        for channel in self.channels:
            assert channel.unary_unary("/warpline.v1.InfoService/GetInfo")(b"", timeout=30)


class Flight:
    def __init__(self):
        import pyarrow
        import pyarrow.flight as flight

        class Server(flight.FlightServerBase):
            def do_get(self, context, ticket):
                return flight.RecordBatchStream(pyarrow.table({"x": [1, 2, 3]}))

        self.server = Server("grpc://127.0.0.1:0")
        self.ticket = flight.Ticket(b"x")
        self.client = flight.connect(f"grpc://127.0.0.1:{self.server.port}")

    def call(self):
        assert self.client.do_get(self.ticket).read_all()["x"].to_pylist() == [1, 2, 3]


kinds = {"core": Core, "warpline": Package, "grpcio": Grpcio, "pyarrow": Flight}
imported = []
for name in names:
    imported.append(kinds[name]())
    for each in imported:
        each.call()
for each in imported * 3:
    each.call()
print("ok")
"""


def certificates(folder):
    """The paths of a CA's certificate, a server's certificate and its key."""
    new = ["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    for command in ([*new, "-x509", "-days", "2", "-subj", "/CN=CA", "-keyout", "ca.key", "-out", "ca.crt"],
                    [*new, "-subj", "/CN=server", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key", "-out", "csr"],
                    ["openssl", "x509", "-req", "-in", "csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
                     "-days", "1", "-copy_extensions", "copy", "-out", "crt"]):
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return f"{folder}/ca.crt", f"{folder}/crt", f"{folder}/key"


def environment(folder, wheel):
    """The Python of a new virtual environment with the wheel and what it is to get along with."""
    subprocess.run(["/usr/bin/python3", "-m", "venv", f"{folder}/venv"], check=True)
    python = f"{folder}/venv/bin/python"
    done = subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel, *BESIDE])
    if done.returncode:
        print(f"SKIPPED: PyPI has no {', '.join(BESIDE)}, or not what the wheel needs")
        sys.exit(77)
    return python


def orders():
    yield ["core"]
    yield ["warpline"]
    yield from map(list, itertools.permutations(["core", *BESIDE]))
    yield from ([*BESIDE, "warpline"], ["warpline", *BESIDE])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--wheel")
    arguments = parser.parse_args()
    build = os.path.abspath(arguments.build)
    with tempfile.TemporaryDirectory() as folder:
        wheel = arguments.wheel
        if not wheel:
            made = subprocess.run([ROOT / "deploy/make_wheels", f"{folder}/wheel", "client"], stdout=subprocess.PIPE,
                                  text=True, env=os.environ | {"WARPLINE_BUILD": build})
            if made.returncode:
                sys.exit(made.returncode)
            wheel = made.stdout.strip()
        python = environment(folder, wheel)
        ca, certificate, key = certificates(folder)
        unix = f"unix:{folder}/socket"
        daemon = subprocess.Popen([f"{build}/bin/warplined", f"--listen=127.0.0.1:0,{unix}", "--metrics-listen=",
                                   "--backend=cpu", f"--tls-cert={certificate}", f"--tls-key={key}", "--grace=5s"],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        failed = 0
        try:
            addresses = daemon.stdout.readline().split()[1].removeprefix("grpc=").split(",")
            tls = next(address for address in addresses if address.startswith("127.0.0.1"))
            local = {"no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}
            for order in orders():
                done = subprocess.run([python, "-c", CHILD, unix, tls, ca, *order], cwd=folder, env=os.environ | local,
                                      timeout=SECONDS_MAX, capture_output=True, text=True)
                well = (done.returncode, done.stdout) == (0, "ok\n")
                print(f"{'PASSED' if well else 'FAILED'} {', '.join(order)}")
                if not well:
                    failed += 1
                    print(f"exit code {done.returncode}\n{done.stdout}{done.stderr[-4000:]}")
        finally:
            daemon.terminate()
            daemon.wait(60)
            daemon.stdout.close()
        sys.exit(1 if failed else 0)


main()
