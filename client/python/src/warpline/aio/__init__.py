"""The asynchronous client. Its methods are those of warpline.Client, as coroutines.

    async with warpline.aio.connect("127.0.0.1:50051") as c:
        y, d = await asyncio.gather(c.transpose(x), c.gemm(x, x.T))
"""

from warpline import targets
from warpline.aio.client import Client
from warpline.aio.tensors import Tensor
from warpline.targets import MAX_RETRIES, POOL_BYTES, Mode

__all__ = ["Client", "Tensor", "connect"]


def connect(target: str | None = None, *, timeout: float = 60.0, max_retries: int = MAX_RETRIES,
            tls_ca: str | None = None, tls_cert: str | None = None, tls_key: str | None = None,
            token: str | None = None, token_file: str | None = None,
            shared_memory: Mode = "auto", regions: str | None = None,
            pool_bytes: int = POOL_BYTES, own_connection: bool = False, reproducible: bool = False,
            channels: int | None = None) -> Client:
    """Makes an asynchronous client. The arguments are those of warpline.connect. Call this function and use the client
    in the same event loop."""
    connection = targets.connection(targets.given_or_usual(target), timeout, max_retries, tls_ca, tls_cert, tls_key,
                                    token, token_file, shared_memory, regions, pool_bytes, own_connection, channels)
    return Client(connection, reproducible)
