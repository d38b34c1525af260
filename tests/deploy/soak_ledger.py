"""What the clients of the soak count, in files that outlive a client that is killed.

A client notes each call of a kernel before it begins and after it has ended. How the server has counted a call is known
if the client has the server's own answer. It is not known of a call that was cancelled, whose deadline passed in the
client, whose result nobody read, or whose client was killed: such a call has come to the server or not, and may have
been counted under any code. So each count of the server's has a lower and an upper bound.
"""

import mmap
import threading

import grpc
import numpy as np

METHODS = {f"/warpline.v1.KernelService/{name}": name.lower() for name in ("Transpose", "Gemm", "Reduce", "Run")}
OPS = list(METHODS.values())
CODES = [code.name for code in sorted(grpc.StatusCode, key=lambda code: code.value[0])]
# Beside the calls: what else the clients have done.
RARE = "lowered windows"  # happens in some runs only
EVENTS = ["checked", "cancelled", "unread", "tensors", "gone", "regions", "malformed", "strangers", RARE]
STARTED, UNKNOWN, ANSWERED = 0, 1, 2
COLUMNS = ANSWERED + len(CODES)
ROWS = len(OPS) + 1


def create(path):
    """An empty ledger. Its client may be killed before it opens it."""
    np.zeros((ROWS, COLUMNS), np.int64).tofile(path)


class Ledger:
    """Of one process. Thread-safe."""

    def __init__(self, path):
        with open(path, "r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 0)
        self._table = np.frombuffer(self._memory, np.int64).reshape(ROWS, COLUMNS)
        # A callback of gRPC's may come in a thread that has it.
        self._lock = threading.RLock()

    def _add(self, row, column):
        with self._lock:
            self._table[row, column] += 1

    def happened(self, event):
        self._add(len(OPS), EVENTS.index(event))

    def started(self, op):
        self._add(OPS.index(op), STARTED)

    def answered(self, op, code):
        """The server has said so."""
        self._add(OPS.index(op), ANSWERED + CODES.index(code))

    def unknown(self, op):
        self._add(OPS.index(op), UNKNOWN)


class Counting(grpc.UnaryUnaryClientInterceptor):
    """Notes all calls of kernels that are made on a channel."""

    def __init__(self, ledger):
        self._ledger = ledger

    def intercept_unary_unary(self, continuation, client_call_details, request):
        op = METHODS.get(client_call_details.method)
        if op is None:
            return continuation(client_call_details, request)
        self._ledger.started(op)
        call = continuation(client_call_details, request)
        call.add_done_callback(lambda ended: self._note(op, ended))
        return call

    def _note(self, op, ended):
        try:
            code = ended.code()
        except AttributeError:
            return self._ledger.unknown(op)  # No call was made: the channel was closed at this moment.
        trailers = dict(ended.trailing_metadata() or ())
        if code is grpc.StatusCode.OK or "grpc-status-details-bin" in trailers:
            self._ledger.answered(op, code.name)
        else:
            self._ledger.unknown(op)


class Totals:
    """The sum of the ledgers of processes that have all ended."""

    def __init__(self, paths):
        self._table = np.zeros((ROWS, COLUMNS), np.int64)
        for path in paths:
            self._table += np.fromfile(path, np.int64).reshape(ROWS, COLUMNS)

    def event(self, name):
        return int(self._table[len(OPS), EVENTS.index(name)])

    def started(self, op):
        return int(self._table[OPS.index(op), STARTED])

    def answered(self, op, code):
        return int(self._table[OPS.index(op), ANSWERED + CODES.index(code)])

    def of_code(self, code):
        return sum(self.answered(op, code) for op in OPS)

    def unknown(self, op):
        """Those that were not answered, and those in progress when their client was killed."""
        return self.started(op) - sum(self.answered(op, code) for code in CODES)

    def disagreements(self, metrics):
        """What the server has counted otherwise than these clients can have it, a text for each count. There must have
        been no other clients."""
        served = {}
        for labels, value in metrics.by_labels("warpline_requests_total"):
            served[labels["op"], labels["code"]] = int(value)
        found = [f"the server counts {count} of {op} {code}, which no client knows"
                 for (op, code), count in served.items() if op not in OPS or code not in CODES]
        for op in OPS:
            unknown = self.unknown(op)
            all_answered, all_served = 0, 0
            for code in CODES:
                count, least = served.get((op, code), 0), self.answered(op, code)
                all_answered, all_served = all_answered + least, all_served + count
                if not least <= count <= least + unknown:
                    found.append(f"the server counts {count} of {op} {code}: {least} to {least + unknown}")
            if not all_answered <= all_served <= self.started(op):
                found.append(f"the server counts {all_served} of {op}: {all_answered} to {self.started(op)}")
        return found
