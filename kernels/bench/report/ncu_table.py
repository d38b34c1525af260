"""Turns what Nsight Compute says of `warpline-bench-kernels --mode=once` into two Markdown tables: what each variant
did, and what it holds of a multiprocessor and waits for.

Usage: ncu_table.py TITLE ONCE.json NCU.csv

NCU.csv is the output of `ncu --csv --page raw`. The kernels of a variant follow a kernel VariantMarker, whose number
of blocks is the variant's place among the rows of ONCE.json. Counts of a variant's kernels are added up, ratios are
those of its longest kernel. The achieved rate is that of the least that must move, or of the arithmetic, in the time
of its kernels. Metrics that the chip does not have are left out.
"""

import csv
import io
import json
import re
import sys

# Heading, metrics that are added up or of which the first is taken, and the divisor.
SUMS = (("us", ("gpu__time_duration.sum",), 1e3),
        ("shared-load conflicts", ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",), 1),
        ("shared-store conflicts", ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",), 1),
        ("DRAM read MB", ("dram__bytes_read.sum",), 1e6),
        ("DRAM written MB", ("dram__bytes_write.sum",), 1e6),
        ("tensor instructions", ("sm__inst_executed_pipe_tensor.sum",), 1))
# This pipe also moves constants into registers, by HFMA2: no products of matrices.
TENSOR_MOVES = "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum"
RATIOS = (("sectors/load", "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio"),
          ("sectors/store", "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio"))
# What the longest kernel holds and reaches: heading, metric, divisor, decimals.
RESOURCES = (("registers", "launch__registers_per_thread", 1, 0),
             ("threads", "launch__block_size", 1, 0),
             ("shared KiB", "launch__shared_mem_per_block", 1024, 1),
             ("CTAs", "launch__grid_size", 1, 0),
             ("occupancy %", "sm__maximum_warps_per_active_cycle_pct", 1, 0),
             ("reached %", "sm__warps_active.avg.pct_of_peak_sustained_active", 1, 0),
             ("L1 hits %", "l1tex__t_sector_hit_rate.pct", 1, 0),
             ("L2 hits %", "lts__t_sector_hit_rate.pct", 1, 0),
             ("DRAM %", "dram__throughput.avg.pct_of_peak_sustained_elapsed", 1, 0),
             ("issue slots %", "smsp__issue_active.avg.pct_of_peak_sustained_active", 1, 0))
STALL = "smsp__average_warps_issue_stalled_%s_per_issue_active.ratio"
STALLS = ("long_scoreboard", "short_scoreboard", "barrier", "mio_throttle", "lg_throttle", "math_pipe_throttle", "wait",
          "not_selected", "no_instruction", "membar", "drain", "gmma", "tex_throttle", "imc_miss", "branch_resolve", "sleeping",
          "dispatch_stall")
MARKER = "VariantMarker"
SCALES = {"": 1, "byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9,
          "nsecond": 1, "usecond": 1e3, "msecond": 1e6, "second": 1e9, "ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


def metrics():
    """Names to ask ncu for."""
    return ([name for _, group, _ in SUMS for name in group] + [TENSOR_MOVES] + [name for _, name in RATIOS]
            + [name for _, name, _, _ in RESOURCES] + [STALL % name for name in STALLS])


def number(cell):
    """None for what is not a number; ncu groups thousands with commas."""
    try:
        return float(cell.replace(",", ""))
    except ValueError:
        return None


def read_rows(text):
    """Each kernel as {metric or column: value}, in ns and bytes. Lines before the header are the program's own."""
    lines = text.splitlines()
    begin = next((i for i, content in enumerate(lines) if content.startswith('"ID"')), None)
    if begin is None:
        return []
    reader = csv.reader(io.StringIO("\n".join(content for content in lines[begin:] if content.startswith('"'))))
    header = next(reader)
    rows, units = [], [""] * len(header)
    for cells in reader:
        if cells[0] == "":  # the row of units, below the header
            units = cells
            continue
        row = {}
        for name, unit, cell in zip(header, units, cells):
            value = number(cell)
            row[name] = cell if value is None else value * SCALES.get(unit, 1)
        rows.append(row)
    return rows


def blocks_of(row):
    """Of the grid, "(3, 1, 1)"."""
    return int(re.search(r"\d+", str(row["Grid Size"]))[0])


def by_variant(rows):
    """Kernels of each variant by its number, from 1."""
    groups, current = {}, None
    for row in rows:
        if MARKER in str(row["Kernel Name"]):
            current = blocks_of(row)
            groups[current] = []
        elif current is not None:
            groups[current].append(row)
    return groups


def matching(row, name):
    """The values of a metric, or of those whose names begin so."""
    return [value for key, value in row.items() if (key == name or key.startswith(name)) and isinstance(value, float)]


def summary(kernels):
    """{heading: text} of one variant."""
    cells = {}
    for heading, names, divisor in SUMS:
        values = [max(found) for row in kernels for name in names if (found := matching(row, name))]
        if values:
            moves = [max(matching(row, TENSOR_MOVES), default=0) for row in kernels if "tensor" in heading]
            total = (sum(values) - sum(moves)) / divisor
            cells[heading] = f"{total:,.1f}" if divisor > 1 else f"{total:,.0f}"
    longest = max(kernels, key=lambda row: sum(matching(row, "gpu__time_duration.sum")), default={})
    for heading, name in RATIOS:
        if found := matching(longest, name):
            cells[heading] = f"{found[0]:.1f}"
    cells["kernels"] = str(len(kernels))
    return cells


def resources(kernels):
    """{heading: text} of the longest kernel of one variant."""
    longest = max(kernels, key=lambda row: sum(matching(row, "gpu__time_duration.sum")), default={})
    cells = {}
    for heading, name, divisor, decimals in RESOURCES:
        if found := matching(longest, name):
            cells[heading] = f"{found[0] / divisor:.{decimals}f}"
    stalls = [(found[0], name) for name in STALLS if (found := matching(longest, STALL % name))]
    if stalls:
        most, name = max(stalls)
        cells["waits most for"] = f"{name} {most:.1f}"
    return cells


def rate(case, kernels):
    """{heading: text}: what the case counts, by the time of the kernels."""
    seconds = sum(max(matching(row, "gpu__time_duration.sum"), default=0) for row in kernels) / 1e9
    if not seconds:
        return {}
    if case["unit"] == "FLOP/s":
        return {"TFLOP/s": f"{case['flops'] / seconds / 1e12:.3g}"}
    return {"GB/s": f"{case['bytes'] / seconds / 1e9:,.0f}"}


def lines_of(headings, rows):
    """A Markdown table of the headings that any row has."""
    used = [heading for heading in headings if any(heading in cells for _, cells in rows)]
    lines = ["", "| variant | " + " | ".join(used) + " |", "|---" * (len(used) + 1) + "|"]
    return lines + [f"| {name} | " + " | ".join(cells.get(heading, "-") for heading in used) + " |" for name, cells in rows]


def table(title, once, text):
    groups = by_variant(read_rows(text))
    did, holds = [], []
    for case in once["cases"]:  # one case a run of ncu
        for number_of, row in enumerate(case["rows"], start=1):
            if groups.get(number_of):
                did.append((row["name"], summary(groups[number_of]) | rate(case, groups[number_of])))
                holds.append((row["name"], resources(groups[number_of])))
    headings = ["us", "GB/s", "TFLOP/s"] + [sum_[0] for sum_ in SUMS[1:]] + [ratio[0] for ratio in RATIOS] + ["kernels"]
    lines = [f"### {title}", *lines_of(headings, did)]
    if any(cells for _, cells in holds):
        lines += lines_of([resource[0] for resource in RESOURCES] + ["waits most for"], holds)
    return "\n".join(lines) + "\n"


def main():
    if sys.argv[1:] == ["--metrics"]:
        print("\n".join(metrics()))
        return
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    with open(sys.argv[2], encoding="utf-8") as file:
        once = json.load(file)
    with open(sys.argv[3], encoding="utf-8", errors="replace") as file:
        print(table(sys.argv[1], once, file.read()))


if __name__ == "__main__":
    main()
