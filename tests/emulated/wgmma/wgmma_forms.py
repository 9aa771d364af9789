"""Forms of wgmma, and CUDA C++ kernels that each execute one of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8}
ROWS, CHUNKS, CHUNK = 64, 2, 16
"""Rows of A, and the chunks of 16 bytes that a row of A or a column of B has along k."""
LAYOUT = {"chunk": 128, "eight": 256}
"""The layout without swizzle that `kernel` uses: distance of the two chunks of a row, and of groups of eight rows."""


@dataclass(frozen=True, slots=True)
class Form:
    """One instruction: types of A, B and the accumulator, columns, and where A lies."""

    a: str
    b: str
    sums: str
    columns: int
    registers: bool = False
    saturate: bool = False
    negate: tuple[int, int] = (1, 1)
    transposed: tuple[int, int] = (0, 0)

    @property
    def depth(self) -> int:
        """Products in a sum: 32 bytes of k."""
        return 8 * CHUNKS * CHUNK // BITS[self.a]

    @property
    def words(self) -> int:
        """32-bit registers of the accumulator in each thread."""
        return self.columns // (4 if self.sums == "f16" else 2)

    @property
    def name(self) -> str:
        """The kernel's name."""
        marks = ["r" * self.registers, "sat" * self.saturate]
        marks += [f"neg{'ab'[side]}" for side in range(2) if self.negate[side] < 0]
        marks += [f"tnsp{'ab'[side]}" for side in range(2) if self.transposed[side]]
        return "_".join(["n" + str(self.columns), self.sums, self.a, self.b, *filter(None, marks)])

    def instruction(self, accumulator: str, a: str, b: str, scale: str) -> str:
        """The PTX statement; operands are texts."""
        kind = f"m64n{self.columns}k{self.depth}.{self.sums}.{self.a}.{self.b}{'.satfinite' * self.saturate}"
        tail = "" if self.sums == "s32" else f", {self.negate[0]}, {self.negate[1]}"
        if BITS[self.a] == 16:
            sides = self.transposed[1:] if self.registers else self.transposed
            tail += "".join(f", {flag}" for flag in sides)
        return f"wgmma.mma_async.sync.aligned.{kind} {{{accumulator}}}, {a}, {b}, {scale}{tail};"


PRELUDE = """
typedef unsigned long long u64;
extern "C" __global__ void nothing() {}
__device__ void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void commit_and_wait() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}
__device__ u64 field(unsigned bytes) { return (bytes & 0x3ffff) >> 4; }
__device__ unsigned at_shared(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void publish() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); __syncthreads(); }
"""


def multiply(form: Form) -> str:
    """A device function `multiply_NAME(d, a, descriptor_a, descriptor_b, keep)` that issues the form once."""
    d = ", ".join(f"%{n}" for n in range(form.words))
    outputs = ", ".join(f'"+r"(d[{n}])' for n in range(form.words))
    if form.registers:
        a = "{" + ", ".join(f"%{form.words + n}" for n in range(4)) + "}"
        inputs, last = ", ".join(f'"r"(a[{n}])' for n in range(4)), form.words + 4
    else:
        a, inputs, last = f"%{form.words}", '"l"(da)', form.words + 1
    statement = form.instruction(d, a, f"%{last}", "keep")
    text = f"{{.reg .pred keep; setp.ne.b32 keep, %{last + 1}, 0; {statement}}}"
    return f"""
__device__ void multiply_{form.name}(unsigned (&d)[{form.words}], const unsigned (&a)[4], u64 da, u64 db, int keep) {{
    asm volatile("{text}" : {outputs} : {inputs}, "l"(db), "r"(keep));
}}
"""


def kernel(form: Form) -> str:
    """A kernel that multiplies one tile in each block: chunks of A's rows and of B's columns as they lie along k,
    accumulators as each thread holds them, read and written in place.
    """
    return (
        multiply(form)
        + f"""
extern "C" __global__ void __launch_bounds__(128) {form.name}(const uint4 *a, const uint4 *b, unsigned *sums) {{
    __shared__ __align__(1024) uint4 tile_a[{ROWS * CHUNKS}];
    __shared__ __align__(1024) uint4 tile_b[{form.columns * CHUNKS}];
    const uint4 *mine_a = a + (size_t)blockIdx.x * {ROWS * CHUNKS};
    const uint4 *mine_b = b + (size_t)blockIdx.x * {form.columns * CHUNKS};
    for (int i = threadIdx.x; i < {ROWS * CHUNKS}; i += 128)
        tile_a[i / 16 * 16 + i % 2 * 8 + i / 2 % 8] = mine_a[i];
    for (int i = threadIdx.x; i < {form.columns * CHUNKS}; i += 128)
        tile_b[i / 16 * 16 + i % 2 * 8 + i / 2 % 8] = mine_b[i];
    unsigned *own = sums + ((size_t)blockIdx.x * 128 + threadIdx.x) * {form.words};
    unsigned d[{form.words}], frag[4];
    for (int i = 0; i < {form.words}; ++i) d[i] = own[i];
    int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, word = threadIdx.x % 4;
    for (int i = 0; i < 4; ++i)
        frag[i] = ((const unsigned *)mine_a)[(row + i % 2 * 8) * 8 + word + i / 2 * 4];
    publish();
    u64 layout = field({LAYOUT["chunk"]}) << 16 | field({LAYOUT["eight"]}) << 32;
    fence();
    multiply_{form.name}(d, frag, layout | field(at_shared(tile_a)), layout | field(at_shared(tile_b)), 1);
    commit_and_wait();
    for (int i = 0; i < {form.words}; ++i) own[i] = d[i];
}}
"""
    )


def source(forms: Iterable[Form]) -> str:
    """A file with the kernel of every form."""
    return PRELUDE + "".join(kernel(form) for form in forms)
