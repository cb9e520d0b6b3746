"""Puts what cargo has built into the wheel, and says for which systems it is."""

import os
import platform
import sysconfig

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: The first Python whose stable interface the native module uses.
ABI = "cp311-abi3"


def tag():
    """The wheel's tag. The files need the C library of the system that built them, or a later one."""
    library, version = platform.libc_ver()
    machine = sysconfig.get_platform().split("-", 1)[1].replace("-", "_")
    if library != "glibc":
        return f"{ABI}-linux_{machine}"
    major, minor = version.split(".")[:2]
    return f"{ABI}-manylinux_{major}_{minor}_{machine}"


class Native(BuildHookInterface):
    """Adds the native module and the program, whose paths are in the environment."""

    def initialize(self, version, build_data):
        build_data["pure_python"] = False
        build_data["tag"] = tag()
        build_data["force_include"] = {
            os.environ["WHEEL_MODULE"]: "alpheus/_native.abi3.so",
            os.environ["WHEEL_PROGRAM"]: "alpheus/bin/alpheus",
        }
