"""wgmma on a GPU of sm_90a: the recorded bits again, and new tiles that the emulator adds up as the GPU does."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from gemmlab.devices.cuda import CudaDevice

sys.path += [str(Path(__file__).parents[1] / "emulated" / name) for name in ("wgmma", "conformance")]

from wgmma_forms import Form
from wgmma_record import forms, run
from wgmma_tiles import categories

HOPPER = "9.0"


@pytest.fixture(scope="module")
def hopper(gpu: CudaDevice) -> CudaDevice:
    """A GPU that runs code of sm_90a."""
    if gpu.facts["compute_capability"] != HOPPER:
        pytest.skip(f"{gpu.name} runs no code of sm_90a")
    return gpu


@pytest.mark.parametrize("form", list(forms(8)), ids=lambda form: form.name)
@pytest.mark.sampled(3)
def test_new_tiles_have_the_same_bits_on_the_emulator(form: Form, hopper: CudaDevice) -> None:
    names = [(category, number) for category in categories(form) for number in range(1000, 1008)]
    assert np.array_equal(run(hopper.id, form, names), run("emulated:sm_90a", form, names))
