"""Atomic operations on vectors: each element has the bits of one number's; accesses count as those of a store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gemmlab
from support.cuda_source import needs_compiler

pytestmark = needs_compiler
THREADS = 32
SPECIAL = {
    "f32": (0, 0x80000000, 1, 0x80000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00001),
    "f16x2": (0, 0x80000001, 0x03FF0400, 0x7BFF7BFF, 0x7C00FC00, 0xFC007C00, 0x7E013C00, 0x3C0083FF),
    "bf16x2": (0, 0x80000001, 0x007F0080, 0x7F7F7F7F, 0x7F80FF80, 0xFF807F80, 0x7FC13F80, 0x3F80807F),
}
"""Bits of zeros, denormal and largest numbers, infinities and NaN."""


@dataclass(frozen=True, slots=True)
class Sum:
    """A vector of `words` 32-bit words of the type `word`; PTX writes it as `ptx`."""

    ptx: str
    word: str
    words: int
    letter: str = "r"
    space: str = ".global"

    @property
    def halves(self) -> bool:
        """True if each element in PTX is one 16-bit number, not a pair."""
        return self.letter == "h"

    def source(self) -> str:
        """Kernels `sums` (a vector in each thread, `cells` vectors) and `old`, and the same word by word."""
        count = self.words * (2 if self.halves else 1)
        kind = "unsigned short" if self.halves else "float" if self.letter == "f" else "unsigned"
        each = [f"((const {kind} *)in)[threadIdx.x * {count} + {n}]" for n in range(count)]
        inputs = ", ".join(f'"{self.letter}"({text})' for text in each)
        names = ", ".join(f"%{n + 1}" for n in range(count))
        more = ", ".join(f"%{count + 1 + n}" for n in range(count))
        outputs = ", ".join(f'"={self.letter}"(was[{n}])' for n in range(count))
        olds = ", ".join(f"%{n}" for n in range(count))
        noftz = "" if self.word == "f32" else ".noftz"
        one, letter = ("float", "f") if self.word == "f32" else ("unsigned", "r")
        return f"""
extern "C" __global__ void sums(unsigned *x, const unsigned *in, int cells) {{
    asm volatile("red{self.space}.add{noftz}.{self.ptx} [%0], {{{names}}};"
                 ::"l"(x + threadIdx.x % cells * {self.words}), {inputs} : "memory");
}}
extern "C" __global__ void old(unsigned *x, const unsigned *in, int cells, unsigned *out) {{
    {kind} was[{count}];
    asm volatile("atom{self.space}.add{noftz}.{self.ptx} {{{olds}}}, [%{count}], {{{more}}};"
                 : {outputs} : "l"(x + threadIdx.x % cells * {self.words}), {inputs} : "memory");
    for (int i = 0; i < {count}; ++i) (({kind} *)out)[threadIdx.x * {count} + i] = was[i];
}}
extern "C" __global__ void by_words(unsigned *x, const unsigned *in, int cells, unsigned *out) {{
    for (int i = 0; i < {self.words}; ++i) {{
        {one} was;
        asm volatile("atom.global.add{noftz}.{self.word} %0, [%1], %2;" : "={letter}"(was)
                     : "l"(x + threadIdx.x % cells * {self.words} + i),
                       "{letter}"((({one} *)in)[threadIdx.x * {self.words} + i]) : "memory");
        (({one} *)out)[threadIdx.x * {self.words} + i] = was;
    }}
}}
"""


SUMS = [
    Sum("v2.f32", "f32", 2, "f"), Sum("v4.f32", "f32", 4, "f"), Sum("v4.f32", "f32", 4, "f", space=""),
    Sum("v2.f16x2", "f16x2", 2), Sum("v4.f16x2", "f16x2", 4), Sum("v4.f16", "f16x2", 2, "h"),
    Sum("v8.f16", "f16x2", 4, "h"), Sum("v2.bf16x2", "bf16x2", 2), Sum("v8.bf16", "bf16x2", 4, "h"),
]  # fmt: skip


def numbers(kind: Sum, count: int, seed: int) -> npt.NDArray[np.uint32]:
    """Words of all kinds of numbers."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 1 << 32, count, np.uint32)
    return np.where(rng.random(count) < 0.5, rng.choice(np.array(SPECIAL[kind.word], np.uint32), count), bits)


