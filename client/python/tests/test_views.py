"""Views, what joins arrays, and what makes them: they give what NumPy gives."""

import itertools

import numpy as np
import pytest
from comparison import same

import warpline

A = np.arange(6 * 5 * 4, dtype="f4").reshape(6, 5, 4)
TYPES = ["?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16"]


@pytest.fixture(scope="module")
def t(client):
    with client.put(A) as tensor:
        yield tensor


KEYS = [0, -1, slice(None), slice(1, 4), slice(None, None, -1), slice(4, None, -2), slice(-2, None), slice(3, 3), None,
        ...]


@pytest.mark.parametrize("key", [*KEYS, *itertools.product(KEYS[:8:2], KEYS[1:8:3]), (0, 1, 2), (..., 0), (0, ..., 0),
                                 (None, 1, None, ..., None), (slice(1, 3), slice(None), 2), ()], ids=repr)
def test_indexing(t, key):
    same(t[key], A[key])


def test_indices_that_are_wrong(t):
    for key, error in (((0, 0, 0, 0), IndexError), (6, IndexError), ((0, -6), IndexError), ((..., ...), IndexError),
                       (slice(0, 3, 0), ValueError), (1.0, TypeError), (True, TypeError), (slice(0.5, 2), TypeError)):
        with pytest.raises(error):
            t[key]
    with pytest.raises(ValueError, match="cannot be broadcast"):
        (t + np.ones(7))[0]
    with pytest.raises(TypeError, match="needs the shape"):
        warpline.placeholder("x", "f4")[0]


def test_shapes(t):
    same(t.reshape(5, -1), A.reshape(5, -1))
    same(t.reshape((2, 3, 20)), A.reshape(2, 3, 20))
    same(t.T.reshape(-1), A.T.reshape(-1))
    same(np.reshape(t[:, ::2], (4, -1)), A[:, ::2].reshape(4, -1))
    same(t.ravel(), A.ravel())
    same(np.ravel(t.T), A.T.ravel())
    same(t[:, :1].squeeze(), A[:, :1].squeeze())
    same(np.squeeze(t[:1, :, :1], 2), np.squeeze(A[:1, :, :1], 2))
    same(np.expand_dims(t, (0, -1)), np.expand_dims(A, (0, -1)))
    same(np.broadcast_to(t[:, :1], (2, 6, 5, 4)), np.broadcast_to(A[:, :1], (2, 6, 5, 4)))
    for axes in (None, 0, -1, (0, 2)):
        same(np.flip(t, axes), np.flip(A, axes))
    for source, destination in ((0, -1), (-1, 0), ((0, 1), (2, 0)), ((2, 0), (0, 1))):
        same(np.moveaxis(t, source, destination), np.moveaxis(A, source, destination))
    same(np.swapaxes(t, 0, -1), np.swapaxes(A, 0, -1))
    same(t.transpose(1, 0, 2), A.transpose(1, 0, 2))
    same(t.flatten(), A.flatten())
    for arguments in ((), (2,), (-3,), (0, 1, 2), (1, 2, 0)):
        same(np.diagonal(t, *arguments), np.diagonal(A, *arguments))
    assert len(t) == 6 and len(list(t[:2])) == 2
    with pytest.raises(ValueError):
        np.squeeze(t, 0)
    with pytest.raises(warpline.InvalidArgument, match="does not have the 120 elements"):
        np.asarray(t.reshape(7, -1))


@pytest.mark.parametrize("dtype", TYPES)
def test_views_are_copied_bit_for_bit(client, dtype):
    x = np.frombuffer(np.random.default_rng(1).bytes(16 * 35), dtype)[:35].reshape(5, 7)
    if dtype == "?":
        x = np.frombuffer(np.random.default_rng(1).bytes(35), "u1").reshape(5, 7) % 2 == 1
    with client.put(x) as u:
        for view, want in ((u[::-1, 1::2], x[::-1, 1::2]), (u.T[1:], x.T[1:]), (np.concatenate([u, u[:2]]), np.concatenate([x, x[:2]])),
                           (np.concatenate([u.T, u.T[:, 3:]], 1), np.concatenate([x.T, x.T[:, 3:]], 1)),
                           (np.broadcast_to(u[0], (3, 7)), np.broadcast_to(x[0], (3, 7)))):
            got = np.asarray(view)
            assert got.dtype == want.dtype and got.shape == want.shape and got.tobytes() == want.tobytes()


def test_readers_of_views(client, t):
    m, n = t[0], A[0]
    same(m + m.T.reshape(5, 4), n + n.T.reshape(5, 4))
    same(m * t[1, ::-1] - t[2, :, ::-1], n * A[1, ::-1] - A[2, :, ::-1])
    same(t[:, :, 0] + t[0, :, 0], A[:, :, 0] + A[0, :, 0])
    same(m.T @ t[1], n.T @ A[1])
    same(m @ t[1].T, n @ A[1].T)
    same(t.mT @ t[::-1], A.swapaxes(1, 2) @ A[::-1])
    same(t[:, 1:4, 1:3] @ t[:, 1:3, :], A[:, 1:4, 1:3] @ A[:, 1:3, :])
    same(t[::2].sum(0), A[::2].sum(0))
    same(t[1:, 1:3, 1:].max(1), A[1:, 1:3, 1:].max(1))
    same(t.T.argmax(2), A.T.argmax(2))
    # An array that is sent may be a view, too.
    p = warpline.program()
    same(client.run(p.input(n)[::-1] + 1), n[::-1] + 1)
    # Outputs that are views of one another, and of a result.
    total = t + 1
    for got, want in zip(client.run(total, total.reshape(-1), total[::2], total.T, t[0]),
                         (A + 1, (A + 1).ravel(), (A + 1)[::2], (A + 1).T, A[0])):
        same(got, want)


