"""Whether a soak has gone well: what the daemon had, counted and logged, beside what it must have."""

import collections
import os
import re

import soak_watch
from soak_ledger import CODES, EVENTS, OPS, RARE

MIB = 1 << 20
# How far the memory of the last quarter may be above that of the second, in trimmed peaks. Both quarters have the same
# load and the same limits. What may differ: the plan cache fills, up to 32 MiB, as most requests have shapes of their
# own; and by chance, how much of the messages being received, of resident tensors (96 MiB at most, on the cpu backend)
# and of what malloc has not given back yet falls together. Runs of five minutes have differed by some 30 MiB. A leak
# grows with time: in an hour, with a million requests, this bound finds 100 bytes of each.
GROWTH_BYTES = 96 * MIB
# The same at rest, when malloc has given back all whole pages: what is left are plans, and pages that are partly used.
REST_GROWTH_BYTES = 64 * MIB
# gRPC 1.51 has an executor of twice as many threads as there are CPUs, one of as many for names, and an event engine
# that adds a thread when all of its own are at work.
MOST_GRPC_THREADS = 4 * os.cpu_count() + 16


class Verdict:
    """Collects what is not as it must be, and figures for the summary."""

    def __init__(self):
        self.faults, self.figures = [], {}

    def demand(self, holds, fault):
        if not holds:
            self.faults.append(fault)

    def judge_memory(self, samples):
        parts = soak_watch.quarters(samples)
        peaks = [soak_watch.trimmed_peak([sample["own"] for sample in part]) if part else 0 for part in parts]
        later = [sample for part in parts[1:] for sample in part]
        self.figures["memory_peaks_mib"] = [round(peak / MIB, 1) for peak in peaks]
        self.figures["slope_mib_per_hour"] = round(soak_watch.slope_per_hour(later, "own") / MIB, 1)
        self.figures["most"] = {name: max(sample[name] for sample in samples) for name in samples[0] if name != "at"}
        self.demand(peaks[3] <= peaks[1] + GROWTH_BYTES,
                    f"its memory has grown from {peaks[1] / MIB:.0f} MiB in the second quarter to "
                    f"{peaks[3] / MIB:.0f} in the last, by more than {GROWTH_BYTES / MIB:.0f}")

    def judge_rest(self, before, after):
        for status in (before, after):
            status["own_threads"] = status["threads"] - status["grpc_threads"]
        for name in ("descriptors", "own_threads"):
            self.demand(after[name] <= before[name], f"{before[name]} {name} after the warm-up, {after[name]} now")
        self.demand(after["grpc_threads"] <= MOST_GRPC_THREADS,
                    f"gRPC's pools have {after['grpc_threads']} threads, more than {MOST_GRPC_THREADS}")
        for name in ("descriptors", "own_threads", "grpc_threads"):
            self.figures[name] = [before[name], after[name]]
        self.figures["rest_mib"] = [round(status["own"] / MIB, 1) for status in (before, after)]
        self.demand(after["own"] <= before["own"] + REST_GROWTH_BYTES,
                    f"at rest it had {before['own'] / MIB:.0f} MiB then, and {after['own'] / MIB:.0f} at the end")

    def judge_counts(self, totals, metrics):
        self.faults += totals.disagreements(metrics)
        served = collections.Counter()
        for labels, value in metrics.by_labels("warpline_requests_total"):
            served[labels["code"]] += int(value)
        of_owners = collections.Counter()
        for labels, value in metrics.by_labels("warpline_owner_requests_total"):
            of_owners[labels["code"]] += int(value)
        self.demand(served == of_owners, f"of all owners {of_owners}, but altogether {served}")
        started, handled = metrics.total("grpc_server_started_total"), metrics.total("grpc_server_handled_total")
        self.demand(started == handled, f"{started} calls have begun, and {handled} have ended")
        unknown = sum(map(totals.unknown, OPS))
        self.figures["requests"] = {
            code: {"clients": [totals.of_code(code), totals.of_code(code) + unknown], "server": served[code]}
            for code in CODES if served[code] or totals.of_code(code)}
        self.figures["events"] = {event: totals.event(event) for event in EVENTS}
        self.figures["leases_expired"] = int(metrics.total("warpline_leases_expired_total"))
        rejected = metrics.by_labels("warpline_rejected_total")
        self.figures["refused"] = {labels["reason"]: int(value) for labels, value in rejected if value}
        # What was to be tried has been tried.
        self.demand(served["RESOURCE_EXHAUSTED"] > 0, "the server has never been full")
        self.demand(served["INTERNAL"] + served["UNKNOWN"] == 0, "there are defects")
        self.demand(self.figures["leases_expired"] > 0, "no lease has ended")
        for event in EVENTS:
            self.demand(totals.event(event) > 0 or event == RARE, f"it has never happened: {event}")

    def judge_logs(self, daemon, access_log, metrics):
        warnings = collections.Counter(re.search(r' msg=("[^"]*"|\S*)', line)[1] for line in daemon.log_lines("warning"))
        self.figures["warnings"] = dict(warnings)
        for line in daemon.log_lines("error"):
            self.demand(False, line)
        with open(access_log) as lines:
            count = sum(1 for _ in lines)
        told = {labels["state"]: int(value) for labels, value in metrics.by_labels("warpline_access_log_lines_total")}
        self.figures["access_log"] = told
        self.demand(count == told.get("written"), f"{count} lines in the access log, {told} in the metrics")

    def print_table(self):
        """The figures for people."""
        print(f"{'code':20} {'clients, at least':>18} {'at most':>9} {'server':>9}")
        for code, row in self.figures["requests"].items():
            print(f"{code:20} {row['clients'][0]:18} {row['clients'][1]:9} {row['server']:9}")
        most = {name: f"{value / MIB:.0f} MiB" if value >= MIB else value for name, value in self.figures["most"].items()}
        for name, figure in (self.figures | {"most": most}).items():
            if name != "requests":
                print(f"{name:20} {figure}")
