"""Resident tensors of the asynchronous client."""

from types import TracebackType
from typing import TYPE_CHECKING, Any

from warpline import errors
from warpline.arrays import Array
from warpline.calls import Progress
from warpline.residents import TensorInfo
from warpline.tensors import Handle, Owner

if TYPE_CHECKING:
    from warpline.aio.client import Client


class Tensor(Handle):
    """A resident tensor of the asynchronous client. `async with` drops the tensor at the end. np.asarray cannot fetch
    or compute asynchronously: use `await t.numpy()` and `await client.run(t @ u)`."""

    _class_name = "warpline.aio.Tensor"

    def __init__(self, client: "Client", handle: Any, owned: bool) -> None:
        """See warpline.Tensor."""
        super().__init__(handle)
        self._client = client
        self._lease = Owner(self._handle, owned)

    async def __aenter__(self) -> "Tensor":
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        traceback: TracebackType | None) -> None:
        if not self._lease.owned:
            self.release()
            return
        if kind is not None:
            self._lease.drop()  # without waiting: the server may be gone
        else:
            await self.drop()

    async def numpy(self, *, out: Array | None = None, channels: int | None = None, timeout: float | None = None,
                    request_id: str | None = None, progress: Progress | None = None) -> Array:
        """See warpline.Tensor.numpy. `progress` is called in another thread."""
        return await self._client._get(self, out, channels, timeout, request_id, progress)

    async def drop(self, *, timeout: float | None = None) -> None:
        """See warpline.Tensor.drop."""
        if not self._lease.here:
            return
        self.release()
        try:
            await self._client._drop(self.id, timeout)
        except (errors.NotFound, errors.FailedPrecondition):
            pass
        except errors.Cancelled:
            if not self._client._connection.closed:
                raise

    def release(self) -> str:
        """See warpline.Tensor.release."""
        self._lease.release()
        return self.id

    async def renew(self, ttl: float | None = None, *, timeout: float | None = None) -> TensorInfo:
        """See warpline.Tensor.renew."""
        return await self._client._renew(self.id, ttl, timeout)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        raise TypeError(f"{self!r} is of an asynchronous client: await its numpy()")
