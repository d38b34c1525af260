"""The regions of one client, and who has which part of them."""

import gc
import random
import threading

import numpy as np
import pytest
from test_regions import wait_until

import warpline
from warpline import opener
from warpline import pool as pools
from warpline.connections import Connection
from warpline.pool import Pool
from warpline.shared_shipments import address_of

MIB = 1 << 20
U1 = np.dtype("u1")


@pytest.fixture
def make(regions, monkeypatch):
    """A function that makes a pool of small regions."""
    monkeypatch.setattr(pools, "_REGION_BYTES", MIB)
    monkeypatch.setattr(pools, "_LARGE_REGION_BYTES", 4 * MIB)
    monkeypatch.setattr(opener, "_PAUSE", 0.0)
    connection, made = Connection(regions.address, 30, 0, None, ()), []

    def one(max_bytes=64 * MIB):
        made.append(Pool(connection, regions.address.removeprefix("unix:") + ".regions", max_bytes))
        return made[-1]

    yield one
    for pool in made:
        pool.close()
    connection.close()


def place(slice):
    return slice.region.link.id, slice.offset


def lend(pool, nbytes, extra=False):
    slice = pool.take(nbytes, 30, extra)
    return pool.lend(slice, U1, (nbytes,))


def test_nothing_is_opened_before_it_is_needed(regions, make):
    pool = make()
    assert not regions.opened
    slice = pool.take(1000, 30)
    assert regions.opened == [MIB] and slice.size == 1024
    pool.give_back([slice])


def test_warm_memory_is_used_again(regions, make):
    pool = make()
    first = pool.take(300_000, 30)
    second = pool.take(300_000, 30)
    assert place(first) != place(second)
    pool.give_back([first])
    pool.give_back([second])
    # Neighbours, which became one hole with what was never used; but nothing more is opened.
    for _ in range(100):
        third = pool.take(300_000, 30)
        pool.give_back([third])
        assert place(third) == place(first)
    assert regions.opened == [MIB]


def test_it_grows_as_it_is_needed(regions, make):
    pool = make()
    taken = [pool.take(MIB, 30) for _ in range(12)]
    # As large as all before, up to a limit.
    assert regions.opened == [MIB, MIB, 2 * MIB, 4 * MIB, 4 * MIB]
    taken.append(pool.take(9 * MIB + 1, 30))
    assert regions.opened[-1] == 10 * MIB
    pool.give_back(taken)


def test_it_has_a_limit(regions, make):
    pool = make(5 * MIB)
    taken = [pool.take(MIB, 30) for _ in range(5)]
    assert sum(regions.opened) == 5 * MIB
    left = f"of {5 * MIB} bytes .pool_bytes, or the server's limit. 0 are left"
    with pytest.raises(warpline.ResourceExhausted, match=left):
        pool.take(1, 30)
    pool.give_back(taken[:1])
    again = pool.take(MIB, 30)
    assert place(again) == place(taken[0])
    with pytest.raises(warpline.ResourceExhausted):
        pool.take(6 * MIB, 30)


