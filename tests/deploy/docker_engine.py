"""A Docker engine of its own, with images that are made here, as no registry can be reached everywhere. Needs root."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from daemon import wait_until

SKIPPED = 77
TOOLS = ["docker", "dockerd", "debootstrap", "tar", "dpkg-deb", "ip"]
BASE = "debian:12-slim"
FORWARDING = pathlib.Path("/proc/sys/net/ipv4/ip_forward")
# Debian 12 has the plugin `compose` only in its first version, which Docker no longer ships.
COMPOSE_SUITE = "trixie"
# What the published images have that our files rely on: names, users, entry points, stop signals.
STAND_INS = {
    "prom/prometheus:v2.42.0": """
FROM debian:12-slim
RUN apt-get update && apt-get install -y --no-install-recommends prometheus && install -d -o nobody /prometheus
USER nobody
WORKDIR /prometheus
ENTRYPOINT ["/usr/bin/prometheus"]
CMD ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]
""",
    "haproxy:3.0": """
FROM debian:12-slim
RUN apt-get update && apt-get install -y --no-install-recommends haproxy \\
 && usermod --uid 99 haproxy && groupmod --gid 99 haproxy
USER haproxy
STOPSIGNAL SIGUSR1
CMD ["haproxy", "-W", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]
""",
}


def skip(why):
    print(f"SKIPPED: tests/deploy/docker: {why}")
    sys.exit(SKIPPED)


def skip_without_tools():
    if os.geteuid() != 0:
        skip("needs root")
    for tool in TOOLS:
        if not shutil.which(tool):
            skip(f"needs {tool}")
    if os.path.exists("/sys/class/net/docker0"):
        skip("an engine runs here already (there is a docker0)")


def make_base(tar, log):
    """Writes the root file system of Debian 12 to `tar`."""
    with tempfile.TemporaryDirectory(dir=tar.parent) as folder, open(log, "w") as out:
        made = subprocess.run(["debootstrap", "--variant=minbase", "bookworm", f"{folder}/root"], stdout=out, stderr=out)
        if made.returncode:
            skip(f"debootstrap failed, see {log}: no Debian mirror?")
        part = tar.with_suffix(".part")
        subprocess.run(["tar", "-C", f"{folder}/root", "-cf", part, "."], check=True)
        part.rename(tar)


def download_compose(plugins):
    """Debian's package of the plugin, unpacked into the folder `plugins`."""
    with tempfile.TemporaryDirectory() as folder:
        sources = pathlib.Path(folder, "sources.list")
        sources.write_text("deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian "
                           f"{COMPOSE_SUITE} main\n")
        for name in ("lists/partial", "cache/archives/partial"):
            pathlib.Path(folder, name).mkdir(parents=True)
        # Files of its own: the machine's lists stay as they are. Root, as _apt may not write here.
        apt = ["apt-get", "-qq", "-o", f"Dir::State::lists={folder}/lists", "-o", f"Dir::Cache={folder}/cache", "-o",
               f"Dir::Etc::sourcelist={sources}", "-o", "Dir::Etc::sourceparts=-", "-o", "APT::Sandbox::User=root"]
        for arguments in (["update"], ["download", "docker-compose"]):
            if subprocess.run([*apt, *arguments], cwd=folder).returncode:
                skip(f"no docker-compose of Debian {COMPOSE_SUITE}")
        package, = pathlib.Path(folder).glob("docker-compose_*.deb")
        subprocess.run(["dpkg-deb", "-x", package, f"{folder}/root"], check=True)
        plugins.mkdir(parents=True, exist_ok=True)
        found, = pathlib.Path(folder, "root").rglob("cli-plugins/docker-compose")
        shutil.copy(found, plugins)


