"""Draws the results of warpline-bench-kernels: a bar chart of each ladder and a roofline, as SVG.

Usage: plot_ladder.py RESULT.json OUT_DIR

Needs Python's standard library only. Colours are readable on light and on dark pages; no fonts are fetched.
"""

import json
import math
import os
import re
import sys
from xml.sax.saxutils import escape, quoteattr

FONT = "font-family='Helvetica, Arial, sans-serif'"
INK = "#7a7f87"  # in the middle of light and dark: readable on both
OURS, OTHERS, ROOF = "#2f81f7", "#8b949e", "#d9822b"
SERIES = ("#2f81f7", "#2da44e", "#bf4bb5", "#c93c37", "#1b9aaa", "#b08800", "#8250df", "#e85aad", "#57ab5a", "#6e7681")
BAR, GAP, LABEL, CHART, TOP = 18, 7, 170, 420, 64


def measured(case):
    return [row for row in case["rows"] if row["status"] == "ok"]


def unit_of(case):
    return (1e12, "TFLOP/s") if case["unit"] == "FLOP/s" else (1e9, "GB/s")


def file_name(case):
    return re.sub(r"[^a-z0-9]+", "_", case["label"].lower()).strip("_")


def text(x, y, content, size=12, anchor="start", fill=INK, weight="normal"):
    return (f"<text x='{x:.1f}' y='{y:.1f}' {FONT} font-size='{size}' text-anchor='{anchor}' fill='{fill}' "
            f"font-weight='{weight}'>{escape(content)}</text>")


def line(x1, y1, x2, y2, colour=INK, dash="", width=1):
    dashes = f" stroke-dasharray='{dash}'" if dash else ""
    return (f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='{colour}' "
            f"stroke-width='{width}'{dashes}/>")


def svg(width, height, title, parts):
    return (f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' "
            f"viewBox='0 0 {width} {height}' role='img' aria-label={quoteattr(title)}>\n"
            f"<title>{escape(title)}</title>\n" + "\n".join(parts) + "\n</svg>\n")


def source(result):
    made_up = "MADE-UP NUMBERS, " if result.get("made_up") else ""
    return f"{made_up}{result['gpu']['name']}, CUDA {result['cuda_version']}, commit {result['commit'][:12]}"


def bar_chart(result, case):
    """One bar a measured row, fastest first, as long as its rate; None if nothing was measured."""
    rows = sorted(measured(case), key=lambda row: -row["rate"])
    if not rows:
        return None
    scale, unit = unit_of(case)
    most = max([row["rate"] for row in rows] + [case["roof"]])
    parts = [text(10, 20, case["label"], 15, weight="bold"),
             text(10, 38, f"{unit}, longer is faster; {case['buffers']} buffers; dashed: {case['roof_name'] or 'no roof'}",
                  11),
             text(10, 53, source(result), 11)]
    y = TOP
    for row in rows:
        length = CHART * row["rate"] / most
        value = f"{row['rate'] / scale:.3g}" if row["rate"] < 100 * scale else f"{row['rate'] / scale:.0f}"
        ratio = f"  {100 * row['roof_ratio']:.0f} %" if row["roof_ratio"] else ""
        colour = OTHERS if row["is_baseline"] else OURS
        parts.append(text(LABEL - 8, y + BAR - 5, row["name"], 12, "end"))
        parts.append(f"<rect class='bar' data-name={quoteattr(row['name'])} x='{LABEL}' y='{y}' "
                     f"width='{length:.3f}' height='{BAR}' fill='{colour}'/>")
        parts.append(text(LABEL + length + 6, y + BAR - 5, value + ratio, 11))
        y += BAR + GAP
    if case["roof"]:
        x = LABEL + CHART * case["roof"] / most
        parts.append(line(x, TOP - 4, x, y, ROOF, "4 3", 1.5))
    return svg(LABEL + CHART + 110, y + 10, f"{case['label']}: {unit} of each variant", parts)


