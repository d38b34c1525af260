"""The asynchronous client, on grpc.aio. Its methods are those of warpline.Client, as coroutines."""

from collections.abc import Sequence
from typing import Any

import grpc

from warpline import sending, tls
from warpline.aio.client import Client
from warpline.aio.tensors import Tensor
from warpline.sending import MAX_RETRIES
from warpline.shared import POOL_BYTES, Mode

__all__ = ["Client", "Tensor", "connect"]


def connect(target: str, *, timeout: float = 60.0, max_retries: int = MAX_RETRIES,
            tls_ca: str | None = None, tls_cert: str | None = None, tls_key: str | None = None,
            token: str | None = None, token_file: str | None = None,
            credentials: grpc.ChannelCredentials | None = None,
            options: Sequence[tuple[str, Any]] = (), shared_memory: Mode = "auto", regions: str | None = None,
            pool_bytes: int = POOL_BYTES, reproducible: bool = False) -> Client:
    """Makes an asynchronous client. The arguments are those of warpline.connect. Call this function and use the client
    in the same event loop."""
    credentials = tls.credentials_for(target, credentials, tls_ca, tls_cert, tls_key)
    return Client(target, timeout=timeout, max_retries=max_retries, credentials=credentials,
                  token=sending.check_token(token, token_file), options=options,
                  shared_memory=shared_memory, regions=regions, pool_bytes=pool_bytes, reproducible=reproducible)
