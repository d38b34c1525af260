"""Protobuf's wire format: just enough to send and receive arrays without a copy into a `bytes` field.

Generated messages encode the small parts of a request; this module adds the elements. Responses are parsed into
(field number, value) pairs, where the value of a length-delimited field is a slice of the response.
"""

from collections.abc import Iterator

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5


class WireError(ValueError):
    """The bytes are not a valid message."""


def varint(value: int) -> bytes:
    """Encodes `value` >= 0 as a varint: seven bits per byte, lowest first."""
    if value < 0x80:
        return bytes((value,))
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def length_prefix(number: int, size: int) -> bytes:
    """Tag and length that precede the `size` bytes of field `number`."""
    return varint(number << 3 | LENGTH) + varint(size)


def read_varint(data: memoryview, at: int) -> tuple[int, int]:
    """Decodes the varint at `at`. Returns its value and its end."""
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7
    raise WireError("a number does not end")


def fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yields number and value of each field, in message order. Values of fixed size are slices too."""
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        number, kind = key >> 3, key & 7
        if number == 0:
            raise WireError("a field has no number")
        if kind == VARINT:
            value, at = read_varint(data, at)
            yield number, value
            continue
        if kind == LENGTH:
            size, at = read_varint(data, at)
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
        else:
            raise WireError(f"field {number} has the unknown type {kind}")
        if size > len(data) - at:
            raise WireError(f"field {number} goes beyond the end of the message")
        yield number, data[at : at + size]
        at += size


def submessage(value: int | memoryview) -> memoryview:
    """The value of a length-delimited field."""
    if isinstance(value, int):
        raise WireError("a message was expected, not a number")
    return value


def integer(value: int | memoryview) -> int:
    """The value of a varint field, as a signed 64-bit number."""
    if not isinstance(value, int):
        raise WireError("a number was expected, not a message")
    return integers(value)[0]


def integers(value: int | memoryview) -> list[int]:
    """The signed 64-bit numbers of one occurrence of a repeated field, packed or not."""
    numbers = []
    if isinstance(value, int):
        numbers.append(value)
    else:
        at = 0
        while at < len(value):
            number, at = read_varint(value, at)
            numbers.append(number)
    return [n - (1 << 64) if n >> 63 else n for n in numbers]
