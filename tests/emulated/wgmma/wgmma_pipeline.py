"""A GEMM as fast code for sm_90a is made: a producer brings stages by TMA, two warpgroups multiply them by wgmma."""

from __future__ import annotations

from wgmma_forms import PRELUDE, Form, multiply

FORM = Form("f16", "f16", "f32", 128)
ROWS, COLUMNS, DEPTH, STAGES = 128, 128, 64, 4
"""The tile of a block, the elements in k of a stage, and the stages."""
SHARED = STAGES * (ROWS + COLUMNS) * DEPTH * 2 + 1024


def source() -> str:
    """The kernel `pipeline(a, b, c, columns of c, steps)`: C = A B^T. `WRONG_PARITY` and `EARLY_RELEASE` are bugs."""
    return (
        PRELUDE
        + multiply(FORM)
        + f"""
struct alignas(64) CUtensorMap {{ char bytes[128]; }};

__device__ void wait(u64 *barrier, int parity) {{
    asm volatile("{{.reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;"
                 " @!done bra again;}}" :: "r"(at_shared(barrier)), "r"(parity) : "memory");
}}

__device__ void arrive(u64 *barrier) {{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at_shared(barrier)) : "memory");
}}

__device__ void load(char *to, const CUtensorMap *map, u64 *barrier, int column, int row) {{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {{%3, %4}}], [%2];"
                 :: "r"(at_shared(to)), "l"(map), "r"(at_shared(barrier)), "r"(column), "r"(row) : "memory");
}}

extern "C" __global__ void __launch_bounds__(384, 1) pipeline(
    const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float *c, int columns, int steps
) {{
    extern __shared__ char memory[];
    __shared__ u64 full[{STAGES}], empty[{STAGES}];
    char *stages = memory + (-at_shared(memory) & 1023);
    const int bytes_a = {ROWS} * 128, bytes = ({ROWS} + {COLUMNS}) * 128;
    if (threadIdx.x == 0)
        for (int i = 0; i < {STAGES}; ++i) {{
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(at_shared(full + i)) : "memory");
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;" :: "r"(at_shared(empty + i)) : "memory");
        }}
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    __syncthreads();
    int group = threadIdx.x / 128;
    if (group == 0) {{
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0)
            for (int step = 0; step < steps; ++step) {{
                int i = step % {STAGES};
#ifdef WRONG_PARITY
                wait(empty + i, step / {STAGES} & 1);
#else
                // The first round finds the stages empty: the phase before the first counts as ended.
                wait(empty + i, ~(step / {STAGES}) & 1);
#endif
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                             :: "r"(at_shared(full + i)), "r"(bytes) : "memory");
                load(stages + i * bytes, &a, full + i, step * {DEPTH}, blockIdx.y * {ROWS});
                load(stages + i * bytes + bytes_a, &b, full + i, step * {DEPTH}, blockIdx.x * {COLUMNS});
            }}
        return;
    }}
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    unsigned d[{FORM.words}] = {{}}, unused[4] = {{}};
    u64 layout = (u64)1 << 62 | field(16) << 16 | field(1024) << 32;
    int step = 0;
    do {{
        int i = step % {STAGES};
        wait(full + i, step / {STAGES} & 1);
        char *tile_a = stages + i * bytes + (group - 1) * 64 * 128, *tile_b = stages + i * bytes + bytes_a;
        fence();
#pragma unroll
        for (int k = 0; k < 4; ++k)
            multiply_{FORM.name}(d, unused, layout | field(at_shared(tile_a) + 32 * k),
                layout | field(at_shared(tile_b) + 32 * k), 1);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
#ifdef EARLY_RELEASE
        if (threadIdx.x % 128 == 0) arrive(empty + i);
#else
        // The stage before this one is read: one thread of the warpgroup releases it.
        if (step > 0 && threadIdx.x % 128 == 0) arrive(empty + (step - 1) % {STAGES});
#endif
    }} while (++step < steps);
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    int row = blockIdx.y * {ROWS} + (group - 1) * 64 + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
    float *out = c + (size_t)row * columns + blockIdx.x * {COLUMNS} + threadIdx.x % 4 * 2;
    for (int i = 0; i < {FORM.words}; ++i)
        out[(size_t)(i / 2 % 2 * 8) * columns + i / 4 * 8 + i % 2] = __uint_as_float(d[i]);
}}
"""
    )
