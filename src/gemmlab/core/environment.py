"""A description of the environment of a measurement, as every record stores it."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

THREAD_VARIABLES = ("OPENBLAS_", "NVPL_", "OMP_", "MKL_", "KMP_", "GOMP_", "BLIS_", "VECLIB_", "DNNL_", "ONEDNN_")
"""Prefixes of environment variables that change a BLAS's speed, threads or core type."""


def describe_environment(
    arguments: Sequence[str] | None = None, variables: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return time, versions, processor, load, environment variables of BLAS libraries and gemmlab, and command line.

    The defaults are this process's command line and variables. An absolute path with `/`, at the start of a text or
    after one of `=,:;`, is shortened to its last part, because records are shared.
    """
    import numpy as np

    from gemmlab.core.hardware import cpu_info, usable_cpus
    from gemmlab.core.version import __version__

    environment = os.environ if variables is None else variables
    command = sys.argv if arguments is None else arguments
    return {
        "time_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "gemmlab": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "os": f"{platform.system()} {platform.release()}",
        "cpu": cpu_info().name,
        "cpus": len(usable_cpus()),
        "load_average": [round(value, 2) for value in os.getloadavg()] if hasattr(os, "getloadavg") else [],
        "variables": {
            name: _without_folders(value)
            for name, value in sorted(environment.items())
            if name.startswith((*THREAD_VARIABLES, "GEMMLAB_"))
        },
        "command": [_without_folders(argument) for argument in command],
    }


def _without_folders(text: str) -> str:
    return re.sub(r"(^|[=,:;])/(?:[^/,=:;]+/)*", r"\1", text)
