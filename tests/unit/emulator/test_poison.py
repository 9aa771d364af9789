"""Code with wrong control codes on the emulated GPU with poison, and what the static check says of it."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from gemmlab.core.errors import GemmlabError
from gemmlab.core.time_limit import time_limit
from gemmlab.devices.emulated import EmulatedDevice
from gemmlab.devices.poisoned import PoisonedDevice
from gemmlab.sass.checking.control_codes import check_function
from gemmlab.sass.checking.mutations import mutation
from gemmlab.sass.parse import parse
from gemmlab.sass.writing.cubin_code import with_words
from gemmlab.toolchain.nvdisasm import disassemble
from gemmlab.verify.changed_code import Build
from support.changed_code import subject
from support.cuda_source import needs_compiler

pytestmark = needs_compiler

ARCH = "sm_80"
SECONDS = 8


@cache
def tried() -> tuple[Build, bytes]:
    made = subject("naive", ARCH, "4x5x6")
    return made, made.run(made.artifact.code, EmulatedDevice(ARCH)).tobytes()


def test_compiled_code_has_no_poison() -> None:
    made, right = tried()
    device = PoisonedDevice(ARCH, warps=1)
    assert made.run(made.artifact.code, device).tobytes() == right
    assert device.found == []


@pytest.mark.in_turns(20)
def test_a_load_that_is_not_waited_for_gives_poison() -> None:
    made, right = tried()
    words = [instruction.encoding & ~(0x3F << 116) for instruction in made.function.instructions]
    device = PoisonedDevice(ARCH, warps=1)
    with time_limit(SECONDS):
        try:
            got = made.run(with_words(made.artifact.code, made.function, words), device)
        except GemmlabError:
            got = np.empty(0, np.uint32)
    assert got.tobytes() != right
    assert {"not waited for"} <= {one.fault for one in device.found}


@pytest.mark.in_turns(20)
@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(12))
def test_what_poison_finds_the_check_finds(seed: int) -> None:
    made, right = tried()
    change = mutation(made.function, np.random.default_rng(seed))
    code = with_words(made.artifact.code, made.function, change.words, change.order)
    (function,) = parse(disassemble(code, "naive")).values()
    accused = {(f.producer.address // 16, f.consumer.address // 16) for f in check_function(function, ARCH)}
    device = PoisonedDevice(ARCH, warps=1)
    try:
        with time_limit(SECONDS):
            same = made.run(code, device).tobytes() == right
    except GemmlabError:
        same = False
    assert {(one.producer, one.consumer) for one in device.found} <= accused
    assert same or accused, change.text
