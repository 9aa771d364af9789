"""Record a core's times for the parts of a product, from which docs/many-cores.md predicts machines with many cores.

    python makers/many_cores.py benchmarks/results/cpu-intel-6-167/many-cores.json [SECONDS]

It measures for SECONDS seconds, by default 60, and records the least times. The machine should do no other work.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from gemmlab.core.environment import describe_environment
from gemmlab.core.files import replace_file
from gemmlab.core.hardware import cpu_info
from scaling.constants import measured

SCHEMA = "gemmlab.many-cores/1"


def main(arguments: Sequence[str]) -> int:
    if not 1 <= len(arguments) <= 2:
        print(__doc__, file=sys.stderr)
        return 2
    seconds = float(arguments[1]) if len(arguments) > 1 else 60.0
    constants, series = measured(seconds)
    info = cpu_info()
    record = {
        "schema": SCHEMA,
        "environment": describe_environment(),
        "device": {"name": info.name, "slug": info.slug, "cores": info.physical_cores},
        "seconds": seconds,
        "constants": asdict(constants),
        "times_us": series,
    }
    replace_file(Path(arguments[0]), (json.dumps(record, indent=1) + "\n").encode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
