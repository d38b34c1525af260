"""The shared memory of one client: regions, opened as they are needed, whose slices are used again and again."""

import bisect
import itertools
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterable
from typing import Any

import grpc
import numpy as np

from warpline import errors
from warpline.connections import Connection
from warpline.opener import PAGE_BYTES, Opener
from warpline.regions import Array, Region, Slice, array_in
from warpline.slices import rounded

# Sizes of regions are multiples of this.
_REGION_BYTES = 64 << 20
# A region is as large as all before it, up to this: few regions, and no more memory than about twice what is needed.
_LARGE_REGION_BYTES = 256 << 20
# What results that are still referred to may have of the pool.
_KEPT_PART = 1 / 4


class Pool:
    """For one process. Thread-safe; finalizers of arrays wait for none of its locks."""

    def __init__(self, connection: Connection, path: str, max_bytes: int, warns: bool = False,
                 named: bool = False) -> None:
        """connection: by which regions are asked for. path: of the region socket. max_bytes: of all regions
        together, beside what `empty` needs. warns: says once, by a RuntimeWarning, if the server shares memory but has
        none left, if this process may not use that socket, and, if the caller has named it, if it cannot for another
        reason."""
        self._max_bytes = max_bytes
        # Of calls, from 1 on, over all regions: the slices of one request have one number.
        self._calls = itertools.count(1)
        # Guards what follows, never for long.
        self._lock = threading.Lock()
        self._regions: list[Region] = []
        # Where arrays of the caller's lie, in the order of their addresses, and what they have.
        self._addresses: list[int] = []
        self._lent: dict[int, Slice] = {}
        self._kept_bytes = 0
        self._extra_bytes = 0
        # Given back, but a call may still write to them.
        self._busy: list[Slice] = []
        # What finalizers give back.
        self._returned: deque[Slice] = deque()
        self._closed = False
        # Calls that have begun and not ended: they may have the server write to the memory, whatever has become of
        # the client meanwhile.
        self._users: set[int] = set()
        self._last_user = 0
        # One thread at a time opens a region.
        self._opening = threading.Lock()
        self._opener = Opener(connection, path, warns, named)
        # For clients that nobody closes. What it has keeps nothing alive.
        weakref.finalize(self, _close_links, self._regions).atexit = False

    def begin(self) -> int:
        """A call begins. Until `end` is given what this returns, the links stay open, as only by them the server can
        say that it does not write to the memory any more. Cancelled after `close`."""
        with self._lock:
            if self._closed:
                raise errors.closed("")
            self._last_user += 1
            self._users.add(self._last_user)
            return self._last_user

    def end(self, user: int) -> None:
        """After `close`, the last call that ends closes the links. Once more changes nothing."""
        with self._lock:
            self._users.discard(user)
            if self._closed and not self._users:
                self._let_go()

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """No call may begin any more, and nothing can be taken. Once those that have begun have ended, the server lets
        go of the memory. Arrays that lie in it stay what they are."""
        with self._lock:
            self._closed = True
            for region in self._regions:
                region.link.wake()
            if not self._users:
                self._let_go()

    def next_call(self) -> int:
        return next(self._calls)

    def take(self, nbytes: int, seconds: float, extra: bool = False) -> Slice:
        """A slice of so many bytes or a little more, to be given back by `give_back`, or by the array of `lend`.
        Opens a region if there is no room. seconds: for that. extra: it comes beside what max_bytes limits.
        errors.Error if there is to be none."""
        size = rounded(nbytes)
        deadline = time.monotonic() + seconds
        found = self._take(size, extra)
        if found is not None:
            return found
        if not self._opening.acquire(timeout=max(seconds, 0.0)):
            raise errors.DeadlineExceeded(grpc.StatusCode.DEADLINE_EXCEEDED, "a region is still being opened")
        try:
            # Somebody may have opened one meanwhile.
            found = self._take(size, extra)
            return found if found is not None else self._grow(size, deadline, extra)
        finally:
            self._opening.release()

    def give_back(self, slices: Iterable[Slice]) -> None:
        with self._lock:
            for slice in slices:
                self._release(slice)
            self._clean()

    def mark(self, slices: Iterable[Slice], call: int) -> None:
        """A withdrawn call may still use them: they are nobody else's before its end is known."""
        with self._lock:
            for slice in slices:
                # Forgets those that have ended: arrays of the caller's may see many.
                slice.busy()
                slice.calls.append(call)

    def lend(self, slice: Slice, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array | None:
        """An array in a slice, which it gives back when it and its views are garbage. None if too much of the pool is
        lent already, and the slice stays the caller's; never of one that was taken beside the pool."""
        with self._lock:
            self._clean()
            if not slice.region.link.open:
                # Ordinary memory already, which nobody gets back.
                self._forget(slice)
                return array_in(slice, dtype, shape)
            if not slice.extra:
                # Where the server has no more for us, we have what there is.
                most = self._total() if self._opener.crowded else self._max()
                if self._kept_bytes + slice.size > most * _KEPT_PART:
                    return None
                self._kept_bytes += slice.size
            bisect.insort(self._addresses, slice.address)
            self._lent[slice.address] = slice
            return array_in(slice, dtype, shape, self._returned)

    def lends(self) -> bool:
        """Arrays that the caller may have now lie in the pool. Waits for no lock: they have been lent before."""
        return bool(self._addresses)

    def find(self, address: int) -> Slice | None:
        """The slice that was lent for an array and in which the address is; None if there is none, or the server
        has it no more."""
        if not self.lends():
            return None
        with self._lock:
            self._clean()
            at = bisect.bisect_right(self._addresses, address) - 1
            if at < 0:
                return None
            slice = self._lent[self._addresses[at]]
            return slice if address < slice.address + slice.size else None

    def _take(self, size: int, extra: bool) -> Slice | None:
        with self._lock:
            if self._closed:
                raise errors.closed("")
            self._clean()
            holes = [(hole, i) for i, region in enumerate(self._regions) if (hole := region.slices.fit(size))]
            if not holes:
                return None
            return self._slice_of(self._regions[min(holes)[1]], size, extra)

    def _slice_of(self, region: Region, size: int, extra: bool) -> Slice:
        """Locked. There is so much room."""
        offset = region.slices.take(size)
        assert offset is not None
        if extra:
            self._extra_bytes += size
        return Slice(region, offset, size, extra)

    def _release(self, slice: Slice) -> None:
        """Locked."""
        self._forget(slice)
        if not slice.region.link.open:
            return
        if slice.busy():
            self._busy.append(slice)
        else:
            slice.region.slices.give_back(slice.offset, slice.size)

    def _let_go(self) -> None:
        """Locked."""
        _close_links(self._regions)
        self._clean()
        self._returned.clear()
        self._busy.clear()

    def _forget(self, slice: Slice) -> None:
        """Locked. It is not counted any more."""
        if self._lent.get(slice.address) is slice:
            del self._lent[slice.address]
            del self._addresses[bisect.bisect_left(self._addresses, slice.address)]
            if not slice.extra:
                self._kept_bytes -= slice.size
        if slice.extra:
            slice.extra = False
            self._extra_bytes -= slice.size

    def _clean(self) -> None:
        """Locked. Takes back what can be, and drops regions that are dead, or of which there are too many."""
        while self._returned:
            self._release(self._returned.popleft())
        if self._busy:
            busy, self._busy = self._busy, []
            for slice in busy:
                self._release(slice)
        if not all(region.link.open for region in self._regions):
            for slice in [slice for slice in self._lent.values() if not slice.region.link.open]:
                self._forget(slice)
            # In place: the finalizer has this list.
            self._regions[:] = [region for region in self._regions if region.link.open]
            # There may be another server now.
            self._opener.limit = None
        while self._total() > self._max() + self._extra_bytes:
            unused = [region for region in self._regions if not region.slices.taken]
            if not unused:
                break
            unused[0].link.close()
            self._regions.remove(unused[0])

    def _total(self) -> int:
        return sum(region.mapping.size for region in self._regions)

    def _max(self) -> int:
        limit = self._opener.limit
        return self._max_bytes if limit is None else min(self._max_bytes, limit)

    def _grow(self, size: int, deadline: float, extra: bool) -> Slice:
        """A slice of a region that is opened for it, and others to come. errors.Error if there is to be none. One
        thread at a time."""
        self._opener.check(size, deadline)
        wanted = self._size_of_next(size, extra)
        region = self._opener.open(wanted, rounded(size, PAGE_BYTES), deadline)
        with self._lock:
            if self._closed:
                region.link.close()
                raise errors.closed("")
            self._regions.append(region)
            return self._slice_of(region, size, extra)

    def _size_of_next(self, size: int, extra: bool) -> int:
        """Of the next region, which must have so much room. ResourceExhausted if there is to be none."""
        with self._lock:
            self._clean()
            total, room = self._total(), self._max() + self._extra_bytes - self._total()
        if extra:
            # Of what the server refuses, it says why.
            left = (self._opener.limit or 0) - total
            room = max(room, rounded(size, PAGE_BYTES), min(rounded(size, _REGION_BYTES), left))
        small = rounded(size, _REGION_BYTES)
        like_all = min(rounded(total, _REGION_BYTES), _LARGE_REGION_BYTES)
        for wanted in (max(small, like_all), small, rounded(room - PAGE_BYTES + 1, PAGE_BYTES)):
            if size <= wanted <= room:
                return wanted
        error = errors.ResourceExhausted(
            grpc.StatusCode.RESOURCE_EXHAUSTED, f"{size} bytes of shared memory are needed; of {self._max()} bytes "
            f"(pool_bytes, or the server's limit) {max(room, 0)} are left for new regions")
        if self._max() < self._max_bytes:
            self._opener.warn_of_no_room(error)
        raise error


def _close_links(regions: list[Region]) -> None:
    for region in regions:
        region.link.close()
