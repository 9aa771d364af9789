// Blocks that wait for each other. A GPU starts blocks in order and need not have a later one beside an earlier one.
extern "C" __global__ void later_block_bad(volatile int* flags, int* out) {
    if (threadIdx.x == 0) {
        if (blockIdx.x + 1 < gridDim.x)
            while (flags[blockIdx.x + 1] == 0) {  // HERE
            }
        out[blockIdx.x] = 1;
        __threadfence();
        flags[blockIdx.x] = 1;
    }
}
extern "C" __global__ void earlier_block_good(volatile int* flags, int* out) {
    if (threadIdx.x == 0) {
        if (blockIdx.x > 0)
            while (flags[blockIdx.x - 1] == 0) {
            }
        out[blockIdx.x] = 1;
        __threadfence();
        flags[blockIdx.x] = 1;
    }
}

// A barrier of the whole grid made by hand: every block waits for all others.
extern "C" __global__ void grid_barrier_bad(int* arrived, int* out) {
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1);
        while (atomicAdd(arrived, 0) < (int)gridDim.x) {  // HERE
        }
    }
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}
extern "C" __global__ void one_block_good(int* arrived, int* out) {
    if (threadIdx.x == 0) atomicAdd(arrived, 1);
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = *(volatile int*)arrived > 0;
}
