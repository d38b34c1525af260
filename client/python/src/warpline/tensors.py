"""Resident tensors of the blocking client."""

import contextlib
import os
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from warpline import calls, errors, residents, transfers
from warpline.arrays import Array
from warpline.connections import Connection
from warpline.expressions import Expression, Operators, computed_array
from warpline.leases import CALL_TIMEOUT, Leases
from warpline.programs import FREE, Program
from warpline.residents import Resident, TensorInfo

if TYPE_CHECKING:
    from warpline.client import Client


class Handle(Resident, Operators):
    """What resident tensors of both clients have in common: where they stand in expressions."""

    @property
    def program(self) -> Program:
        """None in particular: expressions of resident tensors go into any program."""
        return FREE

    @property
    def T(self) -> Expression:
        """With all axes reversed. As a factor of a product it costs nothing if there are two."""
        if self.ndim == 2:
            return FREE.swapped(self)
        return self.transpose(reversed(range(self.ndim)))

    @property
    def mT(self) -> Expression:
        """With the last two axes swapped. As a factor of a product it costs nothing."""
        return FREE.swapped(self) if self.ndim >= 2 else self.transpose()

    def _known_dtype(self) -> np.dtype[Any]:
        return self.dtype


class Tensor(Handle):
    """An array that stays on a device of the server: `client.put(x)`, or a result with `keep=True`. It never
    changes. It stands wherever an array may stand in calls of its client, and its bytes do not travel for that.

    np.asarray(t) fetches the elements. Methods and operators (t @ u, t + 1, t.T, t.sum(axis=1)) give expressions,
    which client.run computes, or np.asarray.

    Its lease is renewed in the background while this object lives. When it is garbage, or at the end of a `with`
    block, or when the client closes, the tensor is dropped, at once or soon; in the worst case its lease ends.
    What `client.tensor(id)` gives is someone else's: it is not dropped then. After a fork, a child does not renew
    or drop what its parent has made.
    """

    def __init__(self, client: "Client", connection: Connection, info: TensorInfo, leases: Leases | None,
                 owned: bool) -> None:
        """leases: those that renew it; None: nobody does."""
        super().__init__(info)
        self._client = client
        self._connection = connection
        self._process = os.getpid()
        self._owned = owned
        self._let_go: Callable[[], object] | None = leases.keep(self, info.ttl, owned) if leases else None

    def __enter__(self) -> "Tensor":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if not self._owned:
            self.release()
            return
        if kind is not None:
            self._drop_once()
        else:
            self.drop()

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        return computed_array(self.numpy() if copy is not False else np.empty(0), dtype, copy)

    def numpy(self, *, out: Array | None = None, channels: int | None = None, timeout: float | None = None,
              request_id: str | None = None) -> Array:
        """The elements, in a new array, or in `out`, which has the tensor's shape and dtype and any layout.

        channels: as of Client.put. Errors: NotFound, if the tensor is no more; InvalidArgument, if its elements
        have not all been put.
        """
        return transfers.Get(self._connection, self, out, channels, timeout, request_id).run()

    def drop(self, *, timeout: float | None = None) -> None:
        """Ends the lease now. That there is no such tensor any more is no error, nor that its server was started again,
        or that the client is closed, which has dropped what it owned. In a child of the process that made the tensor
        nothing happens."""
        if os.getpid() != self._process:
            return
        self.release()
        try:
            self._connection.invoke(residents.DROP_METHOD, residents.encode_drop(self.id), timeout, None)
        except (errors.NotFound, errors.FailedPrecondition):
            pass
        except errors.Cancelled:
            if not self._connection.closed:
                raise

    def _drop_once(self) -> None:
        """After an error, which says more than one of this, and may be that the server has gone."""
        if os.getpid() == self._process:
            body = residents.encode_drop(self.release())
            with contextlib.suppress(errors.Error):
                self._connection.ask(residents.DROP_METHOD, body, CALL_TIMEOUT)

    def release(self) -> str:
        """Leaves the tensor to itself: it is neither renewed nor dropped by this object any more, and lasts for as
        long as its lease. Returns the id, with which Client.tensor finds it, in any process."""
        if self._let_go is not None and os.getpid() == self._process:
            self._let_go()
        self._let_go = None
        self._owned = False
        return self.id

    def renew(self, ttl: float | None = None, *, timeout: float | None = None) -> TensorInfo:
        """Begins the lease anew. ttl: seconds; None: as long as before. NotFound if it has ended."""
        body = residents.encode_renew(self.id, ttl)
        response, request_id = self._connection.invoke(residents.RENEW_METHOD, body, timeout, None)
        return calls.valid(residents.decode_created, response, request_id)

    def _compute(self, expression: Any) -> Any:
        return self._client.run(expression)
