import os
import subprocess
import sys
import typing

import pytest

import warpline
from warpline import arguments, names
from messages import v1


def test_hints():
    pytest.importorskip("mypy")
    package = os.path.dirname(warpline.__file__)
    config = os.path.join(os.path.dirname(__file__), "..", "pyproject.toml")
    done = subprocess.run([sys.executable, "-m", "mypy", f"--config-file={config}", "--cache-dir=/dev/null", package],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_types_are_installed():
    assert os.path.exists(f"{os.path.dirname(warpline.__file__)}/py.typed")


@pytest.mark.parametrize("names_of, understood, enum", [
    (names.ReduceOp, arguments.reduce_op, v1.ReduceOp), (names.Activation, arguments.activation_of, v1.Activation),
    (names.Precision, arguments.precision_of, v1.Precision)])
def test_names_are_those_of_the_api(names_of, understood, enum):
    assert {understood(name) for name in typing.get_args(names_of)} == {name for name, n in enum.items() if n}
