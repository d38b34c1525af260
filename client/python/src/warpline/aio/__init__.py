"""The asynchronous client, on grpc.aio. Its methods are those of warpline.Client, as coroutines."""

from collections.abc import Sequence
from typing import Any

import grpc

from warpline.aio.client import Client
from warpline.aio.tensors import Tensor
from warpline.sending import MAX_RETRIES
from warpline.shared import POOL_BYTES, Mode

__all__ = ["Client", "Tensor", "connect"]


def connect(target: str, *, timeout: float = 60.0, max_retries: int = MAX_RETRIES,
            credentials: grpc.ChannelCredentials | None = None,
            options: Sequence[tuple[str, Any]] = (), shared_memory: Mode = "auto", regions: str | None = None,
            pool_bytes: int = POOL_BYTES) -> Client:
    """As warpline.connect. To be called, and used, in one event loop."""
    return Client(target, timeout=timeout, max_retries=max_retries, credentials=credentials, options=options,
                  shared_memory=shared_memory, regions=regions, pool_bytes=pool_bytes)
