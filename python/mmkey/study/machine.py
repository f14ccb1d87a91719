"""What results say of the machine and the versions that made them."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import Any

import mmkey


def about_this_machine(command: str) -> dict[str, Any]:
    """What any results say of how they were made; ``command`` is the command line without where the results go."""
    return {
        "command": command,
        "versions": {"mmkey": mmkey.__version__, "numpy": version("numpy"), "Pillow": version("Pillow")}
        | {"python": platform.python_version()},
        "machine": platform.machine(),
        "kernels": mmkey.kernels(),
    }
