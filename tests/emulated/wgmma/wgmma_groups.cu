// Groups of multiplications, and warpgroups, that are not whole: each kernel with its bug and without.
typedef unsigned long long u64;

__device__ void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int LEFT> __device__ void wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory"); // wait
}

__device__ void multiply(float (&d)[4], u64 left, u64 right) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;" // multiply
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(left), "l"(right));
}

__device__ u64 operands() {
    __shared__ __align__(1024) unsigned tile[1024];
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) tile[i] = 0x3c003c00;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    u64 start = ((unsigned)__cvta_generic_to_shared(tile) & 0x3ffff) >> 4;
    return start | (u64)8 << 16 | (u64)16 << 32;
}

__device__ void load(float (&d)[4], const float *x) {
    for (int i = 0; i < 4; ++i) d[i] = x[threadIdx.x * 4 + i];
}

__device__ void store(float *x, const float (&d)[4]) {
    for (int i = 0; i < 4; ++i) x[threadIdx.x * 4 + i] = d[i]; // used
}

extern "C" __global__ void whole(float *x) {
    float d[4];
    u64 word = operands();
    load(d, x);
    fence();
    multiply(d, word, word); // issued
    commit();
    wait<0>();
    store(x, d);
}

extern "C" __global__ void not_committed(float *x) {
    float d[4];
    u64 word = operands();
    load(d, x);
    fence();
    multiply(d, word, word); // never committed
    wait<0>();               // waits for nothing
    store(x, d);
}

extern "C" __global__ void one_left(float *x) {
    float d[4];
    u64 word = operands();
    load(d, x);
    fence();
    multiply(d, word, word); // left
    commit();
    wait<1>();               // leaves one
    store(x, d);
}

// Two groups in turn; the wait for the first one leaves the second.
extern "C" __global__ void in_turn(float *x) {
    float d[4], e[4];
    u64 word = operands();
    load(d, x);
    load(e, x);
    fence();
    multiply(d, word, word);
    commit();
    multiply(e, word, word);
    commit();
    wait<1>();
    store(x, d);
    wait<0>();
    store(x + 512, e);
}

// The same, and the second result is used before the wait for it.
extern "C" __global__ void added_early(float *x) {
    float d[4], e[4];
    u64 word = operands();
    load(d, x);
    load(e, x);
    fence();
    multiply(d, word, word);
    commit();
    multiply(e, word, word); // added
    commit();
    wait<1>(); // one too many
    for (int i = 0; i < 4; ++i) d[i] += e[i];
    wait<0>();
    store(x, d);
}

// Two results that begin as zeros. ptxas takes the zeros for one value, copies them before the second multiplication,
// and waits for the first one there; so the machine code is right without the wait, too.
template <bool GOOD> __device__ void of_zeros(float *x) {
    float d[4] = {}, e[4] = {};
    u64 word = operands();
    fence();
    multiply(d, word, word); // of zeros
    commit();
    multiply(e, word, word);
    commit();
    if (GOOD) wait<1>();
    store(x, d); // zeros used
    wait<0>();
    store(x + 512, e);
}

extern "C" __global__ void zeros_waited(float *x) { of_zeros<true>(x); }
extern "C" __global__ void zeros_early(float *x) { of_zeros<false>(x); }

extern "C" __global__ void zeros_once(float *x) {
    float d[4] = {}, e[4] = {};
    u64 word = operands();
    fence();
    multiply(d, word, word);
    multiply(e, word, word);
    commit();
    wait<0>();
    store(x, d);
    store(x + 512, e);
}

// Nothing waits, or uses the result.
extern "C" __global__ void never_waited(float *x) {
    float d[4];
    u64 word = operands();
    load(d, x);
    fence();
    multiply(d, word, word); // never waited
    commit();
} // ends

// A result that is A of the next multiplication.
template <bool GOOD> __device__ void chained(float *x) {
    unsigned d[4], e[4];
    u64 word = operands();
    for (int i = 0; i < 4; ++i) d[i] = e[i] = __float_as_uint(x[threadIdx.x * 4 + i]);
    fence();
    asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f16.f16.f16 {%0, %1, %2, %3}, %4, %4, 1, 1, 1, 0, 0;" // first
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "l"(word));
    commit();
    if (GOOD) wait<0>();
    fence();
    asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f16.f16.f16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, 1, 1, 1, 0;" // next
                 : "+r"(e[0]), "+r"(e[1]), "+r"(e[2]), "+r"(e[3]) : "r"(d[0]), "r"(d[1]), "r"(d[2]), "r"(d[3]), "l"(word));
    commit();
    wait<0>();
    for (int i = 0; i < 4; ++i) x[threadIdx.x * 4 + i] = __uint_as_float(e[i]);
}

