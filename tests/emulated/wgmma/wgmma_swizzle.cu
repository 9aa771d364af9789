// Swizzled tiles whose start is a multiple of 128 bytes, but not of their pattern's: who places the pattern where.
typedef unsigned long long u64;
struct alignas(64) TensorMap { u64 words[16]; };

__device__ unsigned at_shared(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ u64 field(unsigned bytes) { return (bytes & 0x3ffff) >> 4; }

__device__ void multiply(float (&d)[4], u64 left, u64 right) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 0, 1, 1, 0, 0;" // multiply
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(left), "l"(right));
}

// Places of a chunk: swizzled from the tile's start, or by its whole address.
enum Pattern { FROM_START, BY_ADDRESS, PLAIN };

template <int WIDTH, Pattern PATTERN> __device__ uint4 *place(char *tile, int row, int chunk) {
    unsigned offset = row * WIDTH + chunk * 16, begin = at_shared(tile), mask = WIDTH / 16 - 1;
    unsigned phase = PATTERN == FROM_START ? offset >> 7 : PATTERN == BY_ADDRESS ? begin + offset >> 7 : 0;
    return (uint4 *)(tile + (offset ^ (phase & mask) << 4));
}

// Multiplies 16 elements of each of 64 rows, from `row` and 32 `step` bytes on, by eight ones and eight twos; `out` has
// the sums. The rows are those of A, or (`AS_B`) eight of them the columns of B.
template <int WIDTH, bool AS_B = false> __device__ void sums(char *tile, int row, int step, int base, float *out) {
    __shared__ __align__(256) unsigned factors[64];
    if (threadIdx.x < 64) factors[threadIdx.x] = threadIdx.x < 32 ? 0x3c003c00 : 0x40004000;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    u64 mode = WIDTH == 128 ? 1 : WIDTH == 64 ? 2 : 3;
    u64 rows = field(at_shared(tile) + row * WIDTH + step * 32) | (u64)1 << 16 | field(8 * WIDTH) << 32 | mode << 62;
    rows |= (u64)base << 49;
    // All groups of eight rows, or columns, are the same ones.
    u64 same = field(at_shared(factors)) | field(128) << 16;
    float d[4];
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    multiply(d, AS_B ? same : rows, AS_B ? rows : same);
    asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory");
    if (AS_B) {
        if (threadIdx.x < 4)
            for (int i = 0; i < 2; ++i) out[2 * threadIdx.x + i] = d[i];
    } else if (threadIdx.x % 4 == 0)
        for (int i = 0; i < 2; ++i) out[threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + 8 * i] = d[2 * i];
}

// Successive threads store chunks, or (`by_rows`) each thread a row.
template <int WIDTH, Pattern PATTERN>
__device__ void stored(const uint4 *in, float *out, int away, int row, int step, int base, int by_rows) {
    extern __shared__ __align__(1024) char memory[];
    char *tile = memory + away;
    const int chunks = WIDTH / 16, count = 72 * chunks;
    if (by_rows) {
        if (threadIdx.x < 72)
            for (int c = 0; c < chunks; ++c)
                *place<WIDTH, PATTERN>(tile, threadIdx.x, c) = in[threadIdx.x * chunks + c]; // by rows
    } else
        for (int i = threadIdx.x; i < count; i += 128) *place<WIDTH, PATTERN>(tile, i / chunks, i % chunks) = in[i]; // stores
    sums<WIDTH>(tile, row, step, base, out);
}

#define ARGUMENTS const uint4 *in, float *out, int away, int row, int step, int base, int by_rows
#define KERNELS(width) \
    extern "C" __global__ void from_start_##width(ARGUMENTS) { stored<width, FROM_START>(in, out, away, row, step, base, by_rows); } \
    extern "C" __global__ void by_address_##width(ARGUMENTS) { stored<width, BY_ADDRESS>(in, out, away, row, step, base, by_rows); }
KERNELS(32)
KERNELS(64)
KERNELS(128)

extern "C" __global__ void as_b_128(const void *in, float *out, int away, int row, int step, int base) {
    extern __shared__ __align__(1024) char memory[];
    char *tile = memory + away;
    for (int i = threadIdx.x; i < 72 * 8; i += 128) *place<128, FROM_START>(tile, i / 8, i % 8) = ((const uint4 *)in)[i]; // B
    sums<128, true>(tile, row, step, base, out);
}

// Without any pattern: the elements are all the same.
extern "C" __global__ void plain_128(ARGUMENTS) { stored<128, PLAIN>(in, out, away, row, step, base, by_rows); }

// Halves, which several threads store into a chunk.
extern "C" __global__ void halves_128(const void *in, float *out, int away, int row, int step, int base) {
    extern __shared__ __align__(1024) char memory[];
    char *tile = memory + away;
    for (int i = threadIdx.x; i < 72 * 64; i += 128)
        ((short *)place<128, FROM_START>(tile, i / 64, i % 64 / 8))[i % 8] = ((const short *)in)[i]; // halves
    sums<128>(tile, row, step, base, out);
}

extern "C" __global__ void copied_128(const __grid_constant__ TensorMap map, float *out, int away, int row, int step, int base) {
    extern __shared__ __align__(1024) char memory[];
    __shared__ u64 full;
    char *tile = memory + away;
    unsigned barrier = at_shared(&full);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;" ::"r"(barrier) : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 9216;" ::"r"(barrier) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {0, 0}], [%2];" // copies
                     ::"r"(at_shared(tile)), "l"(&map), "r"(barrier) : "memory");
    }
    __syncthreads();
    for (unsigned done = 0; !done;)
        asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p;}"
                     : "=r"(done) : "r"(barrier) : "memory");
    sums<128>(tile, row, step, base, out);
}
