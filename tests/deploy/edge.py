"""HAProxy with deploy/haproxy/edge.cfg in front of a daemon, and what both need: a certificate, tokens."""

import os
import re
import shutil
import socket
import subprocess
import sys

from daemon import environment, wait_until
from dashboard import ROOT

CONFIG = ROOT / "deploy/haproxy/edge.cfg"
SKIPPED = 77


def skip_without_tools():
    """Ends the program with SKIPPED, and says why, where something is missing."""
    for tool in ("haproxy", "openssl", "setpriv"):
        if not shutil.which(tool):
            print(f"skipped: there is no {tool}")
            sys.exit(SKIPPED)
    try:
        import grpc  # noqa: F401
    except ImportError as error:
        print(f"skipped: {error}")
        sys.exit(SKIPPED)


def certificate(folder):
    """Makes PEM files: edge.pem with key and certificate of localhost, and ca.crt, which is the same certificate."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout",
                    f"{folder}/key", "-out", f"{folder}/ca.crt"], check=True, capture_output=True)
    with open(f"{folder}/edge.pem", "w") as both:
        for name in ("ca.crt", "key"):
            with open(f"{folder}/{name}") as part:
                both.write(part.read())


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Proxy:
    """HAProxy with the file that we ship, its names of files, ports and users replaced. Ends with the `with` block.
    server: the address of a daemon's --proxy-listen."""

    def __init__(self, folder, server):
        self.address = f"127.0.0.1:{free_port()}"
        text = CONFIG.read_text()
        for wanted, here in {"user haproxy": "", "group haproxy": "", "bind :50443": f"bind {self.address}",
                             "/etc/warpline/edge.pem": f"{folder}/edge.pem", "server one 127.0.0.1:50052": f"server one {server}",
                             "bind 127.0.0.1:8404": f"bind 127.0.0.1:{free_port()}"}.items():
            # Not in comments.
            text, times = re.subn(rf"(?m)^(\s*[^#\n]*){re.escape(wanted)}", lambda found: found[1] + here, text)
            if times != 1:
                sys.exit(f"{CONFIG} has {wanted!r} {times} times")
        path = f"{folder}/edge.cfg"
        with open(path, "w") as config:
            config.write(text)
        self.log = open(f"{folder}/haproxy.log", "w")
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "haproxy", "-db", "-f", path],
                                        stdout=self.log, stderr=self.log)
        wait_until("HAProxy listens", self.listens)

    def listens(self):
        if self.process.poll() is not None:
            with open(self.log.name) as log:
                sys.exit(f"HAProxy has ended: {log.read()}")
        host, _, port = self.address.rpartition(":")
        with socket.socket() as probe:
            return probe.connect_ex((host, int(port))) == 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.log.close()


def make_tokens(warplined, folder, *owners):
    """tokens.toml of these owners, whose tokens lie beside it."""
    with open(f"{folder}/tokens.toml", "w") as file:
        for owner in owners:
            made = subprocess.run([warplined, f"--new-token={owner}"], capture_output=True, text=True, check=True,
                                  env=environment(warplined))
            file.write(made.stdout)
            with open(f"{folder}/{owner}", "w") as token:
                token.write(made.stderr.strip())
            os.chmod(token.name, 0o600)
    os.chmod(file.name, 0o600)
