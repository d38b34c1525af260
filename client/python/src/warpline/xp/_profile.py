"""Counts what lines of the user's code cost."""

import threading
from dataclasses import dataclass, field
from typing import Any

from warpline.xp._lines import Line


@dataclass
class Cost:
    """What looks at one line have cost."""

    requests: int = 0  # computations, and fetches of elements
    sent_bytes: int = 0  # elements that went to the server
    received_bytes: int = 0  # elements that came from it
    kernels: int = 0  # steps that the server ran
    device_seconds: float = 0.0  # on the device, with its transfers
    seconds: float = 0.0  # as this process has waited
    fallbacks: int = 0  # operations that NumPy has computed here


@dataclass(eq=False)
class Profile:
    """The costs of lines, in the order of their time. Shown by print."""

    lines: dict[Line, Cost] = field(default_factory=dict)

    @property
    def total(self) -> Cost:
        """All lines together."""
        costs = list(self.lines.values())
        return Cost(*(sum(getattr(cost, name) for cost in costs) for name in Cost.__dataclass_fields__))

    def __str__(self) -> str:
        rows = sorted(self.lines.items(), key=lambda row: -row[1].seconds)
        named = [(str(line), cost) for line, cost in rows] + [("all", self.total)]
        width = max(len(name) for name, _ in named)
        texts = [f"{'line':{width}} requests     sent received kernels device ms     ms fallbacks"]
        texts += [f"{name:{width}} {cost.requests:8} {_size(cost.sent_bytes):>8} {_size(cost.received_bytes):>8} {cost.kernels:7} "
                  f"{cost.device_seconds * 1e3:9.2f} {cost.seconds * 1e3:6.1f} {cost.fallbacks:9}" for name, cost in named]
        return "\n".join(texts)


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} GiB"


class profile:  # noqa: N801
    """Counts requests, bytes, kernels, time and fallbacks for each line that looks at values, while it is used by `with`,
    in all threads.

        with xp.profile() as p:
            ...
        print(p)
    """

    _active: list[Profile] = []
    _lock = threading.RLock()  # for signal handlers

    def __init__(self) -> None:
        self._profile = Profile()

    def __enter__(self) -> Profile:
        with profile._lock:
            profile._active.append(self._profile)
        return self._profile

    def __exit__(self, *error: Any) -> None:
        with profile._lock:
            profile._active.remove(self._profile)


def is_active() -> bool:
    return bool(profile._active)


def note(line: Line, **costs: float) -> None:
    """Adds to what a line has cost, in all profiles."""
    with profile._lock:
        for each in profile._active:
            cost = each.lines.setdefault(line, Cost())
            for name, more in costs.items():
                setattr(cost, name, getattr(cost, name) + more)
