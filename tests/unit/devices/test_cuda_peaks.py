"""What the GPU's peaks are measured with, on the emulator: as much arithmetic as is charged for, and little beside."""

from __future__ import annotations

import numpy as np
import pytest

from gemmlab.core.program import Launch
from gemmlab.devices.cuda_peaks import FMAS_A_ROUND, MMAS_A_ROUND, program
from gemmlab.devices.emulated import EmulatedDevice
from support.cuda_source import needs_compiler

ROUNDS = 64


@needs_compiler
@pytest.mark.parametrize(
    ("entry", "opcode", "a_round", "more"),
    [("ffma_peak", "FFMA", FMAS_A_ROUND, (0.999, 0.001)), ("mma_tf32_peak", "HMMA", MMAS_A_ROUND, ())],
)
def test_a_peak_does_what_it_counts(entry: str, opcode: str, a_round: int, more: tuple[float, ...]) -> None:
    device = EmulatedDevice("sm_90")
    out = device.upload(np.full(256, np.nan, np.float32))
    loaded = device.load(device.build(program(entry, "sm_90")))
    arguments = (out, np.int32(ROUNDS), *map(np.float32, more))
    seen = device.observe(loaded, Launch(arguments, (1, 1, 1), (256, 1, 1)))
    found = np.empty(256, np.float32)
    device.download(out, found)
    assert np.isfinite(found).all()
    assert len(np.unique(found)) > 200  # lanes multiply numbers of their own
    executed = seen.counters.executed(opcode)
    assert executed == 8 * ROUNDS * a_round
    assert sum(seen.counters.opcodes().values()) < 1.1 * executed + 8 * 300
