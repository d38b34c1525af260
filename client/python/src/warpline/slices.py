"""Which bytes of a region of shared memory are taken."""

import bisect
from typing import NamedTuple

# Where slices begin, and what their sizes are multiples of: what the server reads fastest.
ALIGNMENT = 256


def rounded(nbytes: int, unit: int = ALIGNMENT) -> int:
    """The next multiple of the unit; one unit at least."""
    return max(-(-nbytes // unit), 1) * unit


class Hole(NamedTuple):
    """A range that nobody has. Ordered by how well it is used: small ones first, as large ones may still be wanted
    as a whole, and of one size those that were used last, as their bytes may still be in the processor's caches."""

    size: int
    # Minus the number of the release that made it; 0: it was never used.
    age: int
    offset: int


class Slices:
    """The slices of one region: best fit, and of one size the one that was used last. Not thread-safe.

    Sizes and offsets are in bytes, and multiples of ALIGNMENT if the region's size is.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.taken = 0
        self._releases = 0
        # The same holes three times: in their order, by where they begin, and by where they end.
        self._holes: list[Hole] = []
        self._beginning: dict[int, Hole] = {}
        self._ending: dict[int, Hole] = {}
        self._add(Hole(size, 0, 0))

    def fit(self, size: int) -> Hole | None:
        """The hole from which `take` would take so many bytes; None: there is none. Of the holes of several regions
        the least fits best."""
        at = bisect.bisect_left(self._holes, (size,))
        return self._holes[at] if at < len(self._holes) else None

    def take(self, size: int) -> int | None:
        """The offset of a slice that is the caller's now; None: there is no room."""
        hole = self.fit(size)
        if hole is None:
            return None
        self._remove(hole)
        if hole.size > size:
            self._add(Hole(hole.size - size, hole.age, hole.offset + size))
        self.taken += size
        return hole.offset

    def give_back(self, offset: int, size: int) -> None:
        """What was taken, with the size of then. Neighbouring holes become one."""
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
