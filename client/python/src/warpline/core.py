"""The functions of libwarpline.so.0: calls of them, and arrays, programs and errors as Python has them."""

import atexit
import functools
import json
import os
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from warpline import errors, hints, interrupts
from warpline._core import ffi, lib
from warpline.dtypes import DTYPES, data_type

Array = np.ndarray[Any, Any]

NULL = ffi.NULL

# DLPack's code and bits of each element type.
_DLPACK = {"BOOL": (6, 8), "U8": (1, 8), "U16": (1, 16), "U32": (1, 32), "U64": (1, 64), "I8": (0, 8), "I16": (0, 16),
           "I32": (0, 32), "I64": (0, 64), "F16": (2, 16), "BF16": (4, 16), "F32": (2, 32), "F64": (2, 64),
           "C64": (5, 64), "C128": (5, 128), "F8E4M3": (10, 8), "F8E5M2": (12, 8)}
_TYPES = {f"DATA_TYPE_{name}": ffi.new("DLDataType *", (code, bits, 1))[0] for name, (code, bits) in _DLPACK.items()}
_TENSOR, _SIZES = ffi.typeof("DLTensor *"), ffi.typeof("int64_t[]")
_CPU = ffi.new("DLDevice *", (lib.kDLCPU, 0))[0]
_DTYPES = {pair: DTYPES[f"DATA_TYPE_{name}"] for name, pair in _DLPACK.items()}


# --- Text and programs


@functools.lru_cache(maxsize=4096)
def text(value: str) -> Any:
    """The terminated bytes of a str. Raises ValueError if it has a NUL."""
    return ffi.new("char[]", encoded(value))


def encoded(value: str) -> bytes:
    """The bytes of a str. Raises ValueError if it has a NUL, at which C would end it."""
    if "\0" in value:
        raise ValueError(f"{value!r} has a NUL character")
    return value.encode()


def read(pointer: Any) -> str:
    """The str of a C string."""
    return str(ffi.string(pointer), "utf-8", "replace")


class Program:
    """A program of the library. message: warpline.v1.Program, as protobuf's JSON. outputs: their names."""

    def __init__(self, message: str) -> None:
        """Raises InvalidArgument if the message is not valid."""
        self.message = message
        self.outputs: list[str] = json.loads(message)["outputs"]
        out = ffi.new("warpline_program **")
        check(lib.warpline_program_from_json(message.encode(), out))
        self.handle = ffi.gc(out[0], lib.warpline_program_free)


program = functools.lru_cache(maxsize=1024)(Program)


def operation(kind: str, inputs: tuple[str, ...], fields: tuple[tuple[str, Any], ...], variant: str) -> Program:
    """The program of a single operation, whose result is called like it."""
    # 0.0 and -0.0 are equal, but not the same.
    return _operation(kind, inputs, fields, variant, repr(fields) if fields else "")


@functools.lru_cache(maxsize=1024)
def _operation(kind: str, inputs: tuple[str, ...], fields: tuple[tuple[str, Any], ...], variant: str,
               key: str) -> Program:
    step = {"name": kind, "inputs": inputs, "variant": variant, kind: dict(fields)}
    return program(json.dumps({"steps": [step], "outputs": [kind]}))


# --- Arrays


def in_elements(array: Array) -> Array:
    """The array itself, or a copy of it if its strides are not whole elements, or its byte order is another one."""
    if array.flags.c_contiguous and array.dtype.isnative:
        return array
    if not array.dtype.isnative:
        return array.astype(array.dtype.newbyteorder("="))
    size = array.itemsize
    return np.ascontiguousarray(array) if any(stride % size for stride in array.strides) else array


