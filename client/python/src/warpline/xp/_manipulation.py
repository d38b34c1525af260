"""Manipulation functions of the standard."""

import operator
from collections.abc import Sequence

import numpy as np

from warpline import composed, indexing, views
from warpline.xp._arrays import Array
from warpline.xp._checks import array_of, of_common_dtype

Axes = int | tuple[int, ...] | None


def concat(arrays: Sequence[Array], /, *, axis: int | None = 0) -> Array:
    given = of_common_dtype("concat", arrays)
    return arrays[0]._made(views.concatenate(given, axis), *arrays[1:])


def stack(arrays: Sequence[Array], /, *, axis: int = 0) -> Array:
    given = of_common_dtype("stack", arrays)
    return arrays[0]._made(views.stack(given, axis), *arrays[1:])


def unstack(x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
    moved = moveaxis(x, axis, 0)
    return tuple(moved[i] for i in range(moved.shape[0]))


def reshape(x: Array, /, shape: int | tuple[int, ...], *, copy: bool | None = None) -> Array:
    if copy is False:
        raise ValueError("arrays never share memory: reshape makes a new one")
    return array_of("reshape", x)._made(views.reshape(x._x, (shape,) if isinstance(shape, int) else tuple(shape)))


def permute_dims(x: Array, /, axes: tuple[int, ...]) -> Array:
    return array_of("permute_dims", x)._made(x._x.transpose(tuple(axes)))


def matrix_transpose(x: Array, /) -> Array:
    return array_of("matrix_transpose", x).mT


def moveaxis(x: Array, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Array:
    return array_of("moveaxis", x)._made(views.moveaxis(x._x, source, destination))


def expand_dims(x: Array, /, axis: int = 0) -> Array:
    given, axis = array_of("expand_dims", x), operator.index(axis)
    if not -given.ndim - 1 <= axis <= given.ndim:
        raise IndexError(f"axis is {axis}, which is outside of [{-given.ndim - 1}, {given.ndim}]")
    return given._made(views.expand_dims(given._x, axis))


def squeeze(x: Array, /, axis: int | tuple[int, ...]) -> Array:
    return array_of("squeeze", x)._made(views.squeeze(x._x, axis))


def broadcast_to(x: Array, /, shape: tuple[int, ...]) -> Array:
    return array_of("broadcast_to", x)._made(views.broadcast_to(x._x, tuple(shape)))


def broadcast_arrays(*arrays: Array) -> list[Array]:
    given = [array_of("broadcast_arrays", x)._x for x in arrays]
    return [x._made(y) for x, y in zip(arrays, composed.broadcast_arrays(*given))] if given else []


def flip(x: Array, /, *, axis: Axes = None) -> Array:
    return array_of("flip", x)._made(views.flip(x._x, axis))


def roll(x: Array, /, shift: int | tuple[int, ...], *, axis: Axes = None) -> Array:
    return array_of("roll", x)._made(indexing.roll(x._x, shift, axis))


def tile(x: Array, repetitions: tuple[int, ...], /) -> Array:
    return array_of("tile", x)._made(indexing.tile(x._x, repetitions))


def repeat(x: Array, repeats: int | Array, /, *, axis: int | None = None) -> Array:
    given = array_of("repeat", x)
    counts = np.asarray(repeats) if isinstance(repeats, Array) else repeats
    return given._made(indexing.repeat(given._x, counts, axis))
