"""Reductions, tensor copies, wgmma's rarer forms and updates of shared cells leave the bits that an H200 left."""

from __future__ import annotations

from operator import attrgetter

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

from box_cases import COPIES, box_copies, refused_copies
from one_cubin import one_cubin
from reduction_cases import MAPS
from swap_cases import CELLS, KERNELS, LANES, NONE, PLACES, loop_cycles
from vector_cases import VectorAtomic, vector_atomics

from async_bits_probe import groups
from gemmlab import launch
from gemmlab.core.errors import UsageError
from gemmlab.core.tensor_map import UNEVEN_ROWS
from support.gpu_bits import GpuBits

BITS = GpuBits("async_bits", "async_bits_probe")
DEVICE = "emulated:sm_90a"
JOBS = groups(DEVICE)
NAME = attrgetter("name")
BATCH = 40
"""Tensor copies of one test."""


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("name", JOBS["wgmma"])
@pytest.mark.sampled(4)
def test_rarer_forms_of_wgmma_have_the_gpus_bits(name: str) -> None:
    wanted = BITS.one_of("wgmma", name)
    assert np.array_equal(JOBS["wgmma"][name](DEVICE), wanted)


@pytest.mark.in_turns(20)
@pytest.mark.parametrize(("group", "name"), [(group, name) for group in ("reductions", "odd") for name in JOBS[group]])
def test_reductions_have_the_gpus_bits_or_are_refused_as_the_gpu_did(group: str, name: str) -> None:
    wanted = BITS.one_of(group, name)
    if wanted.size:
        assert np.array_equal(JOBS[group][name](DEVICE), wanted)
        return
    _, operation, kind = name.split("_", 2)
    with pytest.raises(RuntimeError, match=f"`{operation}` of {MAPS[kind].upper()} is an illegal instruction: "):
        JOBS[group][name](DEVICE)


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("name", JOBS["ends"])
@pytest.mark.sampled(6)
def test_reductions_at_an_end_inside_16_bytes_have_the_gpus_bits(name: str) -> None:
    wanted = BITS.one_of("ends", name)
    assert np.array_equal(JOBS["ends"][name](DEVICE), wanted)


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("case", list(vector_atomics()), ids=NAME)
@pytest.mark.sampled(6)
def test_atomic_operations_on_vectors_have_the_gpus_bits(case: VectorAtomic) -> None:
    wanted = BITS.one_of("vectors", case.name)
    assert np.array_equal(case.bits(DEVICE), wanted)


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("first", range(0, COPIES, BATCH))
def test_tensor_copies_leave_the_gpus_bytes(first: int) -> None:
    names = [case.name for case in box_copies() if case.number in range(first, first + BATCH)]
    # One skips the test if the record has none of the batch.
    wanted = {name: BITS.one_of("boxes", name) for name in names if name in BITS.all_of("boxes") or name == names[0]}
    assert [name for name in wanted if not np.array_equal(JOBS["boxes"][name](DEVICE), wanted[name])] == []


@pytest.mark.in_turns(20)
def test_maps_are_refused_as_the_driver_did() -> None:
    refused = {case.name: case for case in refused_copies() if case.name in BITS.all_of("boxes")}
    assert set(refused) == {name for name, array in BITS.all_of("boxes").items() if not array.size}
    if not refused:
        pytest.skip("no map that a driver refused in tests/data/async_bits/boxes.npz")
    for case in refused.values():
        with pytest.raises(UsageError, match=f"{UNEVEN_ROWS}: "):
            case.words(DEVICE)


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("name", JOBS["swaps"])
@pytest.mark.sampled(8)
def test_lanes_are_served_in_the_gpus_order(name: str) -> None:
    """Between the old values and the cells lie cycles, which the emulator does not have."""
    wanted, found = BITS.one_of("swaps", name), JOBS["swaps"][name](DEVICE)
    for part in (slice(LANES), slice(2 * LANES, None)):
        assert np.array_equal(found[part], wanted[part])


@pytest.mark.parametrize("place", PLACES)
def test_the_loop_of_a_float_sum_takes_the_cycles_of_its_turns(place: str) -> None:
    """The figures were fitted to this record: they do not tell the loop's load and update apart."""
    wanted = BITS.one_of("swaps", f"float_add_{place}")
    assert loop_cycles(place) == wanted[LANES : 2 * LANES][PLACES[place] != NONE].max()


@pytest.mark.in_turns(20)
@pytest.mark.parametrize(
    ("operation", "place", "opcode", "executed", "wavefronts"),
    [
        ("float_add", "apart", "ATOMS.CAST.SPIN", 8, 16),
        ("float_add", "bank_of_four", "ATOMS.CAST.SPIN", 32, 64),
        ("compare", "apart", "ATOMS.CAS", 1, 2),
        ("exchange", "apart", "ATOMS.EXCH", 1, 1),
        ("integer_add", "apart", "ATOMS.ADD", 1, 1),
        ("integer_add", "one", "ATOMS.ADD", 1, 32),
        ("integer_add", "quarters", "ATOMS.ADD", 1, 8),
    ],
)
def test_lanes_of_one_word_take_turns_and_a_compare_and_swap_two_wavefronts(
    operation: str, place: str, opcode: str, executed: int, wavefronts: int
) -> None:
    arrays = [np.zeros(size, np.uint32) for size in (LANES, CELLS, LANES)]
    code = one_cubin(str(KERNELS), operation, DEVICE)
    done = launch(code, operation, 1, LANES, [PLACES[place].astype(np.uint32), *arrays], device=DEVICE)
    assert done.counters is not None
    site = next(site for site in done.counters.sites if site.opcode == opcode)
    assert (site.executed, site.wavefronts) == (executed, wavefronts)
