"""Arrays for tests of shared memory."""

import numpy as np

from warpline._core import ffi, lib

from messages import address_of

LARGE = (300, 400)
MIB = 1 << 20


def values(shape=LARGE, seed=30):
    return np.random.default_rng(seed).standard_normal(shape)


def shared(client, array):
    """It lies in shared memory that the server has."""
    address = ffi.cast("void *", address_of(array))
    return bool(lib.warpline_client_shares(client._connection._handle, address, array.nbytes))


def filled(client, x):
    array = client.empty(x.shape, x.dtype)
    array[...] = x
    return array
