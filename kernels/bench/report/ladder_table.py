"""Makes the tables of kernels/ladder/README.md: each operation's variants as one climbs, what they are, how fast they
were, what they hold of a multiprocessor and what they wait for.

Usage: ladder_table.py BENCH RESULTS [PAGE]
       ladder_table.py --cases RESULT.json

BENCH is warpline-bench-kernels, whose --list has the rows; RESULTS a folder with ladder.json and ncu.md, which
tests/gpu/ladder writes. Prints the tables, or puts them into PAGE between its two markers. What was not measured is
"-". With --cases: tables of all cases of a result, a column each. Needs Python's standard library only.
"""

import json
import os
import pathlib
import subprocess
import sys

BEGIN, END = "<!-- ladder: made by kernels/bench/report/ladder_table.py -->", "<!-- end of ladder -->"
# Of each operation, the cases of which times are shown, and the profiles that say what a kernel holds: the first that
# has the variant.
TIMES = {"transpose": ("transpose f32 8192x8192",), "gemm": ("gemm f32 4096x4096x4096", "gemm bf16 4096x4096x4096"),
         "reduce": ("reduce f32 16384x16384 all",), "map": ()}
PROFILES = {"transpose": ("transpose f32 4096x4096",), "gemm": ("gemm f32 1024^3", "gemm bf16 2048^3"),
            "reduce": ("reduce f32 2^24, all",), "map": ()}
# The names that some kernels have now, and those by which older runs know them.
RENAMED = {("transpose", "tiles"): "swizzled_packed", ("reduce", "rows"): "vectorized"}
HOLDS = ("registers", "shared KiB", "occupancy %", "reached %", "waits most for")
ROOT = pathlib.Path(__file__).resolve().parents[3]


def rows_of(listing):
    """{operation: [(step, name, summary)]} of --list, in its order."""
    rows = {}
    for line in listing.splitlines():
        operation, step, name, summary = line.split(None, 3)
        rows.setdefault(operation, []).append((step, name, summary))
    return rows


def times_of(result):
    """{case: {variant: "133.1 us, 95 %"}}; of the cases with rotating buffers."""
    times = {}
    for case in result["cases"]:
        if case["buffers"] == "rotating":
            times[case["label"]] = {row["name"]: f"{row['seconds'] * 1e6:,.1f} us, {100 * row['roof_ratio']:.0f} %"
                                    for row in case["rows"] if row["status"] == "ok" and not row["is_baseline"]}
    return times


def profiles_of(markdown):
    """{title: {variant: {heading: cell}}} of the tables that begin with registers."""
    profiles, title, headings = {}, None, None
    for line in markdown.splitlines():
        if line.startswith("### "):
            title, headings = line[4:], None
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("| ") else None
        if cells is None:
            continue
        if cells[0] == "variant":
            headings = cells[1:] if "registers" in cells else None
        elif headings:
            profiles.setdefault(title, {})[cells[0]] = dict(zip(headings, cells[1:]))
    return profiles


def file_of(operation, name):
    """Of a rung that is one file: that of the server, or that of the ladder alone."""
    of_server = f"kernels/{operation}/{'naive' if name == 'naive_read' else name}.cu"
    return of_server if (ROOT / of_server).exists() else f"kernels/ladder/{operation}/{name}.cu"


def link(operation, name):
    file = file_of(operation, name)
    return f"[{name}]({os.path.relpath(file, 'kernels/ladder')})" if (ROOT / file).exists() else name


def table(operation, rows, times, profiles):
    shown = TIMES[operation]
    holds = HOLDS if PROFILES[operation] else ()
    headings = ["step", "variant", "what it is"] + [case.split(" ", 1)[1] for case in shown] + list(holds)
    lines = ["| " + " | ".join(headings) + " |", "|---" * len(headings) + "|"]
    for step, name, summary in rows:
        old = RENAMED.get((operation, name), name)
        held = next((of_case[known] for title in PROFILES[operation] for of_case in [profiles.get(title, {})]
                     for known in (name, old) if known in of_case), {})
        cells = [step, link(operation, name), summary]
        cells += [times.get(case, {}).get(name, times.get(case, {}).get(old, "-")) for case in shown]
        lines.append("| " + " | ".join(cells + [held.get(heading, "-") for heading in holds]) + " |")
    return "\n".join(lines)


def tables(listing, result, markdown):
    times, profiles = times_of(result), profiles_of(markdown)
    return "\n\n".join(f"### {operation}\n\n{table(operation, rows, times, profiles)}"
                       for operation, rows in rows_of(listing).items()) + "\n"


def case_tables(result):
    """Of each operation, all rows of all its cases: time, rate and share of the roof."""
    lines = []
    for operation in dict.fromkeys(case["op"] for case in result["cases"]):
        cases = [case for case in result["cases"] if case["op"] == operation]
        names = list(dict.fromkeys(row["name"] for case in cases for row in case["rows"]))
        unit, scale = ("TFLOP/s", 1e12) if cases[0]["unit"] == "FLOP/s" else ("GB/s", 1e9)
        warm = [" warm" if case["buffers"] == "warm" else "" for case in cases]
        heads = [case["label"].split(" ", 1)[1] + what for case, what in zip(cases, warm)]
        lines += [f"## {operation.capitalize()}", "", f"us, and {unit} (% of the roof):", "",
                  "| variant | " + " | ".join(heads) + " |", "|---" * (len(cases) + 1) + "|"]
        for name in names:
            cells = []
            for case in cases:
                row = next((row for row in case["rows"] if row["name"] == name), None)
                if row is None or row["status"] != "ok":
                    cells.append("left out" if row and row["status"].startswith("left out") else "-")
                else:
                    cells.append(f"{row['seconds'] * 1e6:.1f}, {row['rate'] / scale:.4g} ({100 * row['roof_ratio']:.0f} %)")
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)


def replaced(page, made):
    """The page with other text between its markers."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n\n{made}\n{END}{rest.split(END)[1]}"


def make(bench, results):
    listing = subprocess.run([bench, "--list"], check=True, capture_output=True, text=True).stdout
    results = pathlib.Path(results)
    return tables(listing, json.loads((results / "ladder.json").read_text()), (results / "ncu.md").read_text())


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    if sys.argv[1] == "--cases":
        print(case_tables(json.loads(pathlib.Path(sys.argv[2]).read_text())), end="")
        return
    made = make(*sys.argv[1:3])
    if len(sys.argv) == 3:
        print(made, end="")
        return
    page = pathlib.Path(sys.argv[3])
    page.write_text(replaced(page.read_text(), made))


if __name__ == "__main__":
    main()
