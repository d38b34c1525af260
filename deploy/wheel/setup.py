"""Builds the wheel of the daemon and the command line from the binaries of $WARPLINE_BUILD, a folder that CMake has built
in. Everything else is in pyproject.toml.
"""

import os
import re
import shutil
import tempfile
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build import build
from setuptools.command.build_py import build_py
from setuptools.command.egg_info import egg_info
from wheel.bdist_wheel import bdist_wheel

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("WARPLINE_BUILD", ROOT / "build/release")).resolve()
PROGRAMS = ["warplined", "warpline"]
# Removed when the interpreter ends. Nothing stays in the source tree.
SCRATCH = tempfile.TemporaryDirectory(prefix="warpline-")


class Binaries(Distribution):
    def has_ext_modules(self):
        return True


class Build(build):
    def initialize_options(self):
        super().initialize_options()
        self.build_base = os.path.join(SCRATCH.name, "build")


class EggInfo(egg_info):
    def initialize_options(self):
        super().initialize_options()
        self.egg_base = SCRATCH.name


class BuildPy(build_py):
    """The modules, and beside them the programs and the licences of what these contain."""

    def run(self):
        super().run()
        package = Path(self.build_lib, "warpline_server")
        for name in PROGRAMS:
            self.mkpath(str(package / "bin"))
            shutil.copy(BUILD / "bin" / name, package / "bin" / name)
        shutil.copytree(BUILD / "licenses", package / "licenses", dirs_exist_ok=True)


class Wheel(bdist_wheel):
    """For every version of Python: nothing here is compiled against one."""

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


setup(version=re.search(r"^project\(warpline VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1],
      package_dir={"": "src"}, distclass=Binaries,
      cmdclass={"build": Build, "build_py": BuildPy, "egg_info": EggInfo, "bdist_wheel": Wheel})
