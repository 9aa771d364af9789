"""The main loop that is written anew: the bits of the compiler's code, sound control codes, few reads; refusals."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from gemmlab.core.errors import UsageError
from gemmlab.devices.emulated import EmulatedDevice
from gemmlab.kernels.by_name import kernel_named
from gemmlab.sass.banks import bank_reads
from gemmlab.sass.checking.control_codes import check_function
from gemmlab.sass.checking.register_room import excess
from gemmlab.sass.ordering.loop_passes import main_block
from gemmlab.sass.parse import parse
from gemmlab.toolchain.cubin import read_cubin
from gemmlab.toolchain.nvdisasm import disassemble
from gemmlab.verify.changed_code import Build, build_of
from peak_loop.compiled import compiled_loop
from peak_loop.registers import LIMIT, planned
from peak_loop.variants import VARIANTS
from peak_loop.written import rewritten
from support.changed_code import subject
from support.cuda_source import needs_compiler
from support.paths import ROOT

pytestmark = needs_compiler
ARCH = "sm_90"


@cache
def loop8() -> Build:
    return build_of(kernel_named(str(ROOT / "makers/peak_loop/loop8.cu")), ARCH, "128x256x40", {})


def test_a_written_loop_has_the_bits_of_the_compilers_and_few_reads() -> None:
    made = loop8()
    code = rewritten(made.artifact.code, made.function, VARIANTS["split"])
    function = parse(disassemble(code, "split"))[made.function.name]
    assert check_function(function, ARCH) == ()
    stated = read_cubin(code, "split").functions[function.name].registers
    assert stated == 250
    assert excess(function, ARCH, stated) is None
    block = main_block(function)
    body = function.instructions[block.start : block.stop]
    assert len(body) < len(range(*_extent(made)))
    # The second of two iterations: the first begins with an empty operand cache.
    reads = bank_reads([*body, *body], ARCH)[len(body) :]
    three = [sum(some) for one, some in zip(body, reads, strict=True) if one.opcode == "FFMA"].count(3)
    assert three <= 9
    device = EmulatedDevice(ARCH)
    right = made.run(made.artifact.code, device)
    assert np.isfinite(right.view(np.float32)).all()
    assert np.array_equal(made.run(code, device), right)


def _extent(made: Build) -> tuple[int, int]:
    block = main_block(made.function)
    return block.start, block.stop


@pytest.mark.parametrize("variant", sorted(VARIANTS))
def test_every_sum_is_in_the_bank_of_its_variant(variant: str) -> None:
    chosen = VARIANTS[variant]
    plan = planned(compiled_loop(loop8().function), chosen)
    assert len(set(plan.sums.values())) == 128
    banks = {(total + (place[0] if chosen.by_columns else place[1])) % 2 for place, total in plan.sums.items()}
    assert banks == ({0} if chosen.wrong_bank else {1})
    assert max(plan.sums.values()) < LIMIT
    fragments = {register for some in (*plan.a, *plan.b) for register in some.values()}
    assert not fragments & set(plan.sums.values())
    assert len(fragments) == 48


def test_other_loops_are_refused_with_what_they_lack() -> None:
    with pytest.raises(UsageError, match="a main loop of one block is written anew; it has 5 blocks"):
        compiled_loop(subject("thread_tile_2d", ARCH, "33").function)
    with pytest.raises(UsageError, match=": 0 FFMAs in the main loop"):
        compiled_loop(subject("reduce_peak", ARCH, "33").function)


def test_too_few_registers_are_refused() -> None:
    loop = compiled_loop(loop8().function)
    with pytest.raises(UsageError, match="free quads below R176"):
        planned(loop, VARIANTS["split"], 176)


def test_a_source_without_reserved_words_is_refused() -> None:
    made = loop8().function
    plain = tuple(replace(one, opcode="NOP") if one.opcode == "PMTRIG" else one for one in made.instructions)
    with pytest.raises(UsageError, match="pmevent reserves 0"):
        rewritten(loop8().artifact.code, replace(made, instructions=plain), VARIANTS["split"])
