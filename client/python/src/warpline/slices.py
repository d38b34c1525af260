"""Allocates slices of a region of shared memory."""

import bisect
from typing import NamedTuple

# Alignment of the offsets and sizes of slices, in bytes. The server reads slices with this alignment fastest.
ALIGNMENT = 256


def rounded(nbytes: int, unit: int = ALIGNMENT) -> int:
    """Rounds up to a multiple of `unit`, at least one unit."""
    return max(-(-nbytes // unit), 1) * unit


class Hole(NamedTuple):
    """A free range. Holes are ordered by preference: small holes first, because large holes may be needed whole. Among
    holes of one size, the most recently used comes first, because its bytes may still be in the processor's caches."""

    size: int
    # Minus the number of the release that made the hole; 0: never used.
    age: int
    offset: int


class Slices:
    """The slices of one region. Allocates by best fit, and among equal sizes the most recently used. Not thread-safe.

    Sizes and offsets are in bytes, and multiples of ALIGNMENT if the region's size is.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.taken = 0
        self._releases = 0
        # The same holes in three indexes: in order of preference, by begin, and by end.
        self._holes: list[Hole] = []
        self._beginning: dict[int, Hole] = {}
        self._ending: dict[int, Hole] = {}
        self._add(Hole(size, 0, 0))

    def fit(self, size: int) -> Hole | None:
        """The hole from which `take` would take `size` bytes; None if no hole is large enough. Among the holes of
        several regions, the smallest in this order fits best."""
        at = bisect.bisect_left(self._holes, (size,))
        return self._holes[at] if at < len(self._holes) else None

    def take(self, size: int) -> int | None:
        """Allocates a slice and returns its offset; None if there is no room."""
        hole = self.fit(size)
        if hole is None:
            return None
        self._remove(hole)
        if hole.size > size:
            self._add(Hole(hole.size - size, hole.age, hole.offset + size))
        self.taken += size
        return hole.offset

    def give_back(self, offset: int, size: int) -> None:
        """Frees a slice; `size` must be the size given to `take`. Adjacent holes are merged."""
        self.taken -= size
        self._releases += 1
        end = offset + size
        before, after = self._ending.get(offset), self._beginning.get(end)
        if before is not None:
            self._remove(before)
            offset = before.offset
        if after is not None:
            self._remove(after)
            end = after.offset + after.size
        self._add(Hole(end - offset, -self._releases, offset))

    def _add(self, hole: Hole) -> None:
        bisect.insort(self._holes, hole)
        self._beginning[hole.offset] = hole
        self._ending[hole.offset + hole.size] = hole

    def _remove(self, hole: Hole) -> None:
        del self._holes[bisect.bisect_left(self._holes, hole)]
        del self._beginning[hole.offset]
        del self._ending[hole.offset + hole.size]
