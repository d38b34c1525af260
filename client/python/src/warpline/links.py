"""The connection of a region. It hands the memory to the server, and the server reports the ends of calls."""

import contextlib
import os
import select
import socket
import threading
import time
import weakref
from collections.abc import Callable

import grpc
from google.protobuf.message import DecodeError

from warpline import errors
from warpline.v1 import warpline_pb2 as v1

# Maximum size of one packet, in bytes.
_MAX_PACKET = 4096
_MOST_SECONDS_TO_SEND = 10.0

_CODES = {code.value[0]: code for code in grpc.StatusCode}


class NoRegionSocket(errors.Unavailable):
    """Nobody answers at the region socket. The server itself may still answer calls."""


class Link:
    """A connection to the region socket that has handed over a memfd. The region lives as long as the connection.

    A separate thread receives, and keeps only the link alive. The code that opens a link must close it.
    id: id of the region, for requests; a secret.
    """

    def __init__(self, connected: socket.socket, id: str) -> None:
        """Use `hand_over`."""
        self.id = id
        self._socket = connected
        self._open = True
        # Withdrawn calls that may still use the region: the server will report their ends.
        self._withdrawn: set[int] = set()
        # Guards _open and _withdrawn.
        self._changed = threading.Condition()
        _links.add(self)
        threading.Thread(target=self._receive, name="warpline-region", daemon=True).start()

    @property
    def open(self) -> bool:
        """True while the region exists. After False, this never becomes True again."""
        return self._open

    def close(self) -> None:
        """Closes the link. The server releases the region when its last job there has ended."""
        try:
            # Ends the thread's wait. Ends the connection even if a child still has the socket.
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # already closed
        self._end()

    def withdraw(self, call: int) -> None:
        """Asks the server to report the end of a call. Until the report arrives, `using` returns True."""
        with self._changed:
            if not self._open:
                return
            self._withdrawn.add(call)
        packet = v1.RegionRequest(withdrawal=v1.RegionWithdrawal(call=call)).SerializeToString()
        try:
            try:
                self._socket.send(packet, socket.MSG_DONTWAIT)
            except BlockingIOError:
                # Hundreds of packets are queued. A server that reads none of them for 10 s is gone.
                select.select([], [self._socket], [], _MOST_SECONDS_TO_SEND)
                self._socket.send(packet, socket.MSG_DONTWAIT)
        except (OSError, ValueError):  # ValueError: closed meanwhile
            self.close()

    def using(self, call: int) -> bool:
        """True if a withdrawn call may still read and write the region. After the link is closed, the result
        never changes."""
        return call in self._withdrawn

    def wait(self, call: int, seconds: float | None = None, given_up: Callable[[], bool] = lambda: False) -> bool:
        """Waits until a withdrawn call has ended or the link is closed, and returns True. Returns False after
        `seconds`, or if `given_up` returns True. `wake` makes this check `given_up` again."""
        def ended() -> bool:
            return not self._open or call not in self._withdrawn

        with self._changed:
            self._changed.wait_for(lambda: ended() or given_up(), seconds)
            return ended()

    def wake(self) -> None:
        """Makes all `wait` calls check `given_up` again."""
        with self._changed:
            self._changed.notify_all()

    def _receive(self) -> None:
        while True:
            try:
                packet = self._socket.recv(_MAX_PACKET)
                reply = v1.RegionReply.FromString(packet)
            except (OSError, DecodeError):
                break
            # An empty packet means closed. The server closes after an error.
            if not packet or reply.WhichOneof("reply") == "error":
                break
            if reply.WhichOneof("reply") != "ended":
                continue  # a reply of a newer server
            with self._changed:
                self._withdrawn.discard(reply.ended.call)
                self._changed.notify_all()
        self._end()
        self._socket.close()

    def _end(self) -> None:
        with self._changed:
            self._open = False
            self._changed.notify_all()


# The links of this process, open or closed.
_links: weakref.WeakSet[Link] = weakref.WeakSet()


def _forget_links() -> None:
    """Closes the links in a forked child. The connections belong to the parent, and must not outlive the parent."""
    for link in list(_links):
        link._open = False
        link._changed = threading.Condition()  # a thread of the parent may have held it
        # A shutdown would end the parent's connection too.
        link._socket.close()


os.register_at_fork(after_in_child=_forget_links)


def hand_over(path: str, ticket: str, fd: int, deadline: float) -> Link:
    """Gives the server a memfd, for the ticket of RegionService.Open. deadline: on the clock time.monotonic. Raises the
    server's errors.Error. Raises Unimplemented if there is no such socket or this user may not use it, and
    NoRegionSocket if nobody answers there."""
    connected = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connected.settimeout(max(deadline - time.monotonic(), 1e-3))
        connected.connect(path)
        handover = v1.RegionRequest(handover=v1.RegionHandover(ticket=ticket))
        with contextlib.suppress(BrokenPipeError):  # a full server has replied already
            socket.send_fds(connected, [handover.SerializeToString()], [fd])
        reply = v1.RegionReply.FromString(connected.recv(_MAX_PACKET))
        if reply.WhichOneof("reply") == "error":
            raise errors.of_code(_CODES.get(reply.error.code, grpc.StatusCode.UNKNOWN), reply.error.message)
        if not reply.ready.id:
            raise NoRegionSocket(grpc.StatusCode.UNAVAILABLE, f"the region socket {path} closed the connection")
        connected.settimeout(None)
        return Link(connected, reply.ready.id)
    except errors.Error:  # some of these are OSErrors too
        connected.close()
        raise
    except (OSError, DecodeError) as error:
        connected.close()
        if isinstance(error, PermissionError):
            raise errors.Unimplemented(
                grpc.StatusCode.UNIMPLEMENTED, f"the region socket {path}: {error}: its mode is 0600, so that the client "
                "must run as the user who runs the server") from error
        if isinstance(error, FileNotFoundError) or "too long" in str(error):
            raise errors.Unimplemented(grpc.StatusCode.UNIMPLEMENTED, f"the region socket {path}: {error}") from error
        raise NoRegionSocket(grpc.StatusCode.UNAVAILABLE, f"the region socket {path}: {error}") from error
    except BaseException:
        connected.close()
        raise
