// Mbarriers: arrivals, states, parities, bytes.
#include "asynchronous.cuh"

// All threads arrive and wait for two phases; the sums need both.
extern "C" __global__ void phases(const float* in, float* out) {
    __shared__ float values[64];
    __shared__ u64 cell;
    const u32 barrier = shared_address(&cell);
    if (threadIdx.x == 0) mbarrier_init(barrier, 64);
    __syncthreads();
    values[threadIdx.x] = in[threadIdx.x];
    while (!try_state(barrier, arrive(barrier))) {
        break;
    }
    wait(barrier, 0);
    const float other = values[63 - threadIdx.x];
    arrive(barrier);
    wait(barrier, 1);
    values[threadIdx.x] = other;
    arrive(barrier);
    wait(barrier, 0);
    out[threadIdx.x] = values[(threadIdx.x + 1) % 64];
}

// Results of each operation, one thread.
extern "C" __global__ void results(u32* out) {
    __shared__ u64 cell;
    const u32 barrier = shared_address(&cell);
    mbarrier_init(barrier, 5);
    u64 state = arrive(barrier);
    u32 pending;
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(state));
    out[0] = pending;
    state = arrive(barrier);
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(state));
    out[1] = pending;
    out[2] = test_parity(barrier, 0);
    out[3] = test_parity(barrier, 1);
    asm volatile("mbarrier.arrive.noComplete.shared::cta.b64 %0, [%1], 2;" : "=l"(state) : "r"(barrier) : "memory");
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(state));
    out[4] = pending;
    arrive_expect(barrier, 48);
    out[5] = test_parity(barrier, 0);
    complete(barrier, 32);
    out[6] = test_parity(barrier, 0);
    complete(barrier, 16);
    out[7] = test_parity(barrier, 0);
    out[8] = test_parity(barrier, 1);
    out[9] = try_state(barrier, state);
    asm volatile("mbarrier.arrive_drop.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(barrier) : "memory");
    arrive_count(barrier, 4);
    out[10] = test_parity(barrier, 1);
    arrive_count(barrier, 4);  // One arrival was dropped for good.
    out[11] = test_parity(barrier, 0);
    complete(barrier, 16);  // Bytes may come before they are expected.
    arrive_count(barrier, 3);
    arrive_expect(barrier, 16);
    out[12] = test_parity(barrier, 1);
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
    mbarrier_init(barrier, 1);
    out[13] = test_parity(barrier, 1);
}

// Lanes arrive without completing the phase; each state counts the lanes before it.
extern "C" __global__ void no_complete(u32* out) {
    __shared__ u64 cells[2];
    const u32 barrier = shared_address(&cells[threadIdx.x & 1]);
    if (threadIdx.x < 2) mbarrier_init(barrier, 100);
    __syncwarp();
    u64 state;
    u32 pending;
    asm volatile("mbarrier.arrive.noComplete.shared::cta.b64 %0, [%1], 2;" : "=l"(state) : "r"(barrier) : "memory");
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(state));
    out[threadIdx.x] = pending;
}

// cp.async copies give their arrival to an mbarrier, with and without counting it first.
extern "C" __global__ void copies_arrive(const float* in, float* out) {
    __shared__ alignas(16) float values[2][32 * 4];
    __shared__ u64 cells[2];
    if (threadIdx.x == 0) {
        mbarrier_init(shared_address(&cells[0]), 32);
        mbarrier_init(shared_address(&cells[1]), 32);
    }
    __syncthreads();
    for (int i = 0; i < 2; ++i) {
        const u32 to = shared_address(&values[i][4 * threadIdx.x]);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(in + i * 128 + 4 * threadIdx.x) : "memory");
        const u32 barrier = shared_address(&cells[i]);
        if (i == 0) {
            asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(barrier) : "memory");
        } else {
            asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" ::"r"(barrier) : "memory");
            arrive(barrier);
        }
    }
    wait(shared_address(&cells[0]), 0);
    wait(shared_address(&cells[1]), 0);
    for (int j = 0; j < 4; ++j) out[4 * threadIdx.x + j] = values[0][127 - 4 * threadIdx.x - j] + values[1][127 - 4 * threadIdx.x - j];
}

// Producer and consumer warps: a ring of two stages, full and empty barriers, bulk copies.
extern "C" __global__ void ring(const float* in, float* out, int steps) {
    __shared__ alignas(128) float stage[2][64];
    __shared__ u64 full[2], empty[2];
    if (threadIdx.x == 0) {
        for (int i = 0; i < 2; ++i) {
            mbarrier_init(shared_address(&full[i]), 1);
            mbarrier_init(shared_address(&empty[i]), 64);
        }
        fence_mbarrier_init();
    }
    __syncthreads();
    if (threadIdx.x >= 64) {
        if (threadIdx.x == 64)
            for (int step = 0; step < steps; ++step) {
                const int i = step % 2;
                wait(shared_address(&empty[i]), (step / 2 + 1) % 2);
                arrive_expect(shared_address(&full[i]), 256);
                bulk_load(shared_address(stage[i]), in + 64 * step, 256, shared_address(&full[i]));
            }
    } else {
        float sum = 0;
        for (int step = 0; step < steps; ++step) {
            const int i = step % 2;
            wait(shared_address(&full[i]), step / 2 % 2);
            sum += stage[i][63 - threadIdx.x];
            arrive(shared_address(&empty[i]));
        }
        out[threadIdx.x] = sum;
    }
}