extern "C" __global__ void chain_waited(float *x) { chained<true>(x); }
extern "C" __global__ void chain_early(float *x) { chained<false>(x); }

// A register of A is written while the multiplication may read it, or behind the wait for it.
template <bool GOOD> __device__ void left_again(float *x) {
    float d[4];
    u64 word = operands();
    unsigned a = __float_as_uint(x[threadIdx.x]);
    load(d, x);
    fence();
#define AGAIN(wait) \
    asm volatile("{.reg .b32 a; xor.b32 a, %4, 1;" \
                 "wgmma.fence.sync.aligned;" \
                 "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, {a, a, a, a}, %5, 1, 1, 1, 0;" \
                 "wgmma.commit_group.sync.aligned;" wait "add.u32 a, a, 1; wgmma.fence.sync.aligned;" \
                 "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, {a, a, a, a}, %5, 1, 1, 1, 0;" \
                 "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;}" \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a), "l"(word))
    if (GOOD) AGAIN("wgmma.wait_group.sync.aligned 0;");
    else AGAIN(""); // left again
    store(x, d);
}

extern "C" __global__ void left_behind_wait(float *x) { left_again<true>(x); }
extern "C" __global__ void left_in_flight(float *x) { left_again<false>(x); }

// A bulk copy overwrites an operand: behind the wait and a barrier, or behind a barrier alone.
template <bool GOOD> __device__ void refilled(float *x) {
    float d[4];
    __shared__ u64 full;
    u64 word = operands();
    unsigned tile = (unsigned)(word & 0x3fff) << 4, barrier = (unsigned)__cvta_generic_to_shared(&full);
    if (threadIdx.x == 0)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;" ::"r"(barrier) : "memory");
    load(d, x);
    fence();
    multiply(d, word, word); // refilled
    commit();
    if (GOOD) wait<0>();
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" ::"r"(barrier) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];" // refill
                     ::"r"(tile), "l"(x + 1024), "r"(barrier) : "memory");
    }
    wait<0>();
    for (unsigned done = 0; !done;)
        asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p;}"
                     : "=r"(done) : "r"(barrier) : "memory");
    store(x, d);
}

extern "C" __global__ void refilled_behind_wait(float *x) { refilled<true>(x); }
extern "C" __global__ void refilled_in_flight(float *x) { refilled<false>(x); }

template <bool LEFT> __device__ void beyond(float *x) {
    float d[4];
    u64 word = operands(), far = (word & ~(u64)0x3fff) | 0x3f00;
    load(d, x);
    fence();
    multiply(d, LEFT ? far : word, LEFT ? word : far);
    commit();
    wait<0>();
    store(x, d);
}

extern "C" __global__ void left_beyond(float *x) { beyond<true>(x); }
extern "C" __global__ void right_beyond(float *x) { beyond<false>(x); }

// One warpgroup releases fewer registers than the others wait for.
extern "C" __global__ void __launch_bounds__(384, 1) starved(float *x) {
    if (threadIdx.x < 128) asm volatile("setmaxnreg.dec.sync.aligned.u32 160;");
    else asm volatile("setmaxnreg.inc.sync.aligned.u32 240;"); // starved
    x[threadIdx.x] = threadIdx.x;
}

// An operand that the cluster's other block stores.
__device__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}

template <bool GOOD> __device__ void from_afar(float *x) {
    float d[4];
    u64 word = operands();
    load(d, x);
    cluster_sync();
    unsigned rank, there;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"((unsigned)(word & 0x3fff) << 4), "r"(1 - rank));
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(there + 4 * threadIdx.x), "r"(0x40004000) : "memory"); // from afar
    asm volatile("fence.proxy.async;" ::: "memory");
    if (GOOD) cluster_sync();
    else __syncthreads();
    fence();
    multiply(d, word, word);
    commit();
    wait<0>();
    cluster_sync();
    store(x + 512 * rank, d);
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) far_operand(float *x) { from_afar<true>(x); }
extern "C" __global__ void __cluster_dims__(2, 1, 1) early_operand(float *x) { from_afar<false>(x); }
