import os
import subprocess
import sys

import pytest

import warpline


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
