"""Launch the probes of the asynchronous machine in a fixed order under a profiler.

`python launch_async_probes.py once --part 2/6 --names names.json` launches every sixth from the third on; `often` those
with waits that may be repeated, as often as they have run after the first time. `names.json` has name and code's digest
of each launch.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from async_probes import async_probes

from gemmlab.core.errors import GemmlabError

LAUNCH_SECONDS = 10.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("once", "often"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--names", type=Path, required=True)
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    probes = [probe for probe in async_probes() if options.what == "once" or probe.times > 1][part::parts]
    launched: list[tuple[str, str]] = []
    for probe in probes:
        for _ in range(1 if options.what == "once" else probe.times - 1):
            try:
                done = probe.run(options.device, timeout_s=LAUNCH_SECONDS)
            except GemmlabError as error:
                # A launch that failed takes the context with it: what ran before counts.
                raise SystemExit(f"{probe.name}: {error}") from error
            launched.append((probe.name, done.artifact.digest))
            options.names.write_text(json.dumps(launched))


if __name__ == "__main__":
    main()