def test_reports_say_which_views_were_copied(client, t):
    reports = []
    client.run((t[0].T @ t[1]).reshape(-1), report=reports.append)
    assert len(reports[0].variants) == 7 and [v == "view" for v in reports[0].variants].count(False) == 1
    client.run(np.concatenate([t, t]), t[::2], report=reports.append)
    assert "view" not in reports[1].variants


def test_joining(client, t):
    same(np.concatenate([t, A[:2]]), np.concatenate([A, A[:2]]))
    same(np.concatenate([t, t[:, :0], t[:, 1:]], axis=1), np.concatenate([A, A[:, :0], A[:, 1:]], axis=1))
    same(np.concatenate([t, t.astype("i4")], axis=-1), np.concatenate([A, A.astype("i4")], axis=-1))
    same(np.concatenate([t, t[0]], axis=None), np.concatenate([A, A[0]], axis=None))
    for axis in (0, 1, -1):
        same(np.stack([t, t * 2, A], axis=axis), np.stack([A, A * 2, A], axis=axis))
    same(warpline.concatenate([A, t[:0]]), A)
    for function in (np.vstack, np.hstack):
        same(function([t, A[:2] if function is np.vstack else A]), function([A, A[:2] if function is np.vstack else A]))
        same(function([t[0, 0], A[0, 1]]), function([A[0, 0], A[0, 1]]))
    same(np.flipud(t), np.flipud(A))
    same(np.fliplr(t), np.fliplr(A))
    with pytest.raises(ValueError):
        np.stack([t, t[0]])
    with pytest.raises(TypeError, match="same_kind"):
        np.concatenate([t, t], dtype="i4")
    same(np.concatenate([t, t], dtype="i4", casting="unsafe"), np.concatenate([A, A], dtype="i4", casting="unsafe"))
    with pytest.raises(warpline.InvalidArgument, match="they may differ along axis 1 only"):
        np.asarray(np.concatenate([t, t[:2]], axis=1))


def test_making(client, t):
    run = client.run
    for dtype in TYPES:
        same(run(warpline.zeros((3, 2), dtype)), np.zeros((3, 2), dtype))
        same(run(warpline.ones(4, dtype)), np.ones(4, dtype))
        same(run(warpline.eye(3, 4, -1, dtype)), np.eye(3, 4, -1, dtype))
    same(run(warpline.full((2, 0), 7)), np.full((2, 0), 7))
    same(run(warpline.full((), 7.5)), np.full((), 7.5))
    for arguments in ((10,), (1, 10), (1, 10, 3), (5, -5, -2), (0, 1, 0.1), (1, 10, 0.3), (3, 3), (0.5,)):
        same(run(warpline.arange(*arguments)), np.arange(*arguments))
        same(run(warpline.arange(*arguments, dtype="f4")), np.arange(*arguments, dtype="f4"))
    for arguments in ((-3, 3, 0.5), (0.5, 3, 0.5), (0, 20, 3)):
        same(run(warpline.arange(*arguments, dtype="i8")), np.arange(*arguments, dtype="i8"))
    same(run(warpline.arange(0, 100, 0.1, dtype="f2")), np.arange(0, 100, 0.1, dtype="f2"))
    same(run(warpline.arange(2**63, 2**63 + 3, dtype="u8")), np.arange(2**63, 2**63 + 3, dtype="u8"))
    for value in (0.5, 2, np.nan, 1j, 0):
        same(run(warpline.full(3, value, bool)), np.full(3, value, bool))
    for arguments in ((0, 1, 7), (3, -4, 50), (2, 3, 1), (2, 3, 0), (1e-3, 1e3, 33)):
        for endpoint in (True, False):
            same(run(warpline.linspace(*arguments, endpoint=endpoint)), np.linspace(*arguments, endpoint=endpoint))
    same(run(warpline.linspace(0, 10, 7, dtype="i8")), np.linspace(0, 10, 7, dtype="i8"))
    for k in (-7, -2, 0, 1, 9):
        same(np.tril(t, k), np.tril(A, k))
        same(np.triu(t, k), np.triu(A, k))
    same(np.zeros_like(t) + t, A)
    same(run(np.full_like(t, 3, dtype="i2")), np.full_like(A, 3, dtype="i2"))
    same(t + warpline.arange(4, dtype="f4"), A + np.arange(4, dtype="f4"))
    with run(warpline.ones((1000, 1000), "f4"), keep=True) as kept:
        assert np.asarray(kept.sum()) == 1e6
    with pytest.raises(ValueError):
        warpline.zeros((2, -1))
    with pytest.raises(ValueError):
        warpline.arange(0, 1, 0)
