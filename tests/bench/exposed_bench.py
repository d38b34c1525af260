"""What it costs a server to be exposed: TLS, tokens and the access log, beside a plain one, and how long it takes to
start and to stop.

Usage: exposed_bench.py BIN_DIR. Daemons of BIN_DIR in turn, each with one of them, over TCP on this host; clients are
`warpline bench`, processes of their own. Needs `openssl` for the certificate.
"""

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import server

BIN = sys.argv[1]
BACKEND = os.environ.get("WARPLINE_TEST_BACKEND", "cuda")
ROUNDS = int(os.environ.get("WARPLINE_EXPOSED_ROUNDS", "3"))
LARGE = os.environ.get("WARPLINE_EXPOSED_LARGE", "8192x8192")
SMALL = ["--shape=32x32", "--duration=1s", "--warmup=300ms"]


def make_certificate(folder):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=bench",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{folder}/key.pem", "-out",
                    f"{folder}/cert.pem"], check=True, capture_output=True)
    os.chmod(f"{folder}/key.pem", 0o600)


def make_token(folder):
    made = subprocess.run([f"{BIN}/warplined", "--new-token", "bench"], capture_output=True, text=True, check=True)
    for name, text in (("tokens.toml", made.stdout), ("token", made.stderr)):
        with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(file.name, 0o600)


def main():
    figures = {}

    def note(kind, figure, value):
        figures.setdefault(figure, {}).setdefault(kind, []).append(value)

    with tempfile.TemporaryDirectory() as folder:
        make_certificate(folder)
        make_token(folder)
        tls = [f"--tls-cert={folder}/cert.pem", f"--tls-key={folder}/key.pem"], [f"--tls-ca={folder}/cert.pem"]
        tokens = [f"--tokens={folder}/tokens.toml"], [f"--token-file={folder}/token"]
        log = [f"--access-log={folder}/access.log"], []
        kinds = {"plain": ([], []), "TLS": tls, "tokens": tokens, "access log": log,
                 "all": (tls[0] + tokens[0] + log[0], tls[1] + tokens[1])}
        for _ in range(ROUNDS):
            for kind, (flags, client) in kinds.items():
                begun = time.monotonic()
                with server.warplined(BIN, *flags, backend=BACKEND) as measured:
                    note(kind, "start to READY, s", time.monotonic() - begun)
                    note(kind, "32x32 alone, p50, us", server.p50_us(measured.bench(*SMALL, *client)))
                    many = measured.bench(*SMALL, "--channels=4", "--concurrency=64", *client)
                    note(kind, "32x32, 64 over 4 channels, /s", server.rate(many))
                    large = measured.bench(f"--shape={LARGE}", "--requests=6", "--warmup=1s", *client)
                    note(kind, f"{LARGE} f32 inline, p50, ms", server.p50_us(large) / 1e3)
                    time.sleep(0.5)
                    stopped = time.monotonic()
                    measured.process.send_signal(signal.SIGTERM)
                    measured.process.wait()  # with a limit of time, Python would look every 50 ms only
                    note(kind, "SIGTERM to exit, idle, s", time.monotonic() - stopped)
    print("| figure | " + " | ".join(kinds) + " |\n|---|" + "---|" * len(kinds))
    for figure, values in figures.items():
        print(f"| {figure} | " + " | ".join(f"{statistics.median(values[kind]):.4g}" for kind in kinds) + " |")


main()
