"""Signals, and functions that are told how far a call is, while the library waits."""

import threading
from collections.abc import Callable
from typing import Any

from warpline._core import ffi, lib

# Exceptions that signal handlers have raised while the main thread waited in the library.
_raised: list[BaseException] = []
_main_thread = threading.main_thread()


def _remember(kind: Any, error: BaseException, traceback: Any) -> int:
    _raised.append(error)
    return 1


# Python runs the handlers of signals when this function begins. What they raise comes to _remember.
@ffi.def_extern(error=1, onerror=_remember)  # type: ignore[misc]  # cffi has no type hints
def warpline_python_poll(data: Any) -> int:
    if _raised and threading.current_thread() is _main_thread:
        return True
    return bool(data) and bool(ffi.from_handle(data).is_set())


class Told:
    """A function that is told how far a call is, and the first exception that it has raised."""

    def __init__(self, function: Callable[[int, int], None]) -> None:
        self.function = function
        self.raised: BaseException | None = None
        self.last = -1
        self.handle = ffi.new_handle(self)

    def __call__(self, done: int, total: int) -> None:
        if self.raised is not None:
            return
        try:
            self.function(done, total)
        except Exception as error:  # there is nobody here to catch it
            self.raised = error

        self.last = done

    def end(self, total: int) -> None:
        """Tells that all is done, if that has not been told yet: what is shared or small is not told about on the way."""
        if self.last != total:
            self(total, total)
        self.check()

    def check(self) -> None:
        """Raises what the function has raised."""
        if self.raised is not None:
            raise self.raised


def told_of(progress: Any) -> Told | None:
    """The `progress` argument. Raises TypeError for what is no function."""
    if progress is not None and not callable(progress):
        raise TypeError(f"progress is a {type(progress).__name__}: a function of two numbers")
    return None if progress is None else Told(progress)


def _remember_only(kind: Any, error: BaseException, traceback: Any) -> None:
    _raised.append(error)


# A signal handler that raises in it ends the call, as above.
@ffi.def_extern(onerror=_remember_only)  # type: ignore[misc]
def warpline_python_progress(data: Any, done: int, total: int) -> None:
    ffi.from_handle(data)(done, total)


def hear_signals() -> None:
    """Makes calls of the main thread end when a signal handler raises."""
    if threading.current_thread() is _main_thread:
        lib.warpline_set_interrupt(lib.warpline_python_poll, ffi.NULL)


def take_raised() -> BaseException | None:
    """The exception that a signal handler has raised while the main thread waited, once; None if there is none."""
    if not _raised or threading.current_thread() is not _main_thread:
        return None
    error = _raised[0]
    _raised.clear()
    return error


hear_signals()


def interruptible(work: Callable[[], Any], stop: threading.Event) -> Any:
    """Runs `work` in this thread, and ends its calls once `stop` is set."""
    handle = ffi.new_handle(stop)
    lib.warpline_set_interrupt(lib.warpline_python_poll, handle)
    try:
        return work()
    finally:
        lib.warpline_set_interrupt(ffi.NULL, ffi.NULL)
