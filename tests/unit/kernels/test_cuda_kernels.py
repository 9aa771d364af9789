"""The CUDA kernels shipped: what their files state, what they are launched with, what the compiler makes of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gemmlab.core.errors import DeviceError, UsageError
from gemmlab.core.gpu import limits
from gemmlab.core.program import Launch
from gemmlab.kernels.catalog import all_kernels, find_kernel
from gemmlab.kernels.cuda_file.header_facts import PHASE
from gemmlab.kernels.cuda_kernel import MOST_CONFIGURATIONS
from gemmlab.kernels.kernel import NO_MEMORY, Kernel
from gemmlab.ops.gemm import GemmOp, GemmProblem
from support.architectures import architectures

CUDA_KERNELS = [kernel for kernel in all_kernels() if kernel.device == "cuda" and kernel.op == "gemm"]
OP = GemmOp()
ARGS = ("m", "n", "k", "alpha", "a", "lda", "b", "ldb", "beta", "c", "ldc")
TEXTURES = ("texture(a)", "texture(b)")
MAPS = {f"tensor_map({name})": 1 << 20 for name in "abc"}
"""Tensor maps, each with an address of its operand."""
IN_MAPS = ("a", "lda", "b", "ldb")
"""Arguments that a kernel with tensor maps has not."""
TILES = (("BM", "BN"), ("STRIP", "LINES"))
"""Parameters with the extents of a block's tile: of C, or of the shorter extent and of the longer one by 32."""
LONG = {"split_k": 256}
"""Lines of the files that are longer than 250."""

each_kernel = pytest.mark.parametrize("kernel", [pytest.param(kernel, id=kernel.id) for kernel in CUDA_KERNELS])


