"""The TF32 rungs' machine code: conflicts in every layout, what stages cost, that every input is rounded."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from gemmlab.core.counters import Counters
from gemmlab.core.program import Config
from gemmlab.devices.device import Device
from gemmlab.devices.select import open_device
from gemmlab.kernels.bound import place
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.sass.blocks import flow_graph
from gemmlab.sass.instruction import Instruction
from gemmlab.sass.loops import main_loop
from gemmlab.sass.parse import parse
from gemmlab.toolchain.build_cuda import build
from gemmlab.verify.check import check_kernel
from support.cuda_source import needs_compiler
from unit.kernels.test_cuda_kernels_emulated import sampled

pytestmark = needs_compiler
OP = GemmOp()
LAYOUTS = ("nn", "nt", "tn", "tt")
DEFAULT: Config = {}


@cache
def device(arch: str = "sm_90") -> Device:
    return open_device(f"emulated:{arch}")


def counted(name: str, problem: GemmProblem, config: Config = DEFAULT, arch: str = "sm_90") -> Counters:
    target = device(arch)
    contents = OP.fill(problem, np.random.default_rng(1))
    buffers = {name: target.upload(array.ravel()) for name, array in contents.items()}
    seen = place(find_kernel(name), target, config).bind(OP, problem, buffers).observe()
    for buffer in buffers.values():
        target.free(buffer)
    assert seen.hazards == ()
    return seen.counters


def compiled(name: str, arch: str, layout: str = "nn", **config: int) -> tuple[list[Instruction], str]:
    """The main loop's instructions, and PTX."""
    kernel = find_kernel(name)
    scalars = OP.scalars(GemmProblem(1, 1, 1).with_layout(layout))
    made = build(kernel.program(kernel.instantiate(kernel.configure(config), scalars), arch))
    function = parse(made.texts["sass"])[made.entry]
    loop = main_loop(function)
    assert loop is not None
    return list(flow_graph(function).instructions(*loop.blocks)), made.texts["ptx"]


