"""A small GEMM by wgmma, whose operands ordinary stores bring to shared memory, in two stages; variants with bugs."""

from __future__ import annotations

from wgmma_forms import BITS, CHUNK, PRELUDE, ROWS, Form, multiply

MODES = {"none": (0, 2), "32": (3, 2), "64": (2, 4), "128": (1, 8)}
"""Swizzles by name: their number in a descriptor, and the chunks of a row of a stage."""
BUGS = {
    "NO_WAIT": "the stage is overwritten while the multiplication reads it",
    "NO_PUBLISHING": "the multiplication starts before other warps have written the stage",
    "NO_PROXY_FENCE": "the stores are not ordered before the asynchronous proxy",
    "LATE_PROXY_FENCE": "the thread that reads has the fence, not those that wrote",
}


def gemm_source(form: Form, mode: str) -> str:
    """A kernel `gemm(a, b, c, rows of c, chunks in k)`: C = A B^T for row-major A and B, 64 x columns in each block.

    A macro of `BUGS` puts in that bug. `FENCE_BEHIND_BARRIER` lets every thread fence behind the barrier, which is
    right: the fences are on the way from the stores to the multiplication. `NO_BARRIER` leaves out the barrier behind
    the wait, which a warpgroup does not need: a multiplication that one of its warps has waited for has ended.
    """
    number, chunks = MODES[mode]
    row = f"{chunks * CHUNK}"
    swizzled = {"32": "r >> 2 & 1", "64": "r >> 1 & 3", "128": "r & 7", "none": "0"}[mode]
    place = "r / 8 * 256 + c * 128 + r % 8 * 16" if mode == "none" else f"r * {row} + ((c ^ ({swizzled})) << 4)"
    leading, stride = ("128", "256") if mode == "none" else ("16", f"8 * {row}")
    words, per_word = form.words, 2 if form.sums == "f16" else 1
    left = (
        "((const unsigned *)a)[(own_row + i % 2 * 8) * length * 4 + (first + 2 * k) * 4 + threadIdx.x % 4 + i / 2 * 4]"
    )
    return (
        PRELUDE
        + multiply(form)
        + f"""
__device__ unsigned place(int r, int c) {{ return {place}; }}

__device__ void bring(char *stage, const uint4 *source, int rows, int first, int length) {{
    for (int i = threadIdx.x; i < rows * {chunks}; i += 128) {{
        int r = i / {chunks}, c = i % {chunks};
        *(uint4 *)(stage + place(r, c)) = first + c < length ? source[(size_t)r * length + first + c] : uint4{{}};
    }}
}}

extern "C" __global__ void __launch_bounds__(128) gemm(
    const uint4 *a, const uint4 *b, unsigned *out, int row_words, int length
) {{
    extern __shared__ __align__(1024) char memory[];
    const int bytes_a = {ROWS} * {row}, bytes_b = {form.columns} * {row};
    a += (size_t)blockIdx.y * {ROWS} * length;
    b += (size_t)blockIdx.x * {form.columns} * length;
    unsigned d[{words}] = {{}}, left[{chunks // 2}][4] = {{}};
    int own_row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
    int stage = 0, first = 0;
    // A loop that may not run at all would bring the zeros beside its result, and ptxas would wait at every step.
    do {{
        char *tile_a = memory + stage * (bytes_a + bytes_b), *tile_b = tile_a + bytes_a;
        bring(tile_a, a, {ROWS}, first, length);
        bring(tile_b, b, {form.columns}, first, length);
#if !defined(NO_PROXY_FENCE) && !defined(LATE_PROXY_FENCE) && !defined(FENCE_BEHIND_BARRIER)
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
#ifndef NO_PUBLISHING
        __syncthreads();
#endif
#ifdef FENCE_BEHIND_BARRIER
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
#ifdef LATE_PROXY_FENCE
        if (threadIdx.x == 0) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
        for (int k = 0; k < {chunks // 2 if form.registers else 0}; ++k)
            for (int i = 0; i < 4; ++i) left[k][i] = {left};
        u64 layout = (u64){number} << 62 | field({leading}) << 16 | field({stride}) << 32;
        fence();
#pragma unroll
        for (int k = 0; k < {chunks} / 2; ++k) {{
            unsigned ahead = {"k * 256" if mode == "none" else "k * 32"};
            multiply_{form.name}(d, left[k], layout | field(at_shared(tile_a) + ahead),
                layout | field(at_shared(tile_b) + ahead), 1);
        }}
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#ifdef NO_WAIT
        asm volatile("wgmma.wait_group.sync.aligned 2;" ::: "memory");
#else
        // Registers of A must not change before the wait, so with them the next stage waits for this one.
        asm volatile("wgmma.wait_group.sync.aligned {0 if form.registers else 1};" ::: "memory");
#endif
#ifndef NO_BARRIER
        __syncthreads();
#endif
        stage ^= 1;
    }} while ((first += {chunks}) < length);
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    int row = blockIdx.y * {ROWS} + own_row;
    int column = (blockIdx.x * {form.columns} + threadIdx.x % 4 * 2) / {per_word};
    for (int i = 0; i < {words}; ++i) {{
        int part = {"i % 2" if per_word == 2 else "i / 2 % 2"};
        int right = {"i / 2 * 4" if per_word == 2 else "i / 4 * 8 + i % 2"};
        out[(size_t)(row + part * 8) * row_words + column + right] = d[i];
    }}
}}
"""
    )


def shared_bytes(form: Form, mode: str) -> int:
    """Dynamic shared memory of a block: two stages."""
    return 2 * (ROWS + form.columns) * MODES[mode][1] * CHUNK


def chunks_of(form: Form, depth: int) -> int:
    """Chunks of 16 bytes in a row of `depth` elements."""
    return depth * BITS[form.a] // 8 // CHUNK
