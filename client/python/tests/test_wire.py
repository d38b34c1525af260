import pytest

from warpline import wire
from warpline.v1 import warpline_pb2 as v1


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 2**32, 2**63, 2**64 - 1])
def test_numbers_come_back(value):
    encoded = wire.varint(value)
    assert wire.read_varint(memoryview(b"x" + encoded + b"y"), 1) == (value, 1 + len(encoded))


def test_fields_are_those_of_the_generated_parser():
    message = v1.GetInfoResponse(version="1", devices=[v1.Device(ordinal=3, name="gpu"), v1.Device()])
    found = list(wire.fields(memoryview(message.SerializeToString())))
    assert [number for number, _ in found] == [1, 4, 4]
    assert dict(wire.fields(wire.submessage(found[1][1]))) == {1: 3, 2: b"gpu"}


def test_fixed_sizes_are_skipped():
    times = v1.StageTimes(convert=1.5, device=2.5).SerializeToString()
    assert [number for number, _ in wire.fields(memoryview(times))] == [1, 5]
    assert list(wire.fields(memoryview(b"\x0d\x01\x02\x03\x04\x10\x07")))[1] == (2, 7)


def test_integers_packed_or_not():
    packed = v1.Tensor(shape=[3, 2**40, -1]).SerializeToString()
    (_, value), = wire.fields(memoryview(packed))
    assert wire.integers(value) == [3, 2**40, -1]
    assert wire.integers(2**64 - 1) == [-1]


@pytest.mark.parametrize("message", [b"\x80", b"\x08", b"\x0a\x05ab", b"\x0d\x01", b"\x0f", b"\x00\x00",
                                     b"\x08" + b"\xff" * 11])
def test_what_is_no_message_is_refused(message):
    with pytest.raises(wire.WireError):
        list(wire.fields(memoryview(message)))


def test_one_number():
    assert wire.integer(2**64 - 1) == -1
    for value in (b"", b"\x01"):
        with pytest.raises(wire.WireError):
            wire.integer(memoryview(value))
