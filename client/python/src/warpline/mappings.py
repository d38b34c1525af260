"""Memory that can be shared: a mapped memfd."""

import ctypes
import errno
import fcntl
import mmap
import os
import weakref
from collections.abc import Callable
from functools import partial

from warpline import copies

# Since Linux 5.14: makes pages present, as first writes would.
_MADV_POPULATE_WRITE = 23
# Bytes that one thread makes present at a time.
_POPULATE_BYTES = 16 << 20

_libc = ctypes.CDLL(None, use_errno=True)
# Python's own mmap would keep a duplicate of the descriptor as long as the mapping, even in children. In a child it
# would unmap addresses that are not mapped there. Its madvise holds the interpreter's lock.
_mmap = _libc.mmap
_mmap.restype = ctypes.c_void_p
_mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_munmap = _libc.munmap
_munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_madvise = _libc.madvise
_madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_MAP_FAILED = ctypes.c_void_p(-1).value


class Mapping:
    """Shared memory of a fixed size, mapped while this object lives. Children of this process do not have the memory:
    their address space has a gap there.

    address, size: in bytes. fd: descriptor of the memfd, valid until `close_fd`. The mapping does not need it.
    """

    def __init__(self, size: int) -> None:
        """size: a multiple of the page size. Raises OSError if there is not enough memory."""
        self.size = size
        self.fd = os.memfd_create("warpline", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(self.fd, size)
            # The seals guarantee to both sides that no page of the mapping disappears.
            fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
            self.address = _checked_mmap(self.fd, size)
            weakref.finalize(self, _unmap, self.address, size, os.getpid()).atexit = False
            _check(_madvise(self.address, size, mmap.MADV_DONTFORK))
            self._populate()
            # Allocates the pages that _populate could not, and fails if there is not enough memory.
            os.posix_fallocate(self.fd, 0, size)
        except BaseException:
            self.close_fd()
            raise

    def close_fd(self) -> None:
        """Closes the descriptor. Call this after the other side has received it."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def _populate(self) -> None:
        """Makes all pages present, with several threads because the kernel clears each page. On old kernels this does
        nothing, and first writes make the pages present."""
        copies.in_threads([self._populator(at) for at in range(0, self.size, _POPULATE_BYTES)])

    def _populator(self, at: int) -> Callable[[], object]:
        length = min(_POPULATE_BYTES, self.size - at)
        return partial(_madvise, self.address + at, length, _MADV_POPULATE_WRITE)


def _checked_mmap(fd: int, size: int) -> int:
    address = _mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, 0)
    if address is None or address == _MAP_FAILED:
        number = ctypes.get_errno() or errno.ENOMEM
        raise OSError(number, os.strerror(number))
    return int(address)


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _unmap(address: int, size: int, process: int) -> None:
    """Unmaps the memory. Does nothing in a child, which may have other memory at this address."""
    if os.getpid() == process:
        _munmap(address, size)
