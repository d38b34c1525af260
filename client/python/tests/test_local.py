"""Private daemons, which end with their clients."""

import gc
import os
import signal
import stat
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import warpline
from warpline.local import local

X = np.arange(6.0).reshape(2, 3)
SECONDS_MAX = 60


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    """The folder below which daemons have theirs; pytest's own would be too long for sockets."""
    if not os.environ.get("WARPLINED"):
        pytest.skip("set WARPLINED to the daemon's path")
    parent = f"/tmp/wl{os.getpid()}"
    os.mkdir(parent)
    monkeypatch.setattr("tempfile.tempdir", parent)
    monkeypatch.setenv("TMPDIR", parent)
    yield parent
    os.rmdir(parent)  # each daemon has removed its own


def processes(folder):
    """The ids of daemons and their supervisors whose command lines name a folder."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                if f"{folder}/".encode() in file.read():
                    found.append(int(name))
        except OSError:
            pass
    return found


def await_end(folder):
    end = time.monotonic() + SECONDS_MAX
    while processes(folder) or os.listdir(folder):
        assert time.monotonic() < end, f"after {SECONDS_MAX} s: {processes(folder)}, {os.listdir(folder)}"
        time.sleep(0.05)


def backend():
    return f"--backend={os.environ.get('WARPLINE_TEST_BACKEND', 'cpu')}"


def test_computes_and_ends_with_its_client(folders):
    with local(backend()) as client:
        assert np.array_equal(client.transpose(X), X.T)
        assert len(processes(folders)) == 2
    assert processes(folders) == [] and os.listdir(folders) == []
    client.close()


def test_only_the_user_can_enter_its_folder(folders):
    with local(backend()):
        folder, = os.listdir(folders)
        assert stat.S_IMODE(os.stat(f"{folders}/{folder}").st_mode) == 0o700


def test_passes_flags_and_arguments_on():
    with local(backend(), "--max-inline-bytes=1M", "--upload-bytes=0", shared_memory="never", max_retries=0) as client:
        assert client.info().limits.max_inline_bytes == 1 << 20
        with pytest.raises(warpline.ResourceExhausted):
            client.transpose(np.zeros((1024, 1024)))


def test_shows_the_last_words_of_one_that_does_not_start(folders):
    with pytest.raises(RuntimeError, match="(?s)warplined ended before it served:.*--no-such-flag"):
        local("--no-such-flag")
    assert processes(folders) == [] and os.listdir(folders) == []


def test_one_that_takes_too_long(folders, tmp_path, monkeypatch):
    slow = tmp_path / "warplined"
    slow.write_text("#!/bin/sh\necho waiting for a disk >&2\nexec sleep 600\n")
    slow.chmod(0o755)
    monkeypatch.setenv("WARPLINED", str(slow))
    with pytest.raises(TimeoutError, match="(?s)does not serve after 0.5 s:.*waiting for a disk"):
        local(timeout=0.5)
    assert processes(folders) == [] and os.listdir(folders) == []


def test_is_gone_after_an_exception(folders):
    with pytest.raises(ZeroDivisionError), local(backend()):
        1 / 0
    assert processes(folders) == [] and os.listdir(folders) == []


def test_is_gone_if_the_client_cannot_be_made(folders):
    with pytest.raises(ValueError):
        local(backend(), shared_memory="sometimes")
    assert processes(folders) == [] and os.listdir(folders) == []


def test_is_gone_when_nobody_has_the_client_any_more(folders):
    client = local(backend())
    assert client.is_serving()
    del client
    gc.collect()
    await_end(folders)


def test_outlives_the_thread_that_started_it(folders):
    made = []
    thread = threading.Thread(target=lambda: made.append(local(backend())))
    thread.start()
    thread.join()
    with made[0] as client:
        assert np.array_equal(client.transpose(X), X.T)


@pytest.mark.parametrize("last, code", [("", 0), ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL)])
def test_is_gone_after_the_client_process(folders, last, code):
    """Without a call of close: at the end of the program, and after kill -9."""
    text = f"from warpline.local import local\nc = local('{backend()}')\nprint(c.is_serving(), flush=True)\n{last}"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=SECONDS_MAX)
    assert (done.returncode, done.stdout) == (code, "True\n"), done.stderr
    await_end(folders)


def test_says_where_it_has_looked(monkeypatch):
    monkeypatch.delenv("WARPLINED")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(FileNotFoundError, match=r"\$WARPLINED is not set, the package warpline-server is not installed, "):
        local()
    monkeypatch.setenv("WARPLINED", "/nowhere/warplined")
    with pytest.raises(FileNotFoundError, match="/nowhere/warplined, which is not a program"):
        local()


def test_takes_the_daemon_of_the_servers_package(monkeypatch, tmp_path, folders):
    daemon = os.environ["WARPLINED"]
    monkeypatch.delenv("WARPLINED")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "warpline_server.py").write_text(
        f"import os\nprogram = {{'warplined': {daemon!r}}}.__getitem__\n"
        "def environment():\n    return {**os.environ, 'WARPLINED_MAX_JOBS': '77'}\n")
    with local(backend()) as c:
        assert c.info().limits.max_jobs == 77
    sys.modules.pop("warpline_server")