class LogAxes:
    """From intensity and rate to places on the page; both axes cover whole decades."""

    LEFT, RIGHT, TOP, BOTTOM = 70, 560, 80, 416

    def __init__(self, intensities, rates):
        self.x = (math.floor(math.log10(min(intensities))), math.ceil(math.log10(max(intensities))))
        self.y = (math.floor(math.log10(min(rates))), math.ceil(math.log10(max(rates))))
        self.x = (self.x[0], max(self.x[1], self.x[0] + 1))
        self.y = (self.y[0], max(self.y[1], self.y[0] + 1))

    def at(self, intensity, rate):
        x = (math.log10(intensity) - self.x[0]) / (self.x[1] - self.x[0])
        y = (math.log10(rate) - self.y[0]) / (self.y[1] - self.y[0])
        return self.LEFT + x * (self.RIGHT - self.LEFT), self.BOTTOM - y * (self.BOTTOM - self.TOP)

    def draw(self):
        parts = []
        for decade in range(self.x[0], self.x[1] + 1):
            x, _ = self.at(10.0 ** decade, 10.0 ** self.y[0])
            parts += [line(x, self.TOP, x, self.BOTTOM, INK, "1 4", 0.5),
                      text(x, self.BOTTOM + 16, f"{10.0 ** decade:g}", 11, "middle")]
        for decade in range(self.y[0], self.y[1] + 1):
            _, y = self.at(10.0 ** self.x[0], 10.0 ** decade)
            parts += [line(self.LEFT, y, self.RIGHT, y, INK, "1 4", 0.5),
                      text(self.LEFT - 6, y + 4, f"{10.0 ** decade / 1e12:g}", 11, "end")]
        parts.append(text((self.LEFT + self.RIGHT) / 2, self.BOTTOM + 36, "operations per byte that must move", 12, "middle"))
        parts.append(text(self.LEFT, self.TOP - 10, "TFLOP/s", 11))
        return parts


def roofline(result):
    """Products and sums by intensity and rate, and the measured roofs; None if there are none.

    Transpositions compute nothing and have no place here. Cases in the L2 neither: the memory's roof is not theirs.
    Sums only read, which is faster than to copy: both slopes are drawn.
    """
    copy, read = (result.get("roofs", {}).get(name, 0) for name in ("copy", "read"))
    cases = [case for case in result["cases"]
             if case["flops"] and measured(case) and (case["op"] == "gemm" or case["buffers"] == "rotating")]
    if not cases or not copy:
        return None
    ceilings = sorted(((rate, name) for name, rate in result["roofs"].get("gemm", {}).items() if rate), reverse=True)
    points = []
    for case in cases:
        for row in measured(case):
            points.append((case, row, case["flops"] / case["bytes"], case["flops"] / row["seconds"]))
    top = max([rate for rate, _ in ceilings] + [point[3] for point in points])
    axes = LogAxes([point[2] for point in points] + [top / copy], [point[3] for point in points] + [top])
    parts = [text(10, 20, "Roofline, measured roofs", 15, weight="bold"),
             text(10, 38, f"slopes: device copy, {copy / 1e9:.0f} GB/s, dashed: reading, {read / 1e9:.0f}; "
                          "ceilings: cuBLASLt at its best in this run", 11),
             text(10, 53, source(result), 11), *axes.draw()]
    lowest = 10.0 ** axes.x[0]
    x_end, y_start = 10.0 ** axes.x[1], 10.0 ** axes.y[0]
    for slope, dash in ((copy, ""), (read, "5 3")):
        if slope:
            begin = max(lowest, y_start / slope)
            parts.append(line(*axes.at(begin, begin * slope), *axes.at(top / slope, top), ROOF, dash, 1.5))
    for rate, name in ceilings:
        parts.append(line(*axes.at(rate / copy, rate), *axes.at(x_end, rate), ROOF, "5 3", 1.5))
        x, y = axes.at(rate / copy, rate)
        parts.append(text(x - 6, y + 4, name, 11, "end", ROOF))
    legend = axes.TOP + 6
    for index, case in enumerate(cases):
        colour = SERIES[index % len(SERIES)]
        for other, row, intensity, rate in points:
            if other is case:
                x, y = axes.at(intensity, rate)
                shape = "none" if row["is_baseline"] else colour
                parts.append(f"<circle class='point' cx='{x:.2f}' cy='{y:.2f}' r='4' fill='{shape}' stroke='{colour}' "
                             f"stroke-width='1.5'><title>{escape(case['label'])}: {escape(row['name'])}</title></circle>")
        parts.append(f"<circle cx='{axes.RIGHT + 16}' cy='{legend}' r='4' fill='{colour}'/>")
        parts.append(text(axes.RIGHT + 26, legend + 4, case["label"], 11))
        legend += 18
    return svg(axes.RIGHT + 240, axes.BOTTOM + 50, "Roofline of products and sums", parts)


def charts(result):
    """(file name, SVG) of everything there is to draw."""
    for case in result["cases"]:
        if chart := bar_chart(result, case):
            yield f"ladder_{file_name(case)}.svg", chart
    if chart := roofline(result):
        yield "roofline.svg", chart


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        result = json.load(file)
    os.makedirs(sys.argv[2], exist_ok=True)
    for name, chart in charts(result):
        with open(os.path.join(sys.argv[2], name), "w", encoding="utf-8") as file:
            file.write(chart)
        print(os.path.join(sys.argv[2], name))


if __name__ == "__main__":
    main()