def run(kind: Sum, kernel: str, *args: object) -> gemmlab.Launched:
    """A launch of one warp."""
    return gemmlab.launch(kind.source(), kernel, 1, THREADS, list(args), device="emulated:sm_90")


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("kind", SUMS, ids=str)
@pytest.mark.parametrize("cells", [THREADS, 5])
@pytest.mark.sampled(3)
def test_each_element_has_the_bits_of_the_sum_of_one_number(kind: Sum, cells: int) -> None:
    x, values = (numbers(kind, THREADS * kind.words, seed) for seed in (1, 2))
    out = np.zeros_like(x)
    expected = run(kind, "by_words", x, values, cells, out)
    assert not np.array_equal(expected.outputs[0], x)
    np.testing.assert_array_equal(run(kind, "sums", x, values, cells).outputs[0], expected.outputs[0])
    vector = run(kind, "old", x, values, cells, out)
    assert vector.hazards == ()
    for mine, theirs in zip(vector.outputs, expected.outputs, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("kind", [SUMS[0], SUMS[1]], ids=str)
def test_sectors_are_those_of_a_store_of_the_vector(kind: Sum) -> None:
    values = np.zeros(THREADS * kind.words, np.float32).view(np.uint32)
    sums = run(kind, "sums", values, values.copy(), THREADS).counters
    assert sums is not None
    (site,) = (site for site in sums.sites if site.base_opcode == "REDG")
    assert (site.executed, site.requests, site.sectors) == (1, 1, THREADS * kind.words * 4 // 32)


@pytest.mark.in_turns(20)
def test_an_address_that_is_no_multiple_of_the_vector_is_reported() -> None:
    source = SUMS[1].source().replace("% cells * 4", "% cells * 4 + 2")
    values = np.zeros(THREADS * 4 + 4, np.uint32)
    done = gemmlab.launch(source, "sums", 1, THREADS, [values, values.copy(), 32], device="emulated:sm_90")
    (found,) = done.hazards or ()
    assert found.kind == "misaligned"
    assert "16-byte write of global memory" in found.message


@pytest.mark.parametrize("operation", ["min", "max"])
@pytest.mark.parametrize("word", ["f16x2", "bf16x2"])
@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.sampled(2)
def test_a_number_is_taken_instead_of_nan_and_the_signs_of_zeros_are_ordered(
    operation: str, word: str, words: int
) -> None:
    kind = Sum(f"v{2 * words}.{word.removesuffix('x2')}", word, words, "h")
    source = kind.source().split('extern "C"')[1].replace(".add", f".{operation}")
    one, nan = (0x3C00, 0x7E00) if word == "f16x2" else (0x3F80, 0x7FC0)
    pairs = [
        (one, nan, one, one),
        (nan, nan, 0x7FFF, 0x7FFF),
        (0, 0x8000, 0x8000, 0),
        (one, 0x8000 | one, 0x8000 | one, one),
    ]
    there, come, least, most = (np.array([pair[at] for pair in pairs], np.uint32) for at in range(4))
    old, new, wanted = (
        np.resize(x | x << 16, THREADS * words) for x in (there, come, least if operation == "min" else most)
    )
    args = [old.astype(np.uint32), new.astype(np.uint32), THREADS]
    done: Any = gemmlab.launch('extern "C"' + source, "sums", 1, THREADS, args, device="emulated:sm_90")
    assert done.hazards == ()
    np.testing.assert_array_equal(done.outputs[0], wanted)
