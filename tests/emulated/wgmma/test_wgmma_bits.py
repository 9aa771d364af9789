"""wgmma on the emulator gives the bits that an H200 gave, and reads the bytes that it read."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

from wgmma_forms import Form
from wgmma_maps import MAPS, Map
from wgmma_record import (
    CHECKED_TILES,
    checked_names,
    forms,
    least_names,
    one_map,
    raw_names,
    run,
    sums_of,
    variants,
    widths,
)

from support.gpu_bits import GpuBits

BITS = GpuBits("wgmma", "wgmma_probe")
DEVICE = "emulated:sm_90a"
SMALL, MANY = [*forms(8), *variants()], list(forms(64))


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("form", SMALL, ids=lambda form: form.name)
@pytest.mark.sampled(4)
def test_small_tiles_have_the_gpus_bits(form: Form) -> None:
    wanted = BITS.one_of("bits", form.name)
    assert np.array_equal(run(DEVICE, form, raw_names(form)), wanted)


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("form", [form for form in forms(8) if form.sums != "s32"], ids=lambda form: form.name)
@pytest.mark.sampled(2)
def test_the_least_products_have_the_gpus_bits(form: Form) -> None:
    wanted = BITS.one_of("least", form.name)
    assert np.array_equal(run(DEVICE, form, least_names()), wanted)


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("form", MANY, ids=lambda form: form.name)
@pytest.mark.parametrize("number", range(0, CHECKED_TILES, 8))
def test_rows_of_wider_tiles_have_the_gpus_checksums(form: Form, number: int) -> None:
    wanted, names = BITS.one_of("sums", form.name), checked_names(form)
    places = [place for place, (_category, which) in enumerate(names) if number <= which < number + 8]
    found = sums_of(run(DEVICE, form, [names[place] for place in places]))
    assert np.array_equal(found, wanted[places])


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("form", list(widths()), ids=lambda form: form.name)
@pytest.mark.sampled(2)
def test_every_width_has_the_gpus_checksums(form: Form) -> None:
    wanted = BITS.one_of("sums", form.name)
    assert np.array_equal(sums_of(run(DEVICE, form, [("near", 0)])), wanted)


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("what", MAPS, ids=lambda what: what.name)
@pytest.mark.sampled(2)
def test_descriptors_name_the_bytes_that_the_gpu_read(what: Map) -> None:
    wanted = BITS.one_of("maps", what.name)
    assert np.array_equal(one_map(DEVICE, what), wanted)
