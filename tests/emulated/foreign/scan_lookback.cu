// Inclusive prefix sum in a single pass: each block publishes its sum, then looks back at its predecessors until it
// meets a finished prefix (decoupled look-back). Blocks take tickets, so that a block only waits for running ones.
#define BLOCK 128
#define ITEMS 4
#define TILE (BLOCK * ITEMS)

enum { EMPTY = 0, AGGREGATE = 1, PREFIX = 2 };

struct __align__(8) State {
    int status;
    int value;
};

__device__ __forceinline__ State load_state(const volatile unsigned long long* at) {
    union {
        unsigned long long bits;
        State state;
    } u;
    u.bits = *at;
    return u.state;
}

__device__ __forceinline__ void publish(volatile unsigned long long* at, int status, int value) {
    union {
        unsigned long long bits;
        State state;
    } u;
    u.state.status = status;
    u.state.value = value;
    *at = u.bits;
}

__device__ int block_exclusive_scan(int v, int* total) {
    __shared__ int warp_sums[BLOCK / 32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int inclusive = v;
    for (int d = 1; d < 32; d <<= 1) {
        int up = __shfl_up_sync(0xffffffff, inclusive, d);
        if (lane >= d) inclusive += up;
    }
    if (lane == 31) warp_sums[warp] = inclusive;
    __syncthreads();
    int before = 0, all = 0;
    for (int w = 0; w < BLOCK / 32; w++) {
        if (w < warp) before += warp_sums[w];
        all += warp_sums[w];
    }
    __syncthreads();
    *total = all;
    return before + inclusive - v;
}

extern "C" __global__ void scan(const int* in, int* out, int n, unsigned long long* states, int* ticket) {
    __shared__ int tile, prefix_of_tile;
    if (threadIdx.x == 0) tile = atomicAdd(ticket, 1);
    __syncthreads();
    const int base = tile * TILE + threadIdx.x * ITEMS;

    int items[ITEMS], sum = 0;
    for (int k = 0; k < ITEMS; k++) {
        items[k] = base + k < n ? in[base + k] : 0;
        sum += items[k];
    }
    int total;
    const int before = block_exclusive_scan(sum, &total);

    if (threadIdx.x == 0) {
        if (tile == 0) {
            publish(&states[0], PREFIX, total);
            prefix_of_tile = 0;
        } else {
            publish(&states[tile], AGGREGATE, total);
            int sum_before = 0;
            for (int look = tile - 1;; look--) {
                State seen;
                do {
                    seen = load_state(&states[look]);
                } while (seen.status == EMPTY);
                sum_before += seen.value;
                if (seen.status == PREFIX) break;
            }
            publish(&states[tile], PREFIX, sum_before + total);
            prefix_of_tile = sum_before;
        }
    }
    __syncthreads();

    int running = prefix_of_tile + before;
    for (int k = 0; k < ITEMS; k++) {
        running += items[k];
        if (base + k < n) out[base + k] = running;
    }
}
