"""Large requests and tensors through nginx: with deploy/nginx's file they pass, and with nginx's defaults our clients say
what is wrong.

    nginx_test.py BIN_DIR

Exits with 77 where nginx is not installed.
"""

import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from dashboard import ROOT
from edge import free_port

CONFIG = ROOT / "deploy/nginx/warpline.conf"
PATIENCE_SECONDS = 60


def warpline(bin_dir, port, *arguments):
    return subprocess.run([bin_dir / "warpline", *arguments, "--server", f"127.0.0.1:{port}"],
                          capture_output=True, text=True, timeout=PATIENCE_SECONDS)


def main():
    if shutil.which("nginx", path="/usr/sbin:/usr/bin:/sbin:/bin") is None:
        print("skipped: there is no nginx")
        sys.exit(77)
    bin_dir = pathlib.Path(sys.argv[1]).resolve()
    server, proxy, plain = free_port(), free_port(), free_port()
    with tempfile.TemporaryDirectory() as folder:
        given = CONFIG.read_text()
        for line, port in (("server 127.0.0.1:50051;", server), ("listen 127.0.0.1:50080 http2;", proxy)):
            assert given.count(line) == 1, line
        given = given.replace("127.0.0.1:50051", f"127.0.0.1:{server}").replace("127.0.0.1:50080", f"127.0.0.1:{proxy}")
        temporary = "".join(f"{kind}_temp_path {folder};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        with open(f"{folder}/nginx.conf", "w") as file:
            file.write(f"daemon off;\npid {folder}/pid;\nevents {{}}\nhttp {{\naccess_log off;\n{temporary}{given}\n"
                       f"server {{ listen 127.0.0.1:{plain} http2; location / {{ grpc_pass grpc://127.0.0.1:{server}; }} }}\n}}\n")
        daemon = subprocess.Popen([bin_dir / "warplined", "--backend=cpu", f"--listen=127.0.0.1:{server}", "--metrics-listen="],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        nginx = subprocess.Popen(["nginx", "-c", f"{folder}/nginx.conf", "-e", f"{folder}/error.log"],
                                 env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
        try:
            assert daemon.stdout.readline().startswith("READY")
            end = time.monotonic() + PATIENCE_SECONDS
            while warpline(bin_dir, proxy, "health").returncode != 0:
                assert time.monotonic() < end, "nginx does not answer"
                time.sleep(0.1)
            for shape in ("8x8", "1000x1000", "3000x3000"):
                done = warpline(bin_dir, proxy, "bench", "--op", "transpose", "--shape", shape, "--duration", "500ms",
                                "--warmup", "100ms")
                assert done.returncode == 0, f"{shape}: {done.stdout}{done.stderr}"
            assert warpline(bin_dir, plain, "health").returncode == 0
            for side in (600, 3000):  # in a message, and in ranges
                header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({side}, {side}), }}".ljust(117) + "\n"
                with open(f"{folder}/x.npy", "wb") as file:
                    file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(4 * side * side))
                done = warpline(bin_dir, plain, "transpose", f"{folder}/x.npy", "-o", f"{folder}/y.npy")
                assert done.returncode != 0 and "a proxy" in done.stderr and "client_max_body_size" in done.stderr, done.stderr
            print("requests of 256 bytes to 36 MB pass, and what nginx refuses by default is explained")
        finally:
            for process in (nginx, daemon):
                process.send_signal(signal.SIGTERM)
                process.wait(PATIENCE_SECONDS)


main()