class Engine:
    """dockerd with its own data, socket and addresses; its bridge is docker0, as any engine's. Ends with the `with` block, with all of its containers and images.

    work: a folder that keeps the base image and the compose plugin for the next time."""

    def __init__(self, work):
        self.work = pathlib.Path(work).resolve()
        self.work.mkdir(parents=True, exist_ok=True)
        base, plugins = self.work / "base.tar", self.work / "config/cli-plugins"
        if not base.exists():
            print("-- base image: debootstrap of Debian 12")
            make_base(base, self.work / "debootstrap.log")
        if not (plugins / "docker-compose").exists():
            download_compose(plugins)
        # Beside the base: on the file system of /tmp, overlays may not work.
        self.data = pathlib.Path(tempfile.mkdtemp(dir=self.work, prefix="engine."))
        # Short: the sockets of its parts lie below it.
        self.run = pathlib.Path(tempfile.mkdtemp(prefix="docker."))
        config = self.run / "daemon.json"
        config.write_text(json.dumps({
            "data-root": str(self.data), "exec-root": str(self.run / "exec"), "pidfile": str(self.run / "pid"),
            "hosts": [f"unix://{self.run}/socket"], "containerd-namespace": "warpline-test",
            "containerd-plugins-namespace": "warpline-test-plugins",
            # It leaves the machine's packet filter alone. Its bridges reach no network then, but published ports work.
            "iptables": False, "ip6tables": False, "bip": "198.18.64.1/24",
            "default-address-pools": [{"base": "198.18.128.0/17", "size": 24}]}))
        # BuildKit is a plugin that Debian 12 lacks.
        self.environment = os.environ | {"DOCKER_HOST": f"unix://{self.run}/socket", "DOCKER_CONFIG": str(self.work / "config"),
                                         "DOCKER_BUILDKIT": "0"}
        # It makes a router of the machine.
        self.forwarding = FORWARDING.read_text()
        self.log = open(self.work / "dockerd.log", "w")
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "TERM", "dockerd", f"--config-file={config}"],
                                        stdout=self.log, stderr=self.log)
        try:
            wait_until("the Docker engine answers", self.answers)
            self.docker("import", str(base), BASE)
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def answers(self):
        if self.process.poll() is not None:
            skip(f"dockerd has ended, see {self.log.name}")
        return subprocess.run(["docker", "version"], env=self.environment, capture_output=True).returncode == 0

    def docker(self, *arguments, cwd=None, check=True, log=None, given=None):
        """Runs `docker` with the arguments. Returns its output; it ends the test if `check` and that fails. log: the path
        of a file that the output goes to instead."""
        with open(log, "w") if log else tempfile.TemporaryFile("w+") as out:
            done = subprocess.run(["docker", *map(str, arguments)], env=self.environment, cwd=cwd, stdout=out, stderr=out,
                                  input=given, text=True)
            text = open(log).read() if log else (out.seek(0), out.read())[1]
        if check and done.returncode:
            sys.exit(f"FAILED: docker {' '.join(map(str, arguments))}: exit {done.returncode}\n{text[-6000:]}")
        return text.strip()

    def build(self, *arguments, **options):
        """`docker build`, over the machine's network, as bridges here reach none."""
        return self.docker("build", "--network", "host", *arguments, **options)

    def make_stand_in(self, image):
        self.build("-t", image, "-", given=STAND_INS[image], log=self.work / f"{image.partition(':')[0].replace('/', '-')}.log")

    def inspect(self, name, template):
        return self.docker("inspect", "--format", template, name)

    def stop(self):
        if self.process.poll() is None:
            for line in self.docker("ps", "--all", "--quiet", check=False).split():
                self.docker("rm", "--force", "--volumes", line, check=False)
            self.docker("network", "prune", "--force", check=False)
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        # The engine leaves its bridge, and routing switched on.
        subprocess.run(["ip", "link", "delete", "docker0"], capture_output=True)
        FORWARDING.write_text(self.forwarding)
        shutil.rmtree(self.data, ignore_errors=True)
        shutil.rmtree(self.run, ignore_errors=True)
