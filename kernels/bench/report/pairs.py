"""Says what a change made faster or slower: runs two builds of warpline-bench-kernels in turns, each in processes of its
own, so that clocks, heat and neighbours are the same for both.

Usage: pairs.py OLD NEW [--pairs N] [--least R] [FLAGS of the benchmark...]
Example: pairs.py /tmp/before/bin/warpline-bench-kernels build/release/bin/warpline-bench-kernels \\
             --suite breadth --ops reduce --rounds 5

Which of the two goes first changes from pair to pair. A problem has changed if the same build was the faster one in all
pairs but one in twenty, and if the median of old / new differs from 1 by more than --least (0.02). Ten pairs (the
default, and the least) agree by chance once in five hundred problems. Needs Python's standard library only.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile


def times(program, flags):
    """{problem: seconds} of one process: of the server's own choice or, of all variants, of each by its name."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "result.json")
        run = subprocess.run([program, *flags, "--json", path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                             check=False)
        if run.returncode != 0 or not os.path.exists(path):
            raise SystemExit(f"{program}: exit code {run.returncode}, {run.stderr.strip() or 'no result'}")
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
    found = {}
    for case in result["cases"]:
        own = [row for row in case["rows"] if row["status"] == "ok" and not row["is_baseline"]]
        # One problem may be measured with buffers in turns and with the same ones.
        label = f"{case['label']} ({case['buffers']})"
        for row in own:
            found[label if len(own) == 1 else f"{label}, {row['name']}"] = row["seconds"]
    return found


def measure(old, new, pairs, flags):
    """[({problem: seconds} of old, of new)], one a pair."""
    measured = []
    for pair in range(pairs):
        first, second = (old, new) if pair % 2 == 0 else (new, old)
        both = {first: times(first, flags), second: times(second, flags)}
        measured.append((both[old], both[new]))
    return measured


class Change:
    def __init__(self, label, measured):
        seconds = [(old[label], new[label]) for old, new in measured]
        ratios = [old / new for old, new in seconds]
        self.label, self.ratio = label, statistics.median(ratios)
        self.old, self.new = (statistics.median(side) for side in zip(*seconds))
        self.agreeing = max(sum(ratio > 1 for ratio in ratios), sum(ratio < 1 for ratio in ratios))
        self.pairs = len(ratios)

    def is_beyond_noise(self, least):
        return self.agreeing >= self.pairs - self.pairs // 20 and abs(self.ratio - 1) > least


def changes_of(measured):
    """Of the problems that both builds measured in all pairs."""
    common = set.intersection(*(set(old) & set(new) for old, new in measured))
    return [Change(label, measured) for label in measured[0][0] if label in common]


def report(changes, least):
    beyond = sorted((change for change in changes if change.is_beyond_noise(least)), key=lambda change: change.ratio)
    lines = [f"Changed beyond noise: {len(beyond)} of {len(changes)}, in {changes[0].pairs} pairs"]
    lines += [f"  {change.label:60} {change.old * 1e6:10.2f} -> {change.new * 1e6:10.2f} us, {change.ratio:.3f} times as fast"
              for change in beyond]
    lines.append(f"geomean of all: {math.exp(statistics.fmean(math.log(change.ratio) for change in changes)):.3f} "
                 "times as fast")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=True)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--least", type=float, default=0.02)
    own, flags = parser.parse_known_args()
    if own.pairs < 10:
        sys.exit(f"--pairs: {own.pairs}: expected 10 or more, as fewer agree by chance")
    if os.path.realpath(own.old) == os.path.realpath(own.new):
        sys.exit("OLD and NEW are the same file")
    changes = changes_of(measure(own.old, own.new, own.pairs, flags))
    if not changes:
        sys.exit("no problem was measured by both builds")
    print(report(changes, own.least))


if __name__ == "__main__":
    main()
