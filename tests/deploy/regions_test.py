"""A region is shared between a daemon and a client that have nothing in common but the folder of its socket.

Both run as in containers of their own: each in new network, IPC and mount namespaces, with a /dev/shm of its own.

    regions_test.py BIN_DIR      skips, with exit code 77, where namespaces cannot be made
"""

import os
import signal
import subprocess
import sys
import tempfile

import numpy as np

ISOLATED = ["unshare", "--map-root-user", "--user", "--net", "--ipc", "--mount"]


def isolated(command, **options):
    """The command with a /dev/shm that nobody else sees."""
    script = 'mount -t tmpfs tmpfs /dev/shm && exec "$@"'
    return subprocess.Popen([*ISOLATED, "sh", "-c", script, "sh", *command], text=True, **options)


def main():
    bin_dir = sys.argv[1]
    if isolated(["true"], stderr=subprocess.DEVNULL).wait() != 0:
        print("skipped: no namespaces can be made here")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        socket = f"{folder}/warpline.sock"
        daemon = isolated([f"{bin_dir}/warplined", f"--listen=unix:{socket}", "--metrics-listen=", "--backend=cpu"],
                          stdout=subprocess.PIPE)
        try:
            assert daemon.stdout.readline().startswith("READY")
            x = np.arange(600 * 700, dtype=np.float32).reshape(600, 700)
            np.save(f"{folder}/x.npy", x)
            client = isolated([f"{bin_dir}/warpline", "--server", f"unix:{socket}", "transpose", f"{folder}/x.npy",
                               "-o", f"{folder}/y.npy", "--transport", "shm"])
            assert client.wait(60) == 0
            assert np.array_equal(np.load(f"{folder}/y.npy"), x.T)
        finally:
            daemon.send_signal(signal.SIGTERM)
            daemon.wait(60)
    print("a region was shared between two sets of namespaces")


main()
