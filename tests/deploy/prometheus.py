"""A real Prometheus with the configuration of deploy/, and the processes that it needs: for tests of the dashboard."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.parse

from daemon import DIRECT
from dashboard import ROOT
from edge import free_port

DEPLOY = ROOT / "deploy/prometheus"


def start(stack, *command, **options):
    """Starts a process that ends with the stack, and with this process if it is killed."""
    process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *map(str, command)], **options)

    def stop():
        process.terminate()
        try:
            process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    stack.callback(stop)
    return process


def write_config(directory, target, token):
    """The repository's configuration, with this test's target and token and an interval of a second for all."""
    config = (DEPLOY / "prometheus.yml").read_text()
    for pattern, value in [(r"warpline:9400", target), (r"scrape_interval: \S+", "scrape_interval: 1s"),
                           (r"evaluation_interval: \S+", "evaluation_interval: 1s"),
                           (r"( *)- job_name: warpline\n", rf"\g<0>\1  authorization: {{credentials: {token}}}\n")]:
        config, count = re.subn(pattern, value, config)
        if count != 1:
            sys.exit(f"prometheus.yml has {count} times {pattern!r}, and not once")
    shutil.copy(DEPLOY / "rules.yml", directory)
    path = os.path.join(directory, "prometheus.yml")
    with open(path, "w") as out:
        out.write(config)
    return path


def start_prometheus(stack, directory, config):
    """Returns its URL. Another process may take the port first: then once more."""
    log_path = os.path.join(directory, "prometheus.log")
    for attempt in range(3):
        url = f"http://127.0.0.1:{free_port()}"
        log = stack.enter_context(open(log_path, "w"))
        process = start(stack, "prometheus", f"--config.file={config}", f"--storage.tsdb.path={directory}/data{attempt}",
                        f"--web.listen-address={url.removeprefix('http://')}", stdout=log, stderr=log)
        deadline = time.monotonic() + 30
        while process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(OSError), DIRECT.open(url + "/-/ready", timeout=2):
                return url
            time.sleep(0.1)
    sys.exit(f"prometheus did not become ready\n{open(log_path).read()}")


def ask(url, path, **parameters):
    """The data of an API's answer; exits if Prometheus finds the query wrong."""
    try:
        with DIRECT.open(f"{url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}", timeout=10) as response:
            return json.load(response)["data"]
    except urllib.error.HTTPError as error:
        sys.exit(f"{path} {parameters}: {error.code} {error.read().decode()}")
