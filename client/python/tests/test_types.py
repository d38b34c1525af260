import os
import subprocess
import sys
import typing

import pytest

import warpline
from warpline import arguments, names
from warpline.v1 import warpline_pb2 as v1


def test_hints():
    pytest.importorskip("mypy")
    package = os.path.dirname(warpline.__file__)
    config = os.path.join(os.path.dirname(__file__), "..", "pyproject.toml")
    done = subprocess.run([sys.executable, "-m", "mypy", f"--config-file={config}", "--cache-dir=/dev/null", package],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_stubs_of_the_messages_are_installed():
    package = os.path.dirname(warpline.__file__)
    assert os.path.exists(f"{package}/py.typed") and os.path.exists(f"{package}/v1/warpline_pb2.pyi")


@pytest.mark.parametrize("names_of, understood, enum", [
    (names.ReduceOp, arguments.reduce_op, v1.ReduceOp), (names.Activation, arguments.activation_of, v1.Activation),
    (names.Precision, arguments.precision_of, v1.Precision)])
def test_names_are_those_of_the_api(names_of, understood, enum):
    """0 is what stands where nothing is given."""
    assert {understood(name) for name in typing.get_args(names_of)} | {0} == set(enum.values())
