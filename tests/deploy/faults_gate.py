"""A TCP relay between clients and a daemon that can stop half-way through what they send."""

import contextlib
import select
import socket
import threading

CHUNK_BYTES = 64 << 10
GONE = select.POLLRDHUP | select.POLLHUP | select.POLLERR


class Gate:
    """Passes on all bytes until `stop_after`. When one side of a connection is gone, the other side sees it at once,
    stopped or not. Public: address, for clients; stopped, an event: a byte has not passed."""

    def __init__(self, server):
        """server: the address HOST:PORT of a daemon, which need not be there all the time."""
        host, _, port = server.rpartition(":")
        self._server, self.stopped = (host, int(port)), threading.Event()
        self._lock, self._left = threading.Lock(), {"up": None, "down": None}
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def stop_after(self, direction, count):
        """Lets so many bytes more pass to the daemon ("up") or to clients ("down"), on all connections together."""
        with self._lock:
            self._left[direction] = count

    def open(self):
        """Lets all bytes pass, on connections that begin from now on."""
        with self._lock:
            self._left = {"up": None, "down": None}
            self.stopped.clear()

    def _take(self, direction, count):
        """How many of these bytes may pass."""
        with self._lock:
            left = self._left[direction]
            if left is None:
                return count
            if count > left:
                self.stopped.set()
            self._left[direction] = max(0, left - count)
            return min(count, left)

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connection, args=(client,), daemon=True).start()

    def _connection(self, client):
        with client, contextlib.suppress(OSError), socket.create_connection(self._server) as server:
            ends = {client.fileno(): (client, server, "up"), server.fileno(): (server, client, "down")}
            poll = select.poll()
            for number in ends:
                poll.register(number, select.POLLIN | GONE)
            while True:
                for number, events in poll.poll():
                    # A side that is gone has sent nothing more that anybody waits for.
                    if events & GONE:
                        return
                    source, target, direction = ends[number]
                    data = source.recv(CHUNK_BYTES)
                    # What may not pass is lost. It is read all the same, because the end of a process comes after it.
                    target.sendall(data[:self._take(direction, len(data))])
