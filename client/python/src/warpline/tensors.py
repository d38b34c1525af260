"""Resident tensors of the blocking client."""

import os
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from warpline import errors
from warpline._core import lib
from warpline.arrays import Array
from warpline.calls import Progress
from warpline.expressions import Expression
from warpline.operators import Operators, computed_array
from warpline.programs import FREE, Program
from warpline.residents import Resident, TensorInfo

if TYPE_CHECKING:
    from warpline.client import Client


class Handle(Resident, Operators):
    """A resident tensor that can be part of an expression."""

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} cannot be pickled, because only this process renews its lease: send the id that "
                        "t.release() returns, and call client.tensor(id) there")

    @property
    def program(self) -> Program:
        """The free program: expressions of resident tensors can be used in any program."""
        return FREE

    @property
    def T(self) -> Expression:
        """This tensor with all axes reversed. With two axes, it costs nothing as a factor of a product."""
        if self.ndim == 2:
            return FREE._swapped_tensor(self)
        return self.transpose()

    @property
    def mT(self) -> Expression:
        """This tensor with its last two axes swapped. It costs nothing as a factor of a product."""
        return FREE._swapped_tensor(self) if self.ndim >= 2 else self.transpose()


class Owner:
    """Drops or releases the tensor of a handle, for both clients. Objects that share a lease share this."""

    def __init__(self, handle: Any, owned: bool) -> None:
        """handle: the warpline_tensor."""
        self._handle = handle
        self._process = os.getpid()
        self.owned = owned

    @property
    def here(self) -> bool:
        """False in a child of the process that made the tensor."""
        return os.getpid() == self._process

    def drop(self) -> None:
        """Drops the tensor in the background."""
        if self.here:
            lib.warpline_tensor_drop(self._handle)
        self.owned = False

    def release(self) -> None:
        """Neither renews nor drops the tensor any more."""
        if self.here:
            lib.warpline_tensor_release(self._handle)
        self.owned = False


class Tensor(Handle):
    """An array that stays on a device of the server. `client.put(x)` returns one, and so do calls with `keep=True`. A
    tensor never changes. Calls of its client take a tensor in place of any array, without sending its bytes.

    np.asarray(t) fetches the elements. Other functions of NumPy that fetch them, such as np.cov(t), issue
    WarplinePerformanceWarning once for each line of code. Methods and operators (t @ u, t + 1, t.T, t.sum(axis=1)) return
    expressions. client.run or np.asarray computes them.

    The lease is renewed in the background while this object lives. The tensor is dropped at the end of a `with`
    block, when the client is closed, or soon after the object has become garbage. A `with` block that an exception ends
    does not wait for the drop. If none of that can happen, the lease ends. `copy.copy(t)` is another object for the same
    tensor. The two share the lease, and the tensor is dropped with the last of them. `drop` and the end of a `with`
    block drop it for both. A tensor from `client.tensor(id)` belongs to someone else, and is not dropped. After a
    fork, the child neither renews nor drops its parent's tensors.
    """

    def __init__(self, client: "Client", handle: Any, owned: bool) -> None:
        """handle: the warpline_tensor, which renews the lease if it is to be renewed."""
        super().__init__(handle)
        self._client = client
        self._lease = Owner(self._handle, owned)

    def __copy__(self) -> "Tensor":
        """Another object for the same tensor. They share the lease: the tensor is dropped with the last of them."""
        copied = object.__new__(Tensor)
        copied.__dict__.update(self.__dict__)
        return copied

    def __enter__(self) -> "Tensor":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if not self._lease.owned:
            self.release()
            return
        if kind is not None:
            self._lease.drop()  # without waiting: the server may be gone
        else:
            self.drop()

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        return computed_array(self.numpy() if copy is not False else np.empty(0), dtype, copy)

    def numpy(self, *, out: Array | None = None, channels: int | None = None, timeout: float | None = None,
              request_id: str | None = None, progress: Progress | None = None) -> Array:
        """Fetches the elements, into a new array or into `out`. Raises NotFound if the tensor no longer exists, and
        InvalidArgument if some of its elements have not been put.

        out: Array of the tensor's shape and dtype, in any layout.
        channels: Connections to use at once, 1 to 64. None: one for each 2 MiB, at most 8.
        timeout: Seconds for the whole transfer. None: the client's own.
        request_id: As in Client.
        progress: Called with the bytes transferred so far and the total, and at the end.
        """
        return self._client._get(self, out, channels, timeout, request_id, progress)

    def drop(self, *, timeout: float | None = None) -> None:
        """Ends the lease now. It is not an error if the tensor is gone already or if its server has restarted. It is
        not an error if the client is closed: closing has dropped the tensors that the client owned. Does nothing in a
        child of the process that made the tensor.

        timeout: Seconds. None: the client's own.
        """
        if not self._lease.here:
            return
        self.release()
        try:
            self._client._drop(self.id, timeout)
        except (errors.NotFound, errors.FailedPrecondition):
            pass
        except errors.Cancelled:
            if not self._client._connection.closed:
                raise

    def release(self) -> str:
        """Releases the tensor from this object, which no longer renews or drops it. The tensor lasts until its lease
        ends. Returns the id, with which `Client.tensor` finds the tensor in any process."""
        self._lease.release()
        return self.id

    def renew(self, ttl: float | None = None, *, timeout: float | None = None) -> TensorInfo:
        """Renews the lease. Raises NotFound if the lease has ended.

        ttl: New duration of the lease in seconds. None: the same as before.
        timeout: Seconds for the call. None: the client's own.
        """
        return self._client._renew(self.id, ttl, timeout)

    def _compute(self, expression: Any) -> Any:
        return self._client.run(expression)
