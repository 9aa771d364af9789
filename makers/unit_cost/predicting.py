"""What the model says for the loops: the cycles of a turn, from a trace of the same machine code on the emulator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gemmlab.analysis.model.constants import OF_H200
from gemmlab.analysis.model.schedule import block_cycles
from gemmlab.analysis.model.script import Script, script_of
from gemmlab.core import gpu
from gemmlab.core.gpu import limits
from gemmlab.core.program import Artifact, Launch
from gemmlab.core.trace import TraceRequest
from gemmlab.devices.emulated import EmulatedDevice
from unit_cost import mixes

TURNS = (8, 24)
_WORDS = 1 << 22


def predicted(codes: Mapping[str, Artifact]) -> list[dict[str, Any]]:
    """Return the label and the predicted cycles of a turn of each loop."""
    model, constants = gpu.model("H200"), OF_H200
    l2_bytes = model.l2_gbs * 1e3 / model.boost_mhz / model.sms * constants.l2_share
    rows = []
    for loop in mixes.loops():
        cycles = []
        for turns in TURNS:
            script = _script(codes[loop.kernel], loop, turns)
            cycles.append(block_cycles(script, loop.blocks, constants, l2_bytes, constants.l2))
        rows.append({"label": loop.label, "cycles": round((cycles[1] - cycles[0]) / (TURNS[1] - TURNS[0]), 3)})
        print(rows[-1], flush=True)
    return rows


def _script(artifact: Artifact, loop: mixes.Loop, turns: int) -> Script:
    device = EmulatedDevice("sm_90", check_races=False)
    data = device.upload(np.full(_WORDS + (1 << 16), 1e-9, np.float32))
    when, sink = device.upload(np.zeros(mixes.RECORD * loop.warps, np.uint64)), device.upload(np.zeros(64, np.float32))
    args: list[Any] = [when, data, sink, np.int32(turns)]
    if loop.kernel.startswith("mix<"):
        pace = loop.warps * loop.span if loop.source == mixes.FAR else 0
        args += [np.uint32(pace), np.uint32(_WORDS - 1)]
    launch = Launch(tuple(args), (1, 1, 1), (32 * loop.warps, 1, 1), loop.smem_bytes)
    loaded = device.load(artifact)
    trace = device.trace(loaded, launch, TraceRequest(most_steps=1 << 21, most_accesses=1 << 19))
    return script_of(trace, loaded.image.code.instructions, limits("sm_90"))
