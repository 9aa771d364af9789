"""Cubins with other machine code."""

from __future__ import annotations

from functools import cache

import pytest

from gemmlab.core.program import Artifact
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.catalog import find_op
from gemmlab.sass.blocks import flow_graph
from gemmlab.sass.instruction import SassFunction
from gemmlab.sass.parse import parse
from gemmlab.sass.writing.cubin_code import with_words
from gemmlab.sass.writing.slots import EncodingError
from gemmlab.sass.writing.word import decode, encode
from gemmlab.toolchain.build_cuda import compile_here
from gemmlab.toolchain.line_tables import read_line_tables
from gemmlab.toolchain.nvdisasm import disassemble
from support.cuda_source import needs_compiler

pytestmark = needs_compiler

ARCHS = ("sm_80", "sm_89", "sm_90")


@cache
def built(kernel: str, arch: str) -> tuple[Artifact, SassFunction]:
    found = find_kernel(kernel)
    op = find_op(found.op)
    (problem, *_) = op.parse_sizes("64")
    artifact, _ = compile_here(found.program(found.instantiate(found.configure({}), op.scalars(problem)), arch))
    (function,) = parse(artifact.texts["sass"]).values()
    return artifact, function


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("kernel", ["naive", "warp_tile", "async_copy"])
def test_words_from_their_fields_give_the_same_file(kernel: str, arch: str) -> None:
    artifact, function = built(kernel, arch)
    words = [encode(decode(instruction)) for instruction in function.instructions]
    assert with_words(artifact.code, function, words) == artifact.code


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("arch", ARCHS)
def test_another_order_keeps_targets_and_lines(arch: str) -> None:
    artifact, function = built("naive", arch)
    order: list[int] = []
    for block in flow_graph(function).blocks:
        *body, last = range(block.start, block.stop)
        order += [*reversed(body), last]
    made = with_words(artifact.code, function, [i.encoding for i in function.instructions], order)
    (after,) = parse(disassemble(made, "naive")).values()
    target = {old: new for new, old in enumerate(order)}
    assert target[1] != 1
    for new, old in enumerate(order):
        before, now = function.instructions[old], after.instructions[new]
        assert now.name == before.name
        assert [o.value for o in now.operands] == [o.value for o in before.operands]
        assert (now.line and now.line[1]) == (before.line and before.line[1]), before.text
    (was,), (lines,) = (read_line_tables(code, "naive").functions.values() for code in (artifact.code, made))
    chains = [was.places(16 * old) for old in order]
    assert [lines.places(16 * new) for new in range(len(order))] == chains
    assert max(map(len, chains)) > 1


def test_what_cannot_be_put_in_another_order_is_refused() -> None:
    artifact, function = built("naive", "sm_90")
    words = [instruction.encoding for instruction in function.instructions]
    with pytest.raises(EncodingError, match=f"index of each of the {len(words)} instructions once"):
        with_words(artifact.code, function, words, [0] * len(words))
    branch = next(n for n, i in enumerate(function.instructions) if i.opcode == "BRA")
    order = [*range(len(words))]
    order[branch], order[0] = order[0], order[branch]
    with pytest.raises(EncodingError, match="its target is relative"):
        with_words(artifact.code, function, words, order)
