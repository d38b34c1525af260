"""Protobuf's wire format by hand: tests of what is not valid need it."""


def varint(value):
    """Seven bits per byte, lowest first."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def length_prefix(number, size):
    """Tag and length before the `size` bytes of a field."""
    return varint(number << 3 | 2) + varint(size)
