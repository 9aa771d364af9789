// Races in global memory, between blocks and within one; then what looks like them and is in order.

// Non-maximum suppression as it is often published: a flag that other blocks clear is read without any order.
extern "C" __global__ void nms_bad(const float* score, const float* at, bool* kept, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n || !kept[i]) return;  // OTHER
    for (int j = 0; j < n; ++j)
        if (score[j] < score[i] && fabsf(at[i] - at[j]) < 0.5f) kept[j] = false;  // HERE
}
// Each thread decides on its own flag, from what no thread changes.
extern "C" __global__ void nms_good(const float* score, const float* at, bool* kept, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    bool best = true;
    for (int j = 0; j < n; ++j) best = best && !(score[j] > score[i] && fabsf(at[i] - at[j]) < 0.5f);
    kept[i] = best;
}

// In place, and a neighbour belongs to another block.
extern "C" __global__ void neighbour_bad(float* x, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + 1 < n) x[i] += 2.0f * x[i + 1];  // HERE
}
extern "C" __global__ void neighbour_good(float* x, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += 2.0f * x[i];
}

// A sum that all blocks add to.
extern "C" __global__ void sum_bad(float* x, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) x[n] += x[i];  // HERE
}
extern "C" __global__ void sum_good(float* x, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) atomicAdd(&x[n], x[i]);
}

// One block clears what others count in.
extern "C" __global__ void clear_bad(int* count, int n) {
    if (blockIdx.x == 0 && threadIdx.x == 0) count[n] = 0;  // OTHER
    atomicAdd(&count[n], 1);                                 // HERE
}
extern "C" __global__ void clear_good(int* count, int n) {
    if (atomicAdd(&count[n], 1) == (int)(gridDim.x * blockDim.x) - 1) count[n] = 0;
}

// Two warps of one block, without and with a barrier.
extern "C" __global__ void warps_bad(float* x, int n) {
    x[threadIdx.x] = threadIdx.x + n;             // OTHER
    x[threadIdx.x + 64] = x[63 - threadIdx.x];  // HERE
}
extern "C" __global__ void warps_good(float* x, int n) {
    x[threadIdx.x] = threadIdx.x + n;
    __syncthreads();
    x[threadIdx.x + 64] = x[63 - threadIdx.x];
}

// The last block adds up what all have left. Without a fence it may come too early.
extern "C" __global__ void last_block_bad(float* x, unsigned* finished) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        x[blockIdx.x] = blockIdx.x + 2.0f;  // OTHER
        last = atomicAdd(finished, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x < gridDim.x) x[64 + threadIdx.x] = x[threadIdx.x];  // HERE
}
extern "C" __global__ void last_block_good(float* x, unsigned* finished) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        x[blockIdx.x] = blockIdx.x + 2.0f;
        __threadfence();
        last = atomicAdd(finished, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x < gridDim.x) x[64 + threadIdx.x] = x[threadIdx.x];
    if (last && threadIdx.x == 0) *finished = 0;
}

// Each block waits for the one before it by a volatile flag.
extern "C" __global__ void chain_bad(float* x, volatile int* flag) {
    const int b = blockIdx.x;
    if (threadIdx.x == 0) {
        while (b > 0 && flag[b - 1] == 0) {
        }
        x[b] = b > 0 ? x[b - 1] + 1.0f : 1.0f;  // HERE
        flag[b] = 1;
    }
}
extern "C" __global__ void chain_good(float* x, volatile int* flag) {
    const int b = blockIdx.x;
    if (threadIdx.x == 0) {
        while (b > 0 && flag[b - 1] == 0) {
        }
        __threadfence();
        x[b] = b > 0 ? x[b - 1] + 1.0f : 1.0f;
        __threadfence();
        flag[b] = 1;
    }
}

// Neighbouring bytes are no common word; many blocks that store the same change nothing.
extern "C" __global__ void bytes_good(unsigned char* x, int* found, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] + 1;
    if (i < n && x[i] == 2) *found = 1;
}

// Every block stores what is there already, and reads what others store: in either direction.
extern "C" __global__ void agree_good(int* x, int n, int backwards) {
    const int part = backwards ? gridDim.x - 1 - blockIdx.x : blockIdx.x, i = part * blockDim.x + threadIdx.x;
    x[i] = x[(i + 32) % n];
}
