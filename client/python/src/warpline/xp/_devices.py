"""Devices, by which arrays are sent to servers."""

from typing import Any, NamedTuple

from warpline.xp import _sessions


class Device(NamedTuple):
    """A device of a server. Devices of one server are equal, as arrays of all of them compute together; libraries refuse arrays
    of devices that differ."""

    server: str  # its address
    ordinal: int  # as warpline.info().devices has it

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.server == other.server

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.server)

    def __str__(self) -> str:
        return f"{self.server}/{self.ordinal}"


def session_of(device: Any) -> _sessions.Session:
    """The session of a device; None: the default one."""
    if device is None:
        return _sessions.default()
    if isinstance(device, _sessions.Session):
        return device
    session = _sessions.at(device.server) if isinstance(device, Device) else None
    if session is None:
        raise ValueError(f"device is {device!r}: it is a device of an array of xp, or what xp.connect returns")
    return session
