// Kernels that wait for what never comes.
extern "C" __global__ void flag_bad(volatile int* flag, int* out) {
    if (threadIdx.x == 0)
        while (*flag == 0) {  // HERE
        }
    out[threadIdx.x] = 1;
}
extern "C" __global__ void flag_good(volatile int* flag, int* out) {
    if (threadIdx.x == 32) *flag = 1;
    if (threadIdx.x == 0)
        while (*flag == 0) {
        }
    out[threadIdx.x] = 1;
}

__device__ __forceinline__ void take(int* lock) {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
}
__device__ __forceinline__ void leave(int* lock) {
    __threadfence();
    atomicExch(lock, 0);
}
// Two locks taken in opposite orders, and in one order. The barrier makes sure that each side holds its first.
extern "C" __global__ void locks_bad(int* locks, int* out) {
    const int side = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) take(&locks[side]);
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        while (atomicCAS(&locks[1 - side], 0, 1) != 0) {  // HERE
        }
        *out += 1;
        leave(&locks[1 - side]);
        leave(&locks[side]);
    }
}
extern "C" __global__ void locks_good(int* locks, int* out) {
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        take(&locks[0]);
        take(&locks[1]);
        *(volatile int*)out += 1;
        leave(&locks[1]);
        leave(&locks[0]);
    }
}

// A named barrier that expects more threads than ever come.
extern "C" __global__ void named_barrier_bad(int* out) {
    asm volatile("bar.sync 1, 96;" ::: "memory");  // HERE
    out[threadIdx.x] = 1;
}
extern "C" __global__ void named_barrier_good(int* out) {
    asm volatile("bar.sync 1, 64;" ::: "memory");
    out[threadIdx.x] = 1;
}
