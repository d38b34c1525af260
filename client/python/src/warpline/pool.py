"""The shared memory of one client: regions, opened on demand, whose slices are reused."""

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

# Sizes of regions are rounded up to multiples of 64 MiB.
_REGION_BYTES = 64 << 20
# A new region is as large as all existing regions together, at most 256 MiB. This gives few regions, and at most about
# twice the memory needed.
_LARGE_REGION_BYTES = 256 << 20
# Maximum fraction of the pool for results that are still referenced.
_KEPT_PART = 1 / 4


class Pool:
    """The pool of one process. Thread-safe. Finalizers of arrays never wait for its locks."""

    def __init__(self, connection: Connection, path: str, max_bytes: int, warns: bool = False,
                 named: bool = False) -> None:
        """connection: used to request regions. path: path of the region socket. max_bytes: maximum size of all regions
        together; memory for `empty` does not count. warns: issues one RuntimeWarning if the server shares memory but
        has none left, or if this process may not use the socket. named: true if the caller gave the path. The warning
        then also covers any other reason why the socket is unusable."""
        self._max_bytes = max_bytes
        # Numbers of calls, from 1, shared by all regions: all slices of a request have the same number.
        self._calls = itertools.count(1)
        # Guards the following attributes. Held only briefly.
        self._lock = threading.Lock()
        self._regions: list[Region] = []
        # Addresses of the caller's arrays, sorted, and the slice of each address.
        self._addresses: list[int] = []
        self._lent: dict[int, Slice] = {}
        self._kept_bytes = 0
        self._extra_bytes = 0
        # Slices that were given back, but a call may still write to them.
        self._busy: list[Slice] = []
        # Slices that finalizers give back.
        self._returned: deque[Slice] = deque()
        self._closed = False
        # Calls in progress. The server may write to the memory for them, even after the client is closed.
        self._users: set[int] = set()
        self._last_user = 0
        # One thread at a time opens a region.
        self._opening = threading.Lock()
        self._opener = Opener(connection, path, warns, named)
        # Closes the links of a client that nobody closes. The list of regions does not keep the pool alive.
        weakref.finalize(self, _close_links, self._regions).atexit = False

    def begin(self) -> int:
        """Registers a call that begins, and returns its number for `end`. The links stay open until then, because the
        server reports over them that it no longer writes to the memory. Raises Cancelled after `close`."""
        with self._lock:
            if self._closed:
                raise errors.closed("")
            self._last_user += 1
            self._users.add(self._last_user)
            return self._last_user

    def end(self, user: int) -> None:
        """Unregisters a call. After `close`, the last call closes the links. Calling `end` again does nothing."""
        with self._lock:
            self._users.discard(user)
            if self._closed and not self._users:
                self._let_go()

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Closes the pool: no call can begin, and no slice can be taken. The server releases the memory when all calls
        have ended. Existing arrays in the memory stay valid."""
        with self._lock:
            self._closed = True
            for region in self._regions:
                region.link.wake()
            if not self._users:
                self._let_go()

    def next_call(self) -> int:
        return next(self._calls)

    def take(self, nbytes: int, seconds: float, extra: bool = False) -> Slice:
        """Takes a slice of at least `nbytes`, rounded up. `give_back` or the array of `lend` returns the slice to the
        pool. Opens a region if there is no room. seconds: time limit for opening. extra: true if the slice does not
        count against max_bytes. Raises errors.Error if there is no slice."""
        size = rounded(nbytes)
        deadline = time.monotonic() + seconds
        found = self._take(size, extra)
        if found is not None:
            return found
        if not self._opening.acquire(timeout=max(seconds, 0.0)):
            raise errors.DeadlineExceeded(grpc.StatusCode.DEADLINE_EXCEEDED, "a region is still being opened")
        try:
            # Another thread may have opened a region meanwhile.
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
        """Marks slices that a withdrawn call may still use. They are not reused before the end of the call is known."""
        with self._lock:
            for slice in slices:
                # busy() forgets calls that have ended: an array of the caller may be used in many calls.
                slice.busy()
                slice.calls.append(call)

    def lend(self, slice: Slice, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array | None:
        """Makes an array in a slice. The array gives the slice back when the array and its views are garbage. Returns
        None if too much of the pool is lent; the caller then keeps the slice. Never returns None for an extra slice."""
        with self._lock:
            self._clean()
            if not slice.region.link.open:
                # The link is closed: the slice is ordinary memory now, and is not given back.
                self._forget(slice)
                return array_in(slice, dtype, shape)
            if not slice.extra:
                # If the server has no more memory for this client, the existing regions are the limit.
                most = self._total() if self._opener.crowded else self._max()
                if self._kept_bytes + slice.size > most * _KEPT_PART:
                    return None
                self._kept_bytes += slice.size
            bisect.insort(self._addresses, slice.address)
            self._lent[slice.address] = slice
            return array_in(slice, dtype, shape, self._returned)

    def lends(self) -> bool:
        """True if an array of the caller may be in the pool. Needs no lock: such an array was lent earlier."""
        return bool(self._addresses)

    def find(self, address: int) -> Slice | None:
        """The lent slice that contains the address; None if there is none, or the server no longer shares it."""
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
        """Takes a slice from a region that has room for it. The lock must be held."""
        offset = region.slices.take(size)
        assert offset is not None
        if extra:
            self._extra_bytes += size
        return Slice(region, offset, size, extra)

    def _release(self, slice: Slice) -> None:
        """Frees a slice, or keeps it in _busy while a call may use it. The lock must be held."""
        self._forget(slice)
        if not slice.region.link.open:
            return
        if slice.busy():
            self._busy.append(slice)
        else:
            slice.region.slices.give_back(slice.offset, slice.size)

    def _let_go(self) -> None:
        """Closes all links. The lock must be held."""
        _close_links(self._regions)
        self._clean()
        self._returned.clear()
        self._busy.clear()

    def _forget(self, slice: Slice) -> None:
        """Removes a slice from the list of lent slices and from the counts. The lock must be held."""
        if self._lent.get(slice.address) is slice:
            del self._lent[slice.address]
            del self._addresses[bisect.bisect_left(self._addresses, slice.address)]
            if not slice.extra:
                self._kept_bytes -= slice.size
        if slice.extra:
            slice.extra = False
            self._extra_bytes -= slice.size

    def _clean(self) -> None:
        """Frees returned slices. Drops dead regions, and unused regions above the limit. The lock must be held."""
        while self._returned:
            self._release(self._returned.popleft())
        if self._busy:
            busy, self._busy = self._busy, []
            for slice in busy:
                self._release(slice)
        if not all(region.link.open for region in self._regions):
            for slice in [slice for slice in self._lent.values() if not slice.region.link.open]:
                self._forget(slice)
            # Change the list in place: the finalizer refers to this list.
            self._regions[:] = [region for region in self._regions if region.link.open]
            # Another server may be running now, with another limit.
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
        """Opens a region, and takes a slice of it. Later slices use the rest. Raises errors.Error if there is no
        region. Only one thread at a time may call this."""
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
        """Size of the next region, at least `size`. Raises ResourceExhausted if the limits do not allow a region."""
        with self._lock:
            self._clean()
            total, room = self._total(), self._max() + self._extra_bytes - self._total()
        if extra:
            # A request above the server's limit is made anyway: the server's error gives the reason.
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