def opcodes(instructions: list[Instruction]) -> Counter[str]:
    return Counter(".".join((i.opcode, *i.modifiers)) for i in instructions)


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("config", [{}, {"BK": 16, "STAGES": 2}])
def test_no_layout_costs_a_bank_conflict(layout: str, config: dict[str, int]) -> None:
    problem = GemmProblem(128, 256, 64).with_layout(layout)
    facts = counted("mma_tf32_pipelined", problem, config).facts()
    assert facts["shared_load_requests"] > 0
    assert facts["async_copy_requests"] > 0
    assert facts["shared_load_excess"] == facts["async_copy_excess"] == 0
    assert facts["global_load_requests"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wmma_tf32_pipelined", "mma_tf32_pipelined"])
def test_no_sampled_configuration_meets_itself_in_a_bank_when_it_loads_fragments(name: str) -> None:
    kernel, seen = find_kernel(name), set()
    # Those that are checked on other shapes, each for the architecture that it is compiled for there.
    for param in sampled():
        if param.values[0] is not kernel:
            continue
        config, layout, arch = param.values[1:]
        tile = GemmProblem(config["BM"], config["BN"], 2 * config["BK"]).with_layout(layout)
        facts = counted(name, tile, config, arch).facts()
        assert facts["shared_load_requests"] > 0
        assert facts["shared_load_excess"] == 0, (config, layout)
        if name == "mma_tf32_pipelined":
            assert facts["async_copy_excess"] == 0, (config, layout)
        seen.add(tuple(config.values()))
    assert len(seen) >= 4


@pytest.mark.in_turns(20)
@pytest.mark.sampled(1)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("config", [{"BM": 64, "BN": 64, "WM": 32, "WN": 32, "BK": 32, "STAGES": 3, "GROUP": 2}])
def test_other_configurations_are_right_at_the_edges(layout: str, config: dict[str, int]) -> None:
    shapes = ((130, 100, 100), (128, 128, 64), (5, 150, 33))
    cases = [GemmProblem(*shape, 0.5, -1.0).with_layout(layout) for shape in shapes]
    padded = [replace(p, lda=p.lda + 4, ldb=p.ldb + 8, ldc=p.ldc + 3) for p in cases[:2]]
    report = check_kernel(find_kernel("mma_tf32_pipelined"), device(), OP, config=config, cases=[*cases, *padded])
    assert report.passed, report.explain()


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("name", ["wmma_tf32", "wmma_tf32_pipelined"])
def test_every_word_that_reaches_a_tensor_core_is_rounded(name: str, arch: str) -> None:
    kernel = find_kernel(name)
    for layout in kernel.layouts:
        loop, ptx = compiled(name, arch, layout)
        # Two instructions a word: NaN and infinities stay, half a unit is added to the others. Products of 64 x 64 take
        # 32 words a lane and step of 8, for 64 instructions (m16n8k4).
        words = sum(1 for i in loop if i.opcode == "HMMA") // 2
        assert sum(1 for i in loop if i.opcode == "FSETP") == words > 0
        assert ptx.count("cvt.rna.tf32.f32") >= words


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_one_instruction_rounds_a_word_and_half_a_one_watches_it(arch: str) -> None:
    for layout in LAYOUTS:
        loop, _ = compiled("mma_tf32_pipelined", arch, layout)
        found = Counter(i.opcode for i in loop)
        # 32 words a lane and step of 8, as many as products.
        words = found["HMMA"]
        assert sum(1 for i in loop if any(o.kind == "imm" and o.value == 0x1000 for o in i.operands)) == words > 0
        assert found["FFMA"] == words // 2
        assert found["FSETP"] == 0


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("word", [0x7FFFFFFF, 0xFFFFFFFF, 0x7F800000, 0xFF800000, 0x7F7FF000])
def test_what_rounding_by_addition_would_spoil_is_multiplied_again(layout: str, word: int) -> None:
    # Half a unit more than the largest NaN is a zero. 0x7F7FF000 rounds to infinity and must not be watched in vain.
    problem = GemmProblem(128, 256, 64).with_layout(layout)
    target = device()
    contents = {name: np.ones_like(array) for name, array in OP.fill(problem, np.random.default_rng(1)).items()}
    contents["a"].view(np.uint32).flat[0] = word  # row 0 and step 0 of either layout
    buffers = {name: target.upload(array.ravel()) for name, array in contents.items()}
    place(find_kernel("mma_tf32_pipelined"), target, {}).bind(OP, problem, buffers).observe()
    c = np.empty_like(contents["c"])
    target.download(buffers["c"], c)
    for buffer in buffers.values():
        target.free(buffer)
    value = np.uint32(word).view(np.float32)
    expected = np.float32(np.inf) if word == 0x7F7FF000 else value
    assert np.array_equal(c[0, :256], np.full(256, expected), equal_nan=True)
    assert np.array_equal(c[1:128, :256], np.full((127, 256), np.float32(64)))


def instructions_a_block(stages: int, modulo: int) -> float:
    """Executed by a warp in a block of k."""
    many, few = (
        counted("wmma_tf32_pipelined", GemmProblem(128, 128, k), {"STAGES": stages, "MODULO": modulo}).facts()[
            "instructions"
        ]
        for k in (128, 96)
    )
    warps, blocks = 4, (128 - 96) // 16
    return (many - few) / (warps * blocks)


@pytest.mark.slow
def test_a_remainder_by_three_costs_a_few_instructions_a_block() -> None:
    by_two, by_three, by_four = (instructions_a_block(stages, 1) for stages in (2, 3, 4))
    counting = instructions_a_block(3, 0)
    # Two remainders by three are a product, a shift and a product more each, where powers of two take a mask: not what
    # makes three stages slow, and counting saves no more than it costs.
    assert 0 < by_three - by_two == by_three - by_four <= 6
    assert abs(by_three - counting) <= 2
    assert by_three - by_two < 0.01 * by_three


def divisions(ptx: str) -> int:
    """Products with the reciprocal of three, 2^33 / 3 rounded up."""
    return len(re.findall(r"mul\.(?:hi\.u32|wide\.u32)[^;]*-1431655765", ptx))


@pytest.mark.slow
def test_the_compiler_divides_by_three_with_a_product_and_by_powers_of_two_with_a_mask() -> None:
    found: dict[Any, int] = {}
    for stages, modulo in ((2, 1), (3, 1), (4, 1), (3, 0)):
        found[stages, modulo] = divisions(compiled("wmma_tf32_pipelined", "sm_90", STAGES=stages, MODULO=modulo)[1])
    assert found == {(2, 1): 0, (3, 1): 2, (4, 1): 0, (3, 0): 0}


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_mma_issues_fewer_loads_than_wmma(arch: str) -> None:
    wmma = opcodes(compiled("wmma_tf32_pipelined", arch)[0])
    mma = opcodes(compiled("mma_tf32_pipelined", arch)[0])
    # Of the same warp tile: 32 words a step and lane, one by one or four at a time.
    assert wmma["LDS"] >= 64
    assert mma["LDSM.16.M88.4"] == mma["LDS.128"] == 16
    assert mma["HMMA.1688.F32.TF32"] == 128
    assert wmma["HMMA.1684.F32.TF32"] == 128