def launches(kernel: Kernel, problem: GemmProblem) -> list[Launch]:
    if MAPS.keys() & set(kernel.args):
        # Rows of a tensor map are multiples of 16 bytes.
        problem = replace(problem, lda=-(-problem.lda // 4) * 4, ldb=-(-problem.ldb // 4) * 4)
    scalars = OP.scalars(problem)
    instance = kernel.instantiate(kernel.configure(), scalars)
    bound: dict[str, Any] = {**scalars, "a": "a", "b": "b", "c": "c", "threads": np.int64(1), **NO_MEMORY}
    bound |= {**dict.fromkeys(TEXTURES, np.uint64(7)), **MAPS}
    return kernel.launches(instance, bound)


@each_kernel
def test_a_file_states_what_it_is(kernel: Kernel) -> None:
    text = kernel.path.read_text(encoding="utf-8")
    assert kernel.path.stem == kernel.id
    assert kernel.path.parent.name == f"{kernel.op}_cuda"
    assert len(text.splitlines()) <= LONG.get(kernel.id, 250)
    # Values of the header are one line each.
    code = text.partition("*/")[2]
    assert all(len(line) <= 124 for line in code.splitlines())
    assert all(line == line.rstrip() and "\t" not in line for line in text.splitlines())
    assert kernel.idea.endswith(".")
    memory = tuple(NO_MEMORY)
    maps = tuple(name for name in kernel.args if name in MAPS)
    args = tuple(name for name in ARGS if not maps or name not in IN_MAPS)
    assert tuple(name for name in kernel.args if name in ARGS) == args
    others = tuple(name for name in kernel.args if name not in (*ARGS, *maps))
    assert others in ((), TEXTURES, memory, memory[::-1], (*memory, PHASE), ("workspace", PHASE))
    assert len(kernel.restrictions) == (2 if maps else 0)


@each_kernel
def test_the_space_to_tune_is_small_and_legal(kernel: Kernel) -> None:
    configurations = list(kernel.configurations())
    assert configurations[0] == dict(kernel.params)
    assert 1 < len(configurations) <= MOST_CONFIGURATIONS
    assert all(kernel.objection(config) == "" for config in configurations)
    assert len({tuple(config.items()) for config in configurations}) == len(configurations)


@each_kernel
def test_blocks_lie_along_x_and_cover_any_shape(kernel: Kernel) -> None:
    params = kernel.params
    tiled, strips = (set(names) <= params.keys() for names in TILES)  # strips of the shorter extent, whichever it is
    bm, bn = (params["STRIP"], 32 * params["LINES"]) if strips else (params.get("BM", 64), params.get("BN", 64))
    for m, n in ((1, 1), (bm, bn), (bm + 1, bn - 1), (1, 300_000_000), (300_000_000, 1), (2**31 - 1, 3)):
        *before, launch = launches(kernel, GemmProblem(m, n, 1))
        if tiled or (strips and "WARPS" in params):
            down, across = sorted((m, n)) if strips else (m, n)
            tiles = -(-down // bm) * -(-across // bn)
            # Parts of k, for a problem that has only one block of it.
            parts = params.get("SPLITS", 1) if strips else 1
            assert launch.grid == (min(tiles, params.get("BLOCKS", tiles)) * parts, 1, 1)
        least = min(limits(arch).smem_per_block for arch in architectures(kernel))
        for each in (*before, launch):
            assert each.grid[0] < 2**31
            assert each.grid[1:] == (1, 1)
            assert 32 <= np.prod(each.threads) <= 1024
            assert each.smem_bytes <= least


@each_kernel
def test_arguments_are_c_values_of_the_signature(kernel: Kernel) -> None:
    problem = GemmProblem(5, 6, 7, 0.5, -2.0, lda=9, ldb=10, ldc=11)
    for phase, launch in enumerate(launches(kernel, problem)):
        others = dict(zip(kernel.args, launch.args, strict=True))
        args = [name for name in ARGS if name in others]
        wanted = dict(zip(ARGS, (5, 6, 7, 0.5, "a", 9, "b", 10, -2.0, "c", 11), strict=True))
        kinds = {str: str, int: np.int32, float: np.float32}
        assert {name: others[name] for name in args} == {name: wanted[name] for name in args}
        assert all(type(others.pop(name)) is kinds[type(wanted[name])] for name in args)
        assert others.pop(PHASE, 0) == phase
        assert all(len(bytes(others.pop(name))) == 128 for name in others.keys() & MAPS.keys())
        assert all(isinstance(others[name], np.uint64) and others[name] == 7 for name in others.keys() - NO_MEMORY)


@each_kernel
def test_nothing_is_launched_where_there_is_nothing_to_compute(kernel: Kernel) -> None:
    assert launches(kernel, GemmProblem(0, 5, 3)) == []
    assert launches(kernel, GemmProblem(5, 0, 3)) == []
    # Without a product beta * C is left to compute.
    assert launches(kernel, GemmProblem(5, 5, 0))


def test_extents_beyond_32_bits_are_refused() -> None:
    with pytest.raises(UsageError, match="naive: 2147483648 does not fit in 'int M'"):
        launches(find_kernel("naive"), GemmProblem(2**31, 1, 1))


def test_the_problem_decides_how_operands_are_read() -> None:
    kernel = find_kernel("vector_load")
    assert kernel.layouts == ("nn", "nt", "tn", "tt")
    config = kernel.configure({"BM": 64, "BN": 64})
    entries = [kernel.program(instance, "sm_90").entry for instance in kernel.instances(config)]
    assert entries == [
        f"vector_load<64, 64, 8, 8, 8, 1, 0, 0, {a}, {b}>" for a in ("false", "true") for b in ("false", "true")
    ]
    instance = kernel.instantiate(config, OP.scalars(GemmProblem(1, 1, 1, trans_b=True)))
    assert kernel.program(instance, "sm_90").entry == entries[1]
    assert find_kernel("naive").instances({"BM": 32, "BN": 32}) == [{"BM": 32, "BN": 32}]


def test_a_program_is_the_file_as_it_is() -> None:
    kernel = find_kernel("block_tile")
    program = kernel.program(kernel.configure({"BK": 8}), "sm_80")
    assert (program.kernel, program.language, program.target) == ("block_tile", "cuda", "sm_80")
    assert program.entry == "block_tile<32, 32, 8, 64>"
    assert program.emit() == kernel.path.read_text(encoding="utf-8")
    assert program.path == str(kernel.path)
    other = kernel.program(kernel.configure(), "sm_80")
    assert program.fingerprint != other.fingerprint
    assert other.fingerprint == kernel.program(kernel.configure(), "sm_90").fingerprint


def test_configurations_are_refused_with_the_constraint() -> None:
    with pytest.raises(UsageError, match=r"breaks the kernel's constraints: BM \* BN <= 1024"):
        find_kernel("naive").configure({"BM": 64})
    with pytest.raises(UsageError, match="unknown parameter 'TM'"):
        find_kernel("naive").configure({"TM": 8})
    with pytest.raises(UsageError, match=r"constraints: .*BM % TM == 0"):
        find_kernel("vector_load").configure({"TM": 7})
    with pytest.raises(UsageError, match="constraints"):
        find_kernel("vector_load").configure({"TM": 0})


def test_an_older_architecture_is_refused() -> None:
    kernel = find_kernel("naive")
    with pytest.raises(DeviceError, match="naive is for sm_75 or newer, not for sm_70"):
        kernel.program(kernel.configure(), "sm_70")
    assert kernel.program(kernel.configure(), "sm_100a").target == "sm_100a"
