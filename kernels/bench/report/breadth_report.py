"""Sums up a result of `warpline-bench-kernels --suite breadth`: what a user gets of the best that is known.

Usage: breadth_report.py RESULT.json [--compare OLD.json] [--svg FILE] [--worst N]

Of each problem the best known is the fastest of all rows that compute the same: the server's choice, torch, the
libraries. A copy or a reading of the same bytes is the roof, not a rival. `--compare` lists what changed by more than
the spread of both: medians further apart than the sum of the two half ranges, and by 3 % at least.
Needs Python's standard library only.
"""

import argparse
import json
import math
import sys
from xml.sax.saxutils import escape

ROOFS = ("memcpy", "copy", "copy_shared", "read")
LARGE = 64e6  # bytes: what the figures of the project are about


def group_of(case):
    return case["op"] if case["op"] in ("transpose", "gemm", "reduce") else "elementwise"


class Problem:
    """One case: our time, the rivals', and the share of the roof."""

    def __init__(self, case):
        rows = [row for row in case["rows"] if row["status"] == "ok"]
        own = [row for row in rows if not row["is_baseline"]]
        self.label, self.group, self.bytes = case["label"], group_of(case), case["bytes"]
        self.row = own[0] if own else None
        self.seconds = self.row["seconds"] if own else math.inf
        self.roof_ratio = self.row["roof_ratio"] if own else 0
        self.rivals = {row["name"]: row["seconds"] for row in rows if row["is_baseline"] and row["name"] not in ROOFS}
        self.torch_ratio = self.rivals["torch"] / self.seconds if "torch" in self.rivals else None
        self.best_ratio = min([*self.rivals.values(), self.seconds]) / self.seconds

    @property
    def half_range(self):
        return (self.row["seconds_greatest"] - self.row["seconds_least"]) / 2


def geomean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def summarize(problems, worst):
    print(f"{'':12} {'problems':>8} {'x torch':>8} {'least':>6} {'x best':>7} {'< 0.95':>7} {'of roof':>8} {'least':>6}")
    for group in ("transpose", "reduce", "elementwise", "gemm"):
        for name, some in ((group, [p for p in problems if p.group == group]),
                           ("  >= 64 MB", [p for p in problems if p.group == group and p.bytes >= LARGE])):
            if not some or (name != group and group == "gemm"):
                continue
            torch = [p.torch_ratio for p in some if p.torch_ratio]
            roof = [p.roof_ratio for p in some if p.roof_ratio]
            behind = sum(p.best_ratio < 0.95 for p in some) / len(some)
            print(f"{name:12} {len(some):8} {geomean(torch):8.2f} {min(torch, default=math.nan):6.2f} "
                  f"{geomean(p.best_ratio for p in some):7.3f} {behind:7.0%} {geomean(roof):8.3f} "
                  f"{min(roof, default=math.nan):6.2f}")
    for title, key in (("Furthest behind the best known", lambda p: p.best_ratio),
                       ("Furthest below the roof", lambda p: p.roof_ratio or math.inf)):
        for group in ("transpose", "reduce", "elementwise", "gemm"):
            some = sorted((p for p in problems if p.group == group), key=key)[:worst]
            print(f"\n{title}: {group}")
            for p in some:
                torch = f"{p.torch_ratio:6.2f} x torch" if p.torch_ratio else " " * 14
                print(f"  {p.label:52} {p.seconds * 1e6:10.2f} us {torch} {p.best_ratio:6.2f} of the best "
                      f"{p.roof_ratio:6.2f} of the roof  {p.row['name'] if p.row else 'NOT MEASURED'}")


def compare(problems, before):
    old = {p.label: p for p in before}
    changes = []
    for p in problems:
        was = old.get(p.label)
        if was is None or was.row is None or p.row is None:
            continue
        difference = abs(p.seconds - was.seconds)
        if difference > p.half_range + was.half_range and difference > 0.03 * was.seconds:
            changes.append((was.seconds / p.seconds, p, was))
    print(f"\nChanged beyond noise: {len(changes)} of {len(problems)}")
    for ratio, p, was in sorted(changes, key=lambda change: change[0]):
        print(f"  {p.label:52} {was.seconds * 1e6:10.2f} -> {p.seconds * 1e6:10.2f} us, {ratio:.2f} times as fast")
    common = [(old[p.label].seconds / p.seconds) for p in problems if p.label in old and p.row and old[p.label].row]
    if common:
        print(f"geomean of all: {geomean(common):.3f} times as fast")


def colour(ratio):
    """From red at half of the best to green at the best."""
    share = max(0.0, min(1.0, (ratio - 0.5) / 0.5))
    return f"hsl({int(120 * share)},60%,45%)"


def heat_map(problems, path):
    columns, cell, gap, top, left = 24, 26, 3, 28, 110
    groups = [g for g in ("transpose", "reduce", "elementwise", "gemm") if any(p.group == g for p in problems)]
    y, parts = top, []
    for group in groups:
        some = [p for p in problems if p.group == group]
        parts.append(f"<text x='8' y='{y + 18}'>{group}</text>")
        for i, p in enumerate(some):
            x, row = left + i % columns * (cell + gap), y + i // columns * (cell + gap)
            torch = f", {p.torch_ratio:.2f} x torch" if p.torch_ratio else ""
            parts.append(f"<rect x='{x}' y='{row}' width='{cell}' height='{cell}' rx='3' fill='{colour(p.best_ratio)}'>"
                         f"<title>{escape(p.label)}: {p.seconds * 1e6:.1f} us{torch}, {p.roof_ratio:.2f} of the roof"
                         f"</title></rect><text class='n' x='{x + cell / 2}' y='{row + 17}'>"
                         f"{round(100 * p.best_ratio)}</text>")
        y += math.ceil(len(some) / columns) * (cell + gap) + 14
    width = left + columns * (cell + gap) + 8
    style = ("text{font:13px Helvetica,Arial,sans-serif;fill:#7a7f87}.n{font-size:10px;text-anchor:middle;fill:#fff}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{y}'><style>{style}</style>\n"
                   f"<text x='8' y='18'>Per cent of the best known for each problem (hover for names)</text>\n"
                   + "\n".join(parts) + "\n</svg>\n")


def load(path):
    with open(path, encoding="utf-8") as file:
        return [Problem(case) for case in json.load(file)["cases"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("result")
    parser.add_argument("--compare")
    parser.add_argument("--svg")
    parser.add_argument("--worst", type=int, default=10)
    flags = parser.parse_args()
    problems = load(flags.result)
    summarize(problems, flags.worst)
    if flags.compare:
        compare(problems, load(flags.compare))
    if flags.svg:
        heat_map(problems, flags.svg)
    return 0


if __name__ == "__main__":
    sys.exit(main())
