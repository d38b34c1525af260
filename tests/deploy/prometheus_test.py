"""A real Prometheus, set up as deploy/ does it, scrapes a real daemon under load: every query of the dashboard
returns data. Also what promtool says of the configuration and the rules.

Usage: prometheus_test.py BIN_DIR [FLAG OF warplined ...]. Exits with 77 if Prometheus is not installed.
Without a GPU it names the queries that only a GPU can answer; those must then be valid PromQL.
"""

import contextlib
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import dashboard
from dashboard import ROOT
from prometheus import DEPLOY, ask, start, start_prometheus, write_config

PATIENCE_SECONDS = 90
OPS = ["transpose", "gemm", "reduce"]
SOURCES = {"inline", "region", "resident"}
STAGES = {"plan", "admission", "queue", "copy_in", "device", "respond"}
# These may be 0 whenever they are looked at.
MAY_BE_ZERO = {
    "warpline_queue_depth", "warpline_requests_in_flight", "warpline_lane_busy", "warpline_graph_cache_entries",
    "warpline_graph_cache_evictions_total", "warpline_graph_instantiations_total", "warpline_owner_admission_bytes",
    "grpc_server_started_total", "warpline_upload_bytes",
}


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}")


def start_daemon(stack, bin_dir, directory, flags):
    """Returns its gRPC addresses, of TCP and of its unix socket, its metrics address, its backend, and the token of an
    owner who may see the metrics."""
    log = stack.enter_context(open(os.path.join(directory, "warplined.log"), "w"))
    # Owners, for the panels that show them. /metrics wants a token then.
    made = subprocess.run([os.path.join(bin_dir, "warplined"), "--new-token=prometheus"], capture_output=True, text=True,
                          check=True)
    tokens = os.path.join(directory, "tokens.toml")
    with open(tokens, "w") as file:
        file.write(f"{made.stdout}\n[owner.anonymous]\nweight = 1\n")
    # Few jobs, so that a burst is too much.
    daemon = start(stack, os.path.join(bin_dir, "warplined"), f"--listen=127.0.0.1:0,unix:{directory}/socket",
                   "--metrics-listen=127.0.0.1:0", "--max-jobs=4", f"--tokens={tokens}", *flags,
                   stdout=subprocess.PIPE, stderr=log, text=True)
    ready = daemon.stdout.readline()
    match = re.fullmatch(r"READY grpc=(\S+),(unix:\S+) metrics=(\S+) backend=(\S+)\n", ready)
    if match is None:
        sys.exit(f"warplined did not become ready: {ready!r}\n{open(log.name).read()}")
    return (*match.groups(), made.stderr.strip())


