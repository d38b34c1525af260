"""The Grafana dashboard as the tests see it: its panels, and its queries with Grafana's variables replaced."""

import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATH = ROOT / "deploy/grafana/dashboards/warpline.json"
# What Grafana puts there: for "All" the variable's allValue.
VARIABLES = {"$instance": ".*", "$op": ".*", "$kernel_op": ".*", "$device": ".*"}
# The cpu backend has no bus, no device memory and no graphs. It has the graph cache's series, always 0.
GPU_ONLY = {
    "warpline_allocations_total", "warpline_device_memory_bytes", "warpline_graph_cache_hits_total",
    "warpline_kernel_roof_ratio", "warpline_transfer_bytes_total",
}


def load():
    return json.loads(PATH.read_text())


def panels(dashboard):
    """The panels that show data: all but the rows, those inside collapsed rows too."""
    for panel in dashboard["panels"]:
        yield from (p for p in [panel, *panel.get("panels", [])] if p["type"] != "row")


def replaced(expr, rate_interval="10s"):
    for name, value in {"$__rate_interval": rate_interval, **VARIABLES}.items():
        expr = expr.replace(name, value)
    return expr


def queries(dashboard):
    """Yields (panel title, PromQL, legend format)."""
    for panel in panels(dashboard):
        for target in panel["targets"]:
            yield panel["title"], replaced(target["expr"]), target["legendFormat"]


def metrics_in(text):
    """Names of metrics in PromQL."""
    return set(re.findall(r"\b(?:warpline|grpc_server|process)_[a-z_]+\b", text))


def family(metric):
    """The name under which the daemon declares a metric: of a histogram's parts, the histogram."""
    return re.sub(r"_(bucket|sum|count)$", "", metric)


def needs_gpu(expr):
    """Whether a query has data on a GPU only."""
    return bool(GPU_ONLY & {family(name) for name in metrics_in(expr)})
