"""The connection of a region: by it the server gets the memory, and tells of the ends of calls."""

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

# Of one packet.
_MAX_PACKET = 4096
_MOST_SECONDS_TO_SEND = 10.0

_CODES = {code.value[0]: code for code in grpc.StatusCode}


class NoRegionSocket(errors.Unavailable):
    """Nobody answers at the region socket, whatever else the server does."""


class Link:
    """A connection to the region socket on which a memfd has been handed over. The region lives for as long as it.

    A thread of its own receives. It keeps the link alive, and nothing else: links are closed by whoever opens them.
    id: of the region, for requests; a secret.
    """

    def __init__(self, connected: socket.socket, id: str) -> None:
        """Use `hand_over`."""
        self.id = id
        self._socket = connected
        self._open = True
        # Calls that may still use the region: the server has been asked for their ends.
        self._withdrawn: set[int] = set()
        # Guards the two above.
        self._changed = threading.Condition()
        _links.add(self)
        threading.Thread(target=self._receive, name="warpline-region", daemon=True).start()

    @property
    def open(self) -> bool:
        """The region exists. Once it does not, it never will again."""
        return self._open

    def close(self) -> None:
        """The server lets go of the region when its last job has ended."""
        try:
            # Ends the thread's wait, and the connection even where a child still has the socket.
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # It is closed.
        self._end()

    def withdraw(self, call: int) -> None:
        """Asks for the end of a call. Until it is there, `using` says that the call may use the region."""
        with self._changed:
            if not self._open:
                return
            self._withdrawn.add(call)
        packet = v1.RegionRequest(withdrawal=v1.RegionWithdrawal(call=call)).SerializeToString()
        try:
            try:
                self._socket.send(packet, socket.MSG_DONTWAIT)
            except BlockingIOError:
                # Hundreds of others are before it. A server that reads none of them for so long is gone.
                select.select([], [self._socket], [], _MOST_SECONDS_TO_SEND)
                self._socket.send(packet, socket.MSG_DONTWAIT)
        except (OSError, ValueError):  # ValueError: closed meanwhile.
            self.close()

    def using(self, call: int) -> bool:
        """A withdrawn call may still read and write the region. Of one whose link is closed nobody ever knows."""
        return call in self._withdrawn

    def wait(self, call: int, seconds: float | None = None, given_up: Callable[[], bool] = lambda: False) -> bool:
        """Waits until a withdrawn call has ended, or the link: True. False: it takes longer than that, or it is given
        up, which is looked at again after `wake`."""
        def ended() -> bool:
            return not self._open or call not in self._withdrawn

        with self._changed:
            self._changed.wait_for(lambda: ended() or given_up(), seconds)
            return ended()

    def wake(self) -> None:
        """Has those who wait see whether they still do."""
        with self._changed:
            self._changed.notify_all()

    def _receive(self) -> None:
        while True:
            try:
                packet = self._socket.recv(_MAX_PACKET)
                reply = v1.RegionReply.FromString(packet)
            except (OSError, DecodeError):
                break
            # Closed, or an error, after which it will be.
            if not packet or reply.WhichOneof("reply") == "error":
                break
            if reply.WhichOneof("reply") != "ended":
                continue  # Of a server that can say more.
            with self._changed:
                self._withdrawn.discard(reply.ended.call)
                self._changed.notify_all()
        self._end()
        self._socket.close()

    def _end(self) -> None:
        with self._changed:
            self._open = False
            self._changed.notify_all()


# Of this process, open or not.
_links: weakref.WeakSet[Link] = weakref.WeakSet()


def _forget_links() -> None:
    """In a child: the connections are its parent's, which they must not outlive."""
    for link in list(_links):
        link._open = False
        link._changed = threading.Condition()  # Somebody may have held it.
        # Not shut down, which the parent would notice.
        link._socket.close()


os.register_at_fork(after_in_child=_forget_links)


def hand_over(path: str, ticket: str, fd: int, deadline: float) -> Link:
    """Gives the server a memfd, for the ticket of RegionService.Open. deadline: of time.monotonic. errors.Error: the
    server's; Unimplemented if there is no such socket for us, and NoRegionSocket if nobody answers there."""
    connected = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connected.settimeout(max(deadline - time.monotonic(), 1e-3))
        connected.connect(path)
        handover = v1.RegionRequest(handover=v1.RegionHandover(ticket=ticket))
        with contextlib.suppress(BrokenPipeError):  # A server that is full has replied already.
            socket.send_fds(connected, [handover.SerializeToString()], [fd])
        reply = v1.RegionReply.FromString(connected.recv(_MAX_PACKET))
        if reply.WhichOneof("reply") == "error":
            raise errors.of_code(_CODES.get(reply.error.code, grpc.StatusCode.UNKNOWN), reply.error.message)
        if not reply.ready.id:
            raise NoRegionSocket(grpc.StatusCode.UNAVAILABLE, f"the region socket {path} closed the connection")
        connected.settimeout(None)
        return Link(connected, reply.ready.id)
    except errors.Error:  # Some are an OSError too.
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