def test_the_server_s_limit(regions, make):
    regions.max_region_bytes = 3 * MIB // 2
    pool = make()
    taken = [pool.take(MIB // 2, 30) for _ in range(3)]
    assert regions.opened == [MIB, MIB // 2]
    with pytest.raises(warpline.ResourceExhausted, match="pool_bytes"):
        pool.take(1, 30)
    # What goes beyond our own limit may go beyond the server's, which says so.
    with pytest.raises(warpline.ResourceExhausted, match="bytes are used"):
        pool.take(1, 30, extra=True)
    pool.give_back(taken)


def test_smaller_regions_where_the_server_gives_no_more(regions, make):
    regions.quota = MIB // 2 - 4096
    pool = make()
    taken = [pool.take(1000, 30), pool.take(MIB // 4 + 1, 30)]
    assert regions.opened == [MIB // 4, MIB // 4 + 4096]
    with pytest.raises(warpline.ResourceExhausted, match=f"{MIB // 2} bytes can never be had"):
        pool.take(MIB // 2, 30)
    pool.give_back(taken)


def test_what_other_clients_leave(regions, make):
    regions.max_region_bytes = 7 * MIB // 4
    pools = make(), make()
    taken = [pool.take(1000, 30) for pool in pools]
    assert regions.opened == [MIB, MIB // 2]
    for pool, slice in zip(pools, taken):
        pool.give_back([slice])


def test_who_gets_little_keeps_little(regions, make):
    regions.quota = MIB // 2
    pool = make()
    slice = pool.take(MIB // 4, 30)
    assert pool.lend(slice, U1, (1000,)) is None and lend(pool, MIB // 8) is not None
    pool.give_back([slice])


def test_a_refusal_counts_for_no_less(regions, make, monkeypatch):
    monkeypatch.setattr(opener, "_PAUSE", 1000.0)
    regions.quota = MIB // 4
    pool = make()
    with pytest.raises(warpline.ResourceExhausted, match=f"^RESOURCE_EXHAUSTED: {MIB // 2} bytes") as refused:
        pool.take(MIB // 2, 30)
    asked = regions.count("Open")
    with pytest.raises(warpline.ResourceExhausted, match="a moment ago: ") as again:
        pool.take(MIB // 2 + 1, 30)
    assert regions.count("Open") == asked and refused.value.request_id != again.value.request_id
    pool.give_back([pool.take(1000, 30)])
    assert regions.opened == [MIB // 4]


def test_servers_that_share_no_memory_are_not_asked_again_at_once(regions, make, monkeypatch):
    regions.max_region_bytes = 0
    pool = make()
    for _ in range(3):
        with pytest.raises(warpline.Unimplemented, match="shares no memory"):
            pool.take(1, 30)
    assert regions.count("GetInfo") == 1
    regions.max_region_bytes = 64 * MIB
    monkeypatch.setattr(pool._opener, "_not_before", 0.0)
    pool.give_back([pool.take(1, 30)])


def test_lent_arrays_give_back_what_they_have(regions, make):
    pool = make()
    array = lend(pool, 1000)
    where = pool.find(address_of(array))
    assert place(where) == place(pool.find(address_of(array[900:]))) and pool.find(address_of(array) + 1024) is None
    assert pool.find(address_of(array) - 1) is None
    view = array[::2]
    del array
    assert pool.find(address_of(view)) is where
    del view
    gc.collect()
    again = pool.take(1000, 30)
    assert place(again) == place(where)
    pool.give_back([again])


def test_no_more_than_a_quarter_is_lent(make):
    pool = make(4 * MIB)
    arrays = [lend(pool, MIB // 2) for _ in range(2)]
    slice = pool.take(256, 30)
    assert pool.lend(slice, U1, (256,)) is None
    # Of what is beside the pool, as much as anyone wants.
    arrays += [lend(pool, MIB, extra=True) for _ in range(6)]
    assert all(array is not None for array in arrays)
    arrays[0] = None
    assert pool.lend(slice, U1, (256,)) is not None


def test_what_is_beside_the_pool_leaves_it_its_size(regions, make):
    pool = make(2 * MIB)
    arrays = [lend(pool, MIB, extra=True) for _ in range(4)]
    taken = [pool.take(MIB, 30) for _ in range(2)]
    with pytest.raises(warpline.ResourceExhausted):
        pool.take(MIB, 30)
    # Regions of which nothing is used any more are closed while there are more than there should be.
    pool.give_back(taken)
    arrays.clear()
    gc.collect()
    pool.give_back([])
    wait_until(lambda: sum(region.size for region in regions.regions.values()) <= 2 * MIB)
    pool.give_back([pool.take(MIB, 30)])


def test_slices_of_calls_that_may_go_on_are_nobody_s(regions, make):
    pool = make(MIB)
    slice = pool.take(MIB, 30)
    link = slice.region.link
    regions.confirms = False
    link.withdraw(1)
    pool.mark([slice], 1)
    pool.give_back([slice])
    with pytest.raises(warpline.ResourceExhausted):
        pool.take(1, 30)
    regions.confirms = True
    link.withdraw(2)  # At which the server answers both.
    assert link.wait(1, 30) and link.wait(2, 30)
    again = pool.take(MIB, 30)
    assert place(again) == place(slice)


def test_lent_slices_of_calls_that_may_go_on_are_nobody_s(regions, make):
    pool = make(MIB)
    array = lend(pool, MIB, extra=True)
    slice = pool.find(address_of(array))
    regions.confirms = False
    slice.region.link.withdraw(1)
    pool.mark([slice], 1)
    del array
    with pytest.raises(warpline.ResourceExhausted):
        pool.take(MIB, 30)
    regions.confirms = True
    slice.region.link.withdraw(2)
    assert slice.region.link.wait(1, 30)
    pool.give_back([pool.take(MIB, 30)])


def test_regions_that_are_dead(regions, make):
    pool = make(4 * MIB)
    array, slice = lend(pool, MIB), pool.take(MIB, 30)
    array[:] = 5
    regions.drop_regions()
    wait_until(lambda: not any(region.link.open for region in pool._regions))
    assert pool.find(address_of(array)) is None and (array == 5).all()
    fresh = pool.take(MIB, 30)
    assert fresh.region.link.open and fresh.region is not slice.region
    pool.give_back([slice, fresh])
    # A quarter is free to be lent again.
    assert lend(pool, MIB) is not None
    del array


def test_lending_of_what_is_dead(regions, make):
    pool = make(4 * MIB)
    slices = [pool.take(MIB, 30, extra) for extra in (False, True)]
    regions.drop_regions()
    wait_until(lambda: not any(slice.region.link.open for slice in slices))
    arrays = [pool.lend(slice, U1, (1000,)) for slice in slices]
    for array in arrays:
        array[:] = 1
        assert pool.find(address_of(array)) is None
    del array, arrays
    # Nothing of it is counted any more.
    assert pool._kept_bytes == pool._extra_bytes == 0 and lend(pool, MIB) is not None


def test_arrays_that_see_many_failures(regions, make):
    pool = make()
    slice = pool.take(1000, 30, extra=True)
    link = slice.region.link
    for call in range(1, 100):
        link.withdraw(call)
        pool.mark([slice], call)
        assert link.wait(call, 30)
    assert len(slice.calls) == 1
    pool.give_back([slice])


def test_closing(regions, make):
    pool = make()
    array, slice = lend(pool, 1000), pool.take(1000, 30)
    pool.close()
    wait_until(lambda: not regions.regions)
    array[:] = 1
    assert pool.find(address_of(array)) is None
    with pytest.raises(warpline.Cancelled):
        pool.take(1, 30)
    pool.give_back([slice])
    del array
    pool.close()


def test_pools_that_nobody_closes(regions):
    connection = Connection(regions.address, 30, 0, None, ())
    pool = Pool(connection, regions.address.removeprefix("unix:") + ".regions", MIB)
    array = lend(pool, 1000, extra=True)
    del pool
    gc.collect()
    wait_until(lambda: not regions.regions)
    array[:] = 1
    connection.close()


def test_one_region_is_opened_at_a_time(regions, make):
    pool, together, taken = make(), threading.Barrier(8), []

    def work():
        together.wait()
        taken.append(pool.take(1000, 30))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert regions.opened == [MIB] and len({place(slice) for slice in taken}) == 8
    pool.give_back(taken)


def test_threads_never_have_the_same(make):
    """Each fills what it has with a number of its own, and finds it unchanged."""
    pool, failures = make(16 * MIB), []

    def work(seed):
        rng, arrays = random.Random(seed), []
        for _ in range(300):
            size = rng.randrange(1, 400_000)
            try:
                array = lend(pool, size, extra=rng.random() < 0.3)
            except warpline.ResourceExhausted:
                array = None
            if array is not None:
                array[:] = seed
                arrays.append(array)
            if len(arrays) > 3:
                gone = arrays.pop(rng.randrange(len(arrays)))
                if not (gone == seed).all():
                    failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
