import os
import pathlib
import re
import subprocess
import sys
import typing

import numpy as np
import pytest

import warpline
from warpline import arguments, names
from messages import v1


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) >= "2.0.0", reason="of the distribution's NumPy and mypy")
def test_hints():
    pytest.importorskip("mypy")
    package = os.path.dirname(warpline.__file__)
    config = os.path.join(os.path.dirname(__file__), "..", "pyproject.toml")
    done = subprocess.run([sys.executable, "-m", "mypy", f"--config-file={config}", "--cache-dir=/dev/null", package],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="needs the stubs of NumPy 2")
def test_hints_of_all_python_in_the_docs(tmp_path):
    pytest.importorskip("mypy")
    root = pathlib.Path(__file__).parents[3]
    blocks = []
    for page in [root / "README.md", root / "client/python/README.md", *sorted((root / "docs").glob("*.md"))]:
        for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S):
            blocks.append(tmp_path / f"{page.stem.replace('-', '_')}_{len(blocks)}.py")
            blocks[-1].write_text(block)
    assert len(blocks) > 20
    # A module of its own for each: grpc has no stubs, and the pages import it in one place.
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--disable-error-code=import-untyped",
                           "--cache-dir=/dev/null", *map(str, blocks)], capture_output=True, text=True)
    wrong = [line for line in done.stdout.splitlines() if str(tmp_path) in line]
    assert not wrong, "\n".join(wrong)


def test_dir_is_what_users_need():
    assert set(dir(warpline)) == {*warpline.__all__, "__doc__", "__version__", "dtypes"}


def test_types_are_installed():
    assert os.path.exists(f"{os.path.dirname(warpline.__file__)}/py.typed")


@pytest.mark.parametrize("names_of, understood, enum", [
    (names.ReduceOp, arguments.reduce_op, v1.ReduceOp), (names.Activation, arguments.activation_of, v1.Activation),
    (names.Precision, arguments.precision_of, v1.Precision)])
def test_names_are_those_of_the_api(names_of, understood, enum):
    assert {understood(name) for name in typing.get_args(names_of)} == {name for name, n in enum.items() if n}
