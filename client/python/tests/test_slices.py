import random

import pytest

from warpline.slices import ALIGNMENT, Slices, rounded


def test_sizes_are_rounded_up():
    assert [rounded(n) for n in (0, 1, 256, 257)] == [256, 256, 256, 512]
    assert [rounded(n, 4096) for n in (1, 4096, 4097)] == [4096, 4096, 8192]


def test_the_whole_can_be_taken_at_once_and_in_parts():
    slices = Slices(1024)
    assert slices.take(1024) == 0 and slices.take(256) is None and slices.taken == 1024
    slices.give_back(0, 1024)
    assert sorted(slices.take(256) for _ in range(4)) == [0, 256, 512, 768] and slices.take(256) is None


def test_neighbours_become_one():
    for order in ((0, 1, 2), (0, 2, 1), (2, 0, 1), (1, 0, 2), (1, 2, 0), (2, 1, 0)):
        slices = Slices(768)
        offsets = [slices.take(256) for _ in range(3)]
        for i in order:
            slices.give_back(offsets[i], 256)
        assert slices.taken == 0 and slices.take(768) == 0


def test_the_smallest_hole_that_fits_is_used():
    slices = Slices(4096)
    small, _, large, _ = (slices.take(size) for size in (256, 256, 1024, 256))
    slices.give_back(large, 1024)
    slices.give_back(small, 256)
    assert slices.take(256) == small and slices.take(512) == large


def test_what_was_used_last_is_used_first():
    slices = Slices(4096)
    taken = [slices.take(512) for _ in range(8)]
    for i in (1, 5, 3):
        slices.give_back(taken[i], 512)
    assert [slices.take(512) for _ in range(3)] == [taken[3], taken[5], taken[1]]


@pytest.mark.parametrize("seed", range(5))
def test_against_a_plain_model(seed):
    """Which blocks are taken, one flag each."""
    rng, blocks = random.Random(seed), 64
    slices, model, taken = Slices(blocks * ALIGNMENT), [False] * blocks, []
    for _ in range(3000):
        if taken and rng.random() < 0.48:
            at, count = taken.pop(rng.randrange(len(taken)))
            slices.give_back(at * ALIGNMENT, count * ALIGNMENT)
            assert all(model[at : at + count])
            model[at : at + count] = [False] * count
        else:
            count = rng.choice([1, 1, 2, 3, 5, 8, 20])
            holes = [len(run) for run in "".join(".#"[flag] for flag in model).split("#")]
            offset = slices.take(count * ALIGNMENT)
            assert (offset is None) == (max(holes) < count)
            if offset is None:
                continue
            at = offset // ALIGNMENT
            assert offset % ALIGNMENT == 0 and not any(model[at : at + count])
            # The hole was the smallest that was large enough.
            begin = at
            while begin > 0 and not model[begin - 1]:
                begin -= 1
            end = at
            while end < blocks and not model[end]:
                end += 1
            assert end - begin == min(hole for hole in holes if hole >= count)
            model[at : at + count] = [True] * count
            taken.append((at, count))
        assert slices.taken == sum(model) * ALIGNMENT
