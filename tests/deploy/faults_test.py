"""What fails, and how, when a daemon, a client, a link, a disk or something else that a server needs does: each row of
docs/faults.md, with the codes that clients see and the recovery.

    faults_test.py --warplined PATH [--python DIR] [--list] [FAULT...]

It prints what it has measured, for that page; it asserts no times. A fault that cannot be caused here, for want of
namespaces, cgroups or libfaketime, is skipped with a line that says so; 77 is the exit code if all are, or if Python's
gRPC is missing. --python: as of soak_test.py.
"""

import argparse
import importlib
import os
import subprocess
import sys
import tempfile

import python_client
from dashboard import ROOT

# By module. Those that need namespaces of their own run in these: the faults must not be everybody's.
NAMESPACES = ["unshare", "--map-root-user", "--user"]
MOUNT, NET = [*NAMESPACES, "--mount"], [*NAMESPACES, "--net"]
FAULTS = {
    "killed_daemon": ("faults_process", []), "stopped_daemon": ("faults_process", []),
    "stopped_client": ("faults_process", []), "stopped_unix_client": ("faults_process", []),
    "killed_client_phases": ("faults_phases", []), "killed_daemon_phases": ("faults_phases", []),
    "cut_link": ("faults_link", NET), "full_access_log": ("faults_machine", MOUNT),
    "full_stderr": ("faults_machine", MOUNT), "full_shm": ("faults_machine", MOUNT),
    "unread_access_log": ("faults_machine", []), "unread_stderr": ("faults_machine", []),
    "spoilt_tokens": ("faults_machine", []),
    "few_descriptors": ("faults_machine", []), "no_descriptors": ("faults_machine", []),
    "memory_limit": ("faults_machine", []), "too_little_memory": ("faults_machine", []),
    "clock_jump": ("faults_machine", []),
}
SKIPPED = 77


def one(name, warplined):
    """Runs one fault in this process."""
    import faults
    try:
        with tempfile.TemporaryDirectory(prefix="fault") as folder:
            getattr(importlib.import_module(FAULTS[name][0]), name)(faults.Scene(warplined, folder))
    except faults.Skipped as reason:
        print(f"{name}: skipped, {reason}", flush=True)
        sys.exit(SKIPPED)


def main():
    parser = argparse.ArgumentParser(description="The faults of docs/faults.md, one after the other.")
    parser.add_argument("--warplined", help="the program that they happen to")
    parser.add_argument("--python", help="folder of the Python package, as of soak_test.py")
    parser.add_argument("--list", action="store_true", help="names the faults, and ends")
    parser.add_argument("--inside", action="store_true", help="run the one fault here: this program starts itself so")
    parser.add_argument("faults", nargs="*", metavar="FAULT", help="those to cause; default: all")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(FAULTS))
        return
    if not arguments.warplined:
        parser.error("--warplined is needed")
    for name in arguments.faults:
        if name not in FAULTS:
            parser.error(f"there is no fault {name}; --list names them")
    # What a user has set for his own clients and daemons is not for these.
    for name in [name for name in os.environ if name.startswith("WARPLINE")]:
        del os.environ[name]
    try:
        import google.protobuf  # noqa: F401
        import grpc  # noqa: F401
        import numpy  # noqa: F401
    except ImportError as error:
        print(f"skipped: {error}")
        sys.exit(SKIPPED)
    if arguments.inside:
        sys.path.insert(1, arguments.python)
        return one(arguments.faults[0], arguments.warplined)
    with tempfile.TemporaryDirectory(prefix="faults") as folder:
        python, failed, skipped = python_client.folder_of(folder, arguments.python), [], []
        names = arguments.faults or list(FAULTS)
        for name in names:
            namespaces = FAULTS[name][1]
            if namespaces and subprocess.run([*namespaces, "true"], capture_output=True).returncode != 0:
                print(f"{name}: skipped, no namespaces can be made here", flush=True)
                skipped.append(name)
                continue
            command = [sys.executable, "-B", str(ROOT / "tests/deploy/faults_test.py"), "--inside", "--warplined",
                       arguments.warplined, "--python", python, name]
            code = subprocess.run([*namespaces, *command]).returncode
            if code == SKIPPED:
                skipped.append(name)
            elif code != 0:
                print(f"{name}: FAILED", flush=True)
                failed.append(name)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")
    if len(skipped) == len(names):
        sys.exit(SKIPPED)


main()