def describe(array: Array, kept: list[Any]) -> Any:
    """The DLTensor of an array, which `in_elements` has returned. It is valid as long as `kept`."""
    shape, strides = array.shape, NULL
    if array.flags.c_contiguous:
        sizes = ffi.new(_SIZES, shape)
    else:
        size = array.itemsize
        sizes = ffi.new(_SIZES, [*shape, *(stride // size for stride in array.strides)])
        strides = sizes + len(shape)
    try:
        # Five times faster than asking for the address.
        data = ffi.from_buffer(array)
    except (BufferError, ValueError):  # not contiguous, or of a type that buffers lack
        data = ffi.cast("void *", array.ctypes.data)
    tensor = ffi.new(_TENSOR, (data, _CPU, len(shape), _type_of(array.dtype), sizes, strides))
    kept += (array, sizes, tensor)
    return tensor


@functools.lru_cache
def _type_of(dtype: np.dtype[Any]) -> Any:
    return _TYPES[data_type(dtype)]


def dlpack_type(name: str) -> Any:
    """The DLDataType of a data type of the API."""
    return _TYPES[name]


def kind_of(view: Any) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """The dtype and shape that a DLTensor describes."""
    return _DTYPES[view.dtype.code, view.dtype.bits], tuple(ffi.unpack(view.shape, view.ndim))


def own(array: Any) -> Array:
    """A warpline_array as an array of NumPy, which frees it."""
    view = lib.warpline_array_view(array)
    dtype, shape = kind_of(view)
    nbytes = dtype.itemsize
    for n in shape:
        nbytes *= n
    if not nbytes:
        lib.warpline_array_free(array)
        return np.empty(shape, dtype)
    memory = ffi.gc(ffi.cast("char *", view.data), lambda _: lib.warpline_array_free(array))
    return np.ndarray(shape, dtype, ffi.buffer(memory, nbytes))


class _Outcomes(threading.local):
    """The warpline_python_outcome of each thread, for the next call; None while a call has it."""

    outcome: Any = None


_outcomes = _Outcomes()


def infer(program: Program, inputs: Sequence[tuple[str, str, Sequence[int]]]) -> list[tuple[np.dtype[Any], Any]]:
    """The dtypes and shapes of a program's outputs. inputs: by name, data type and shape. Raises InvalidArgument, with
    the server's text, if the server would refuse them."""
    given = ffi.new("warpline_input[]", len(inputs))
    kept: list[Any] = []
    for slot, (name, number, shape) in zip(given, inputs):
        tensor, sizes = ffi.new("DLTensor *"), ffi.new("int64_t[]", list(shape))
        tensor.device.device_type, tensor.ndim = lib.kDLCPU, len(shape)
        tensor.dtype, tensor.shape = _TYPES[number], sizes
        slot.name = named = text(name)
        slot.array = tensor
        kept += (named, tensor, sizes)
    out = ffi.new("warpline_result **")
    check(lib.warpline_infer(program.handle, given, len(inputs), out))
    result = ffi.gc(out[0], lib.warpline_result_free)
    return [kind_of(lib.warpline_result_array(result, i)) for i in range(lib.warpline_result_count(result))]


# --- Errors


def error_of(error: Any, request_id: str = "") -> tuple[errors.Error, int]:
    """The exception for a warpline_error, which it frees, and the number of attempts."""
    violations = [errors.FieldViolation(read(lib.warpline_error_violation_field(error, i)),
                                        read(lib.warpline_error_violation_text(error, i)))
                  for i in range(lib.warpline_error_violation_count(error))]
    code = errors.StatusCode(lib.warpline_error_code(error))
    retry_after = lib.warpline_error_retry_seconds(error)
    answered = bool(lib.warpline_error_answered(error))
    if code is errors.StatusCode.INVALID_ARGUMENT and not answered:
        request_id = ""  # nothing was sent, so no log has it
    made = errors.of_code(code, hints.hinted(code, read(lib.warpline_error_message(error))),
                          read(lib.warpline_error_request_id(error)) or request_id, violations,
                          retry_after if retry_after >= 0 else None)
    made.answered = answered
    attempts = lib.warpline_error_attempts(error)
    lib.warpline_error_free(error)
    return made, attempts


def check(error: Any) -> None:
    """Raises the error of a function of the library; NULL is none."""
    if error:
        raise error_of(error)[0]


# --- Clients


_RETRIED = (errors.StatusCode.CANCELLED, errors.StatusCode.UNAVAILABLE, errors.StatusCode.RESOURCE_EXHAUSTED,
            errors.StatusCode.ABORTED)


def _warn(text: Any) -> None:
    """Issues a warning of the library, and frees its text."""
    message = read(text)
    lib.warpline_bytes_free(ffi.cast("uint8_t *", text))
    warnings.warn(message, RuntimeWarning, stacklevel=5)


class Connection:
    """A client of the library. Threads may share it. A forked child cannot use it.

    shares: true if large arrays lie in memory that is shared with the server.
    """

    def __init__(self, target: str, timeout: float, **options: Any) -> None:
        """options: those of warpline_client_options."""
        interrupts.hear_signals()
        self.target = target
        self.timeout = timeout
        self._shares = options.get("shared_memory") == lib.WARPLINE_SHARED_AUTO
        self.shares = options.get("shared_memory") != lib.WARPLINE_SHARED_EXPLICIT
        given = ffi.new("warpline_client_options *")
        given.size = ffi.sizeof("warpline_client_options")
        kept = []
        for name, value in options.items():
            if isinstance(value, str):
                encoded(value)
                kept.append(value := ffi.new("char[]", os.fsencode(value)))
            if value is not None:
                setattr(given, name, value)
        out = ffi.new("warpline_client **")
        try:
            check(lib.warpline_client_create(encoded(target), given, out))
        except errors.InvalidArgument as error:
            raise ValueError(error.message) from None
        self._handle = ffi.gc(out[0], lib.warpline_client_free)
        # Guards the following attributes. A signal handler may make calls while the thread that it interrupts holds it.
        self._lock = threading.RLock()
        self._closed = False
        self._users = 0
        _open.add(self)

    @property
    def closed(self) -> bool:
        return self._closed

    def __repr__(self) -> str:
        return f"{self.target}, {'closed' if self._closed else 'open'}"

    def close(self) -> None:
        """Drops the tensors that the client owns. Calls in flight and later calls raise Cancelled. Memory stays shared
        with the server until the last call in flight has ended."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._users += 1
        handle = self._handle
        try:
            lib.warpline_client_close(handle)
        finally:
            self.end()

    def check_open(self) -> None:
        """Raises Cancelled after `close`."""
        if self._closed:
            raise errors.closed("")

    def begin(self) -> Any:
        """The warpline_client, for a call that begins. It stays until `end`. Raises Cancelled after `close`."""
        with self._lock:
            if self._closed:
                raise errors.closed("")
            self._users += 1
        return self._handle

    def end(self) -> None:
        """The call has ended. After `close`, the last one frees the client."""
        with self._lock:
            self._users -= 1
            last = self._closed and not self._users
        if last:
            ffi.release(self._handle)

    def call(self, function: Callable[..., Any], *arguments: Any, request_id: str = "") -> None:
        """Calls a function of the library. Raises its error, and what a signal handler has raised meanwhile."""
        begun = time.monotonic()
        handle = self.begin()
        try:
            error = function(handle, *arguments)
            warning = self.warning(handle)
        finally:
            self.end()
        try:
            self.told(warning)
        except BaseException:
            self.free(error, None)
            raise
        if error:
            raise self.error(error, begun, request_id)

    def run(self, arguments: tuple[Any, ...], brief: bool, request_id: str) -> Any:
        """Runs a program. Returns the warpline_result; with `brief`, an array in its place if that is the only result and
        is small. arguments: those of warpline_run after the client."""
        begun = time.monotonic()
        # Nobody else has it until the result is out of it: a signal handler may make calls in between.
        outcome, _outcomes.outcome = _outcomes.outcome or ffi.new("warpline_python_outcome *"), None
        handle = self.begin()
        try:
            error = lib.warpline_python_run(handle, *arguments, brief, outcome)
        finally:
            self.end()
        result = None if error else outcome.result
        if not error and not result:
            dtype = _DTYPES[outcome.dtype.code, outcome.dtype.bits]
            shape = ffi.unpack(outcome.shape, outcome.ndim)
            result = np.ndarray(shape, dtype, ffi.buffer(outcome.elements)).copy()
        warning = outcome.warning
        _outcomes.outcome = outcome
        try:
            self.told(warning)
        except BaseException:
            self.free(error, result)
            raise
        if error:
            raise self.error(error, begun, request_id)
        return result

    @staticmethod
    def free(error: Any, result: Any) -> None:
        """Frees what a call has given: an error, or a result that is no array."""
        if error:
            lib.warpline_error_free(error)
        elif isinstance(result, ffi.CData):
            lib.warpline_result_free(result)

    def told(self, warning: Any) -> None:
        """Raises what a signal handler has raised meanwhile, and issues a warning if there is one."""
        raised = interrupts.take_raised()
        if raised is not None:
            raise raised
        if warning:
            _warn(warning)

    def warning(self, handle: Any) -> Any:
        """The library's warning, or NULL. handle: the warpline_client."""
        return lib.warpline_client_take_warning(handle) if self._shares else NULL

    def error(self, error: Any, begun: float, request_id: str) -> errors.Error:
        """The exception for the error of a call that began then, on the clock time.monotonic."""
        made, attempts = error_of(error, request_id)
        # The close ended the call, or the wait for its next attempt.
        if self._closed and made.code in _RETRIED:
            return errors.closed(made.request_id)
        if not made.answered and made.code is errors.StatusCode.DEADLINE_EXCEEDED:
            seconds = time.monotonic() - begun
            return errors.reworded(made, f"{made.message}: no answer from {self.target} in {seconds:.3g} s")
        if made.answered or made.code is not errors.StatusCode.UNAVAILABLE or not attempts:
            return made
        message = hints.unreachable(made.message, self.target, attempts, time.monotonic() - begun)
        return errors.reworded(made, message)


# Their tensors are dropped at the end of a script that does not close its clients.
_open: weakref.WeakSet[Connection] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for connection in list(_open):
        connection.close()
