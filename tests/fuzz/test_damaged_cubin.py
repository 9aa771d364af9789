"""Damaged cubins on the emulator: whatever is in one, it runs, has a hazard or is refused, and the process goes on.

The summary that `-s` shows says how the trials ended. `GEMMLAB_CACHE_DIR` keeps what they compile out of the cache of
every day where they run for long.
"""

from __future__ import annotations

import base64
import json
import os
import select
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from damaged_cubins import KERNELS, SOURCE, Damaged, damaged

from support.cuda_source import compiled, needs_compiler
from support.trials import Trials

ARCHITECTURES = ("sm_80", "sm_90")
SECONDS = 90.0
"""After which a launch counts as hanging, also on a busy machine."""


class Worker:
    """`damaged_worker`, started anew after a crash."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def ended(self, found: Damaged, kernel: str, arch: str) -> str:
        """How the launch of a damaged cubin ended, `"crashed"` and `"hung"` among it."""
        process = self._process = self._process or self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        asked = {"code": base64.b64encode(found.code).decode(), "text": found.text, "kernel": kernel}
        process.stdin.write(json.dumps({**asked, "device": f"emulated:{arch}"}) + "\n")
        process.stdin.flush()
        there, _, _ = select.select([process.stdout], [], [], SECONDS)
        answer = process.stdout.readline() if there else ""
        if answer:
            return str(json.loads(answer))
        self.close()
        if not there:
            return "hung"
        ending = process.returncode
        return f"crashed: {signal.Signals(-ending).name if ending < 0 else ending}"

    def close(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is not None:
            try:
                process.wait(0.5)
            except subprocess.TimeoutExpired:
                process.kill()
            process.communicate()

    @staticmethod
    def _started() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, Path(__file__).with_name("damaged_worker.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            # A kernel that runs for ever is given up soon, and what it asks of the allocator is filled.
            env={**os.environ, "GEMMLAB_EMULATOR_PATIENCE": "200000", "MALLOC_PERTURB_": "165"},
        )  # fmt: skip


@pytest.fixture(name="worker")
def _worker() -> Iterator[Worker]:
    made = Worker()
    yield made
    made.close()


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.skipif(sys.platform == "win32", reason="waits for the worker's answer by select")
@pytest.mark.parametrize("disassembled", [0.0, 1.0], ids=["text", "code"])
def test_a_damaged_cubin_never_ends_the_process(trials: Trials, worker: Worker, disassembled: float) -> None:
    outcomes: Counter[str] = Counter()
    for rng in trials:
        arch, kernel = str(rng.choice(ARCHITECTURES)), str(rng.choice(KERNELS))
        sound = compiled(SOURCE, kernel, arch)
        found = damaged(rng, sound.code, sound.texts["sass"], disassembled=disassembled)
        how = worker.ended(found, kernel, arch)
        outcomes[how.partition(":")[0] if how.startswith("hazard") else how] += 1
        assert how.startswith(("ran", "hazard", "error")), f"{found.how}, {kernel} on {arch}: {how}"
    print(f"{trials.number + 1} damaged cubins: {dict(outcomes.most_common())}")


@pytest.mark.sampled(1)
@needs_compiler
@pytest.mark.skipif(sys.platform == "win32", reason="waits for the worker's answer by select")
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_sound_ones_run(worker: Worker, arch: str) -> None:
    for kernel in KERNELS:
        sound = compiled(SOURCE, kernel, arch)
        assert worker.ended(Damaged("", sound.code, sound.texts["sass"]), kernel, arch) in {"ran", "hazard: unwritten"}
