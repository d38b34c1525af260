"""The programs of warpline: the daemon and the command line."""

import os
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))


def program(name):
    """The path of a program: "warplined", the daemon, or "warpline", the command line."""
    return os.path.join(_FOLDER, "bin", name)


def _become(name):
    """Replaces this process by the program, which gets the arguments."""
    os.execve(program(name), [name, *sys.argv[1:]], environment())


def environment():
    """This process's environment for the daemon, which finds the cuBLASLt of the package nvidia-cublas, if that is there."""
    folder = os.path.join(os.path.dirname(_FOLDER), "nvidia", "cu13", "lib")
    found = os.path.exists(os.path.join(folder, "libcublasLt.so.13"))
    return {**({"WARPLINE_CUDA_LIB": folder} if found else {}), **os.environ}


def warplined():
    """The command `warplined`."""
    _become("warplined")


def warpline():
    """The command `warpline`."""
    _become("warpline")
