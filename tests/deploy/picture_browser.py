"""The page of picture/: its packages from npm's registry, its bundle, and its picture by a Chromium without a screen."""

import contextlib
import functools
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading

from dashboard import ROOT

SOURCES = ROOT / "tests/deploy/picture"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# The page is laid out for this width and drawn larger, so that its text can be read where the picture is shown small.
WIDTH = 1280
SCALE = 1.25
# As in page.css and page.tsx.
HEADER_HEIGHT = 56
ROW_HEIGHT = 38
LOADERS = [f"--loader:.{kind}=dataurl" for kind in ("woff", "woff2", "ttf", "svg")]


def browser():
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def missing(folder):
    """What is not here, or None. Without a network the packages of an earlier run do."""
    for tool in ("node", "npm"):
        if not shutil.which(tool):
            return tool
    if not browser():
        return "chromium"
    if not installed(folder):
        asked = subprocess.run(["timeout", "60", "npm", "view", "@grafana/ui", "name", "--fetch-retries=0"],
                               capture_output=True)
        if asked.returncode != 0:
            return "npm's registry"
    return None


def installed(folder):
    lock = folder / "package-lock.json"
    return (folder / "node_modules/.package-lock.json").exists() and lock.exists() and \
        lock.read_text() == (SOURCES / "package-lock.json").read_text()


def run(folder, *command):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")


def bundle(folder):
    """Nothing is written into the source tree."""
    if not installed(folder):
        # npm would take what is there for what the lock file says, if it had been stopped.
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(SOURCES, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules"))
    if not (folder / "node_modules/.package-lock.json").exists():
        run(folder, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
    run(folder, "node_modules/.bin/esbuild", "page.tsx", "--bundle", "--minify", "--outdir=out", "--jsx=automatic",
        '--define:process.env.NODE_ENV="production"', "--log-level=warning", *LOADERS)
    shutil.copy(folder / "index.html", folder / "out")
    # Icons are asked for when they are shown.
    with contextlib.suppress(FileExistsError):
        (folder / "out/public").symlink_to(folder / "node_modules/@grafana/ui/dist/public")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(folder):
    """Yields the address of a server of a folder's files."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def draw(folder, data, png, grid_rows):
    """Draws the dashboard down to so many rows of its grid. Returns what the page says of itself."""
    (folder / "out/picture.json").write_text(json.dumps(data))
    size = f"{WIDTH},{HEADER_HEIGHT + grid_rows * ROW_HEIGHT}"
    with served(folder / "out") as address, tempfile.TemporaryDirectory() as profile:
        # The sandbox wants what a container's root does not have, and the page is our own. The page's clock runs as
        # fast as the page allows, and stops when ten seconds have gone by on it.
        done = subprocess.run(
            [browser(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-proxy-server",
             "--hide-scrollbars", f"--force-device-scale-factor={SCALE}", f"--window-size={size}",
             f"--user-data-dir={profile}", "--virtual-time-budget=10000", f"--screenshot={png}", "--dump-dom",
             f"{address}/index.html"], capture_output=True, text=True, timeout=180, env=os.environ | {"TZ": "UTC"})
    found = re.search(r'<script type="application/json" id="report">(.*?)</script>', done.stdout, re.S)
    if found is None:
        sys.exit(f"the page has left no report; Chromium's exit code is {done.returncode}\n{done.stderr[-4000:]}")
    return json.loads(found[1])


def quantise(png, out):
    """The same picture in 256 colours, a third of the size."""
    run(None, "pngquant", "--force", "--speed=1", "--strip", f"--output={out}", "256", str(png))