def start_load(stack, cli, server, shared):
    """Each operation at a moderate rate, a resident operand and shared memory, until the stack ends."""
    for address, rate, *options in [*((server, "40", "--op", op) for op in OPS), (server, "5", "--resident", "x"),
                                    (shared, "5", "--transport", "shm")]:
        start(stack, cli, "--server", address, "bench", *options, "--shape", "256x256", "--rate", rate,
              "--concurrency", "1", "--duration", "1h", "--warmup", "0s",
              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def await_load(url):
    """Waits until the load holds a resident tensor and a region: a burst before that would have them refused."""
    deadline = time.time() + PATIENCE_SECONDS
    for metric in ("warpline_resident_bytes", "warpline_region_bytes"):
        while not ask(url, "query", query=f"sum({metric}) > 0")["result"]:
            if time.time() > deadline:
                sys.exit(f"{metric} stays 0")
            time.sleep(0.2)


def provoke_rejections(cli, server):
    """A burst of more requests at once than the daemon admits. The CLI's exit code tells of those refused."""
    subprocess.run([cli, "--server", server, "bench", "--op", "gemm", "--shape", "256x256", "--concurrency", "32",
                    "--requests", "200", "--warmup", "0s"],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)


def what_is_missing(url, expr, legend, since):
    """What this query's answer lacks to be worth a panel, or None."""
    result = ask(url, "query_range", query=expr, start=since, end=time.time(), step=1)["result"]
    values = [value for series in result for _, text in series["values"] if math.isfinite(value := float(text))]
    if not values:
        return "no data"
    if max(values) <= 0 and not MAY_BE_ZERO & dashboard.metrics_in(expr):
        return "only zeros"
    if "{{op}}" in legend:
        wanted = set(OPS) - ({"transpose"} if "warpline_kernel_flops_total" in expr else set())
        if lacking := wanted - {series["metric"].get("op") for series in result}:
            return f"nothing of {sorted(lacking)}"
    if "{{owner}}" in legend and "anonymous" not in {series["metric"].get("owner") for series in result}:
        return "nothing of callers without a token"
    if "{{source}}" in legend and (lacking := SOURCES - {series["metric"].get("source") for series in result}):
        return f"nothing of {sorted(lacking)}"
    if "{{stage}}" in legend and (lacking := STAGES - {series["metric"].get("stage") for series in result}):
        return f"nothing of {sorted(lacking)}"
    return None


def check_queries(url, queries, burst):
    """Waits until each query has data; exits if one has none in time."""
    since = time.time()
    while True:
        burst()
        missing = {(title, expr): lack for title, expr, legend in queries
                   if (lack := what_is_missing(url, expr, legend, since))}
        if not missing:
            return
        if time.time() > since + PATIENCE_SECONDS:
            sys.exit("\n".join(f"{title}: {lack}: {expr}" for (title, expr), lack in missing.items()))
        time.sleep(1)


def check_variables(url):
    """The dashboard's own variables have something to choose from."""
    for variable in dashboard.load()["templating"]["list"]:
        if variable["type"] == "datasource":
            continue
        metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]["query"]).groups()
        if not ask(url, f"label/{label}/values", **{"match[]": metric}):
            sys.exit(f"the variable {variable['name']} has no values")


def check_scrapes_and_rules(url):
    for target in ask(url, "targets")["activeTargets"]:
        if target["health"] != "up":
            sys.exit(f"{target['scrapeUrl']}: {target['lastError']}")
    for group in ask(url, "rules")["groups"]:
        for rule in group["rules"]:
            if rule["health"] != "ok":
                sys.exit(f"rule {rule['name']}: {rule['health']} {rule.get('lastError', '')}")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if not shutil.which("prometheus") or not shutil.which("promtool"):
        print("SKIPPED: prometheus_test.py needs the Debian package prometheus")
        sys.exit(77)
    # So that the stack is unwound.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    run("promtool", "check", "config", DEPLOY / "prometheus.yml")
    run("promtool", "check", "rules", DEPLOY / "rules.yml")
    run("promtool", "test", "rules", ROOT / "tests/deploy/rules_test.yml")

    bin_dir = sys.argv[1]
    cli = os.path.join(bin_dir, "warpline")
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        server, shared, metrics, backend, token = start_daemon(stack, bin_dir, directory, sys.argv[2:])
        start_load(stack, cli, server, shared)
        url = start_prometheus(stack, directory, write_config(directory, metrics, token))
        queries = list(dashboard.queries(dashboard.load()))
        required = [query for query in queries if backend == "cuda" or not dashboard.needs_gpu(query[1])]
        await_load(url)
        check_queries(url, required, lambda: provoke_rejections(cli, server))
        print(f"backend {backend}: {len(required)} of {len(queries)} queries have data")
        for title, expr, _ in queries:
            if backend != "cuda" and dashboard.needs_gpu(expr):
                ask(url, "query", query=expr)
                print(f"SKIPPED for want of a GPU, but valid: {title}: {expr}")
        check_variables(url)
        for annotation in dashboard.load()["annotations"]["list"]:
            ask(url, "query", query=dashboard.replaced(annotation["expr"]))
        check_scrapes_and_rules(url)
    print("PASSED: tests/deploy/prometheus_test.py")


if __name__ == "__main__":
    main()
