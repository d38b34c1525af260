"""The dashboard, drawn with Grafana's own components from a real Prometheus that scrapes a real daemon under load: each
panel is drawn, what it shows is what Prometheus answered, and the page has no errors.

Usage: picture_test.py BIN_DIR SCRATCH_DIR [OPTION ...] [FLAG OF warplined ...]. Exits with 77, and says why, if Node,
Chromium, Prometheus, NumPy or npm's registry is missing. `--seconds=600 --scrape=5 --rows=29 --png=docs/dashboard.png`
makes the picture in the README.
"""

import argparse
import contextlib
import importlib.util
import math
import pathlib
import re
import shutil
import signal
import sys
import tempfile
import time

import dashboard
import picture_browser
import picture_data
import prometheus

# A line at 0 has more, and the mark of a restart alone has fewer.
COLOURED_LEAST = 400


def skip_without_tools(scratch):
    lacking = next((tool for tool in ("prometheus", "setpriv") if not shutil.which(tool)), None)
    lacking = lacking or (None if importlib.util.find_spec("numpy") else "NumPy") or picture_browser.missing(scratch)
    if lacking:
        print(f"SKIPPED: picture_test.py needs {lacking}, which is not here")
        sys.exit(77)


def gather(bin_dir, flags, seconds, scrape_seconds):
    """Data of so many seconds of load. What the panels show begins when rates have had enough scrapes."""
    from picture_load import Load
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        load = stack.enter_context(Load(bin_dir, folder, flags))
        config = prometheus.write_config(folder, load.metrics, load.token, f"{scrape_seconds}s")
        url = prometheus.start_prometheus(stack, folder, config)
        begin = time.time() + 6 * scrape_seconds
        load.run(seconds + 6 * scrape_seconds)
        return picture_data.collect(url, begin, time.time(), scrape_seconds)


def has_value(series):
    return any(math.isfinite(float(text)) for _, text in series["values"])


def legends(panel, answers):
    """The names of those series that have a value."""
    for target in panel["targets"]:
        for series in answers[target["refId"]]:
            if has_value(series):
                yield re.sub(r"{{(\w+)}}", lambda label: series["metric"].get(label[1], ""), target["legendFormat"])


def what_is_wrong(panel, answers, drawn):
    """Yields what a panel lacks. Whether what only a GPU can answer has data is for prometheus_test.py."""
    if drawn["text"] is None:
        yield "not drawn"
        return
    everywhere = [target for target in panel["targets"] if not dashboard.needs_gpu(target["expr"])]
    if not everywhere:
        return
    for target in everywhere:
        if not any(has_value(series) for series in answers[target["refId"]]):
            yield f"Prometheus has no data for {target['expr']}"
    if panel["type"] == "stat":
        if not re.search(r"\d", drawn["text"]):
            yield f"it says {drawn['text']!r}"
        return
    if drawn["coloured"] < COLOURED_LEAST:
        yield f"only {drawn['coloured']} pixels are coloured"
    if panel["type"] == "timeseries":
        yield from (f"no legend for {name}" for name in legends(panel, answers) if name not in drawn["text"])


def check(data, report):
    wrong = [f"error of the page: {error}" for error in report["errors"]]
    drawn = {panel["id"]: panel for panel in report["panels"]}
    panels = list(dashboard.panels(data["dashboard"]))
    if set(drawn) != {panel["id"] for panel in panels}:
        wrong.append(f"{len(drawn)} panels are on the page, and {len(panels)} in the dashboard")
    for panel in panels:
        if panel["id"] in drawn:
            wrong += [f"{panel['title']}: {lack}"
                      for lack in what_is_wrong(panel, data["answers"][panel["id"]], drawn[panel["id"]])]
    wrong += [f"no {annotation['name']} were marked" for annotation in data["annotations"] if not annotation["result"]]
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{len(panels)} panels drawn")


def options():
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir")
    parser.add_argument("scratch", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=60, help="of data on the panels")
    parser.add_argument("--scrape", type=int, default=1, help="seconds between scrapes")
    parser.add_argument("--rows", type=int, help="of the dashboard's grid on the picture; default all")
    parser.add_argument("--png", help="where a small copy goes; the large one is SCRATCH_DIR/dashboard.png")
    # Returned too: what warplined is to be started with.
    return parser.parse_known_args()


def main():
    given, flags = options()
    scratch = given.scratch.resolve()
    skip_without_tools(scratch / "page")
    # So that the stack is unwound.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    picture_browser.bundle(scratch / "page")
    data = gather(given.bin_dir, flags, given.seconds, given.scrape)
    rows = given.rows or max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in data["dashboard"]["panels"])
    png = scratch / "dashboard.png"
    report = picture_browser.draw(scratch / "page", data, png, rows)
    check(data, report)
    if given.png:
        picture_browser.quantise(png, given.png)
    print("PASSED: tests/deploy/picture_test.py")


if __name__ == "__main__":
    main()
