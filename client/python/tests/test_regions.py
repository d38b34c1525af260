"""One region: its memory, its connection, and arrays in it."""

import fcntl
import gc
import os
import re
import socket
import threading
import time
from collections import deque

import numpy as np
import pytest

import warpline
from warpline import links, mappings
from warpline.connections import Connection
from warpline.links import hand_over
from warpline.mappings import Mapping
from warpline.regions import Slice, array_in, open_region, reserve

SIZE = 1 << 20


def wait_until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.005)


@pytest.fixture
def connection(regions):
    made = Connection(regions.address, 30, 0, None, ())
    yield made
    made.close()


@pytest.fixture
def open_one(regions, connection):
    """A function that opens a region at the fake server; they are closed in the end."""
    opened = []
    path = regions.address.removeprefix("unix:") + ".regions"

    def one(size=SIZE):
        deadline = time.monotonic() + 30
        region = open_region(path, reserve(connection, size, 30), size, deadline)
        opened.append(region.link)
        return region

    yield one
    for link in opened:
        link.close()


def vm_flags(address):
    """Of the mapping that begins there, as the kernel shows them; None: there is none."""
    with open("/proc/self/smaps") as smaps:
        found = re.search(rf"^{address:x}-.*?^VmFlags: ([^\n]*)", smaps.read(), re.M | re.S)
    return found and found[1].split()


def receivers():
    """Threads that links have, those of other tests' clients too."""
    return sum(thread.name == "warpline-region" for thread in threading.enumerate())


def test_memory_is_sealed_allocated_and_not_inherited():
    mapping = Mapping(SIZE)
    seals = fcntl.fcntl(mapping.fd, fcntl.F_GET_SEALS)
    assert seals == fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
    status = os.fstat(mapping.fd)
    assert status.st_size == SIZE == status.st_blocks * 512 and not os.get_inheritable(mapping.fd)
    assert "dc" in vm_flags(mapping.address)  # do not copy on fork
    mapping.close_fd()
    address = mapping.address
    del mapping
    assert vm_flags(address) is None


def test_kernels_that_populate_nothing(monkeypatch):
    monkeypatch.setattr(mappings, "_MADV_POPULATE_WRITE", 9999)
    mapping = Mapping(SIZE)
    assert os.fstat(mapping.fd).st_blocks * 512 == SIZE
    mapping.close_fd()


def test_no_memory(monkeypatch):
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError):
        Mapping(1 << 62)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_region_is_the_server_s_memory_too(regions, open_one):
    region = open_one()
    served = regions.regions[region.link.id]
    array = array_in(Slice(region, 4096, 80), np.dtype("f8"), (2, 5))
    array[:] = np.arange(10).reshape(2, 5)
    assert np.array_equal(served.memory[4096:4176].view("f8"), np.arange(10))
    served.memory[:] = 0
    assert not array.any() and array.flags.writeable and array.flags.aligned


def test_the_server_sees_the_end(regions, open_one):
    before = receivers()
    region = open_one()
    assert region.link.open and receivers() == before + 1
    region.link.close()
    assert not region.link.open
    wait_until(lambda: not regions.regions)
    wait_until(lambda: receivers() == before)


def test_the_end_of_the_server_is_seen(regions, open_one):
    region = open_one()
    array = array_in(Slice(region, 0, 256), np.dtype("u1"), (256,))
    array[:] = 7
    regions.drop_regions()
    wait_until(lambda: not region.link.open)
    assert (array == 7).all()


def test_tickets_that_are_none(regions):
    before = receivers()
    with pytest.raises(warpline.NotFound, match="no such ticket"):
        open_region(regions.address.removeprefix("unix:") + ".regions", "nonesuch", SIZE, time.monotonic() + 30)
    assert receivers() == before


def test_no_socket(tmp_path):
    mapping = Mapping(4096)
    for path in (f"{tmp_path}/none", f"{tmp_path}/{'long' * 30}"):
        with pytest.raises(warpline.Unimplemented, match="region socket"):
            hand_over(path, "t", mapping.fd, time.monotonic() + 30)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
        silent.bind(f"{tmp_path}/bound")
        with pytest.raises(warpline.Unavailable, match="refused"):
            hand_over(f"{tmp_path}/bound", "t", mapping.fd, time.monotonic() + 30)
        silent.listen()
        with pytest.raises(warpline.Unavailable, match="timed out"):
            hand_over(f"{tmp_path}/bound", "t", mapping.fd, time.monotonic() + 0.05)
    mapping.close_fd()


def test_calls_that_were_withdrawn(regions, open_one):
    link = open_one().link
    link.withdraw(3)
    assert link.wait(3, 30) and not link.using(3)
    regions.confirms = False
    link.withdraw(4)
    assert not link.wait(4, 0.02) and link.using(4) and not link.using(3)
    threading.Timer(0.05, link.close).start()
    assert link.wait(4) and link.using(4)
    link.withdraw(5)  # Nobody is there any more.
    assert not link.using(5)


def test_a_server_that_reads_nothing_holds_nobody_up(monkeypatch):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    link = links.Link(ours, "id")
    monkeypatch.setattr(links, "_MOST_SECONDS_TO_SEND", 0.1)
    call = 0
    while link.open:
        call += 1
        assert call < 1_000_000
        link.withdraw(call)
    assert link.using(1) and link.wait(1)
    theirs.close()


@pytest.mark.parametrize("packet", [b"\xff", b"", b"\x12\x02\x08\x03"])
def test_packets_that_end_a_link(packet):
    """None that is valid, the end of the connection, and an error."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    link = links.Link(ours, "id")
    theirs.send(packet) if packet else theirs.close()
    wait_until(lambda: not link.open)
    theirs.close()


def test_arrays_give_their_slices_back(open_one):
    region, returned = open_one(), deque()
    slice = Slice(region, 0, 512)
    array = array_in(slice, np.dtype("f4"), (8, 16), returned)
    view = array.T[2:, ::2]
    del array
    gc.collect()
    assert not returned
    del view
    assert list(returned) == [slice]


def test_memory_goes_with_the_last_array(open_one):
    region, returned = open_one(), deque()
    address, array = region.mapping.address, array_in(Slice(region, 0, 256), np.dtype("u1"), (256,), returned)
    region.link.close()
    del region
    gc.collect()
    array[:] = 1
    assert vm_flags(address)
    del array
    # It was nobody else's any more.
    assert not returned and vm_flags(address) is None
