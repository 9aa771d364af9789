// Loops that never end, one a line, and ones that look like them and do.

// A counter that nobody moves, while the sum, shared memory and barriers go on and on.
extern "C" __global__ void counter_bad(const float* x, float* out, int n) {
    __shared__ float tile[64];
    float sum = 0;
    for (int k = 0; k < n;) { tile[threadIdx.x] = sum; __syncthreads(); sum += tile[63 - threadIdx.x] + x[k]; __syncthreads(); }  // HERE
    out[threadIdx.x] = sum;
}
extern "C" __global__ void counter_good(const float* x, float* out, int n) {
    __shared__ float tile[64];
    float sum = 0;
    for (int k = 0; k < n; ++k) { tile[threadIdx.x] = sum; __syncthreads(); sum += tile[63 - threadIdx.x] + x[k]; __syncthreads(); }
    out[threadIdx.x] = sum;
}

// Numbers that go round, and ones that come back to where they were many times before they end.
extern "C" __global__ void circle_bad(float* out, unsigned n) {
    unsigned state = threadIdx.x | 1, steps = 0;
    while (state != n) { state = state * 5 & 1023; out[threadIdx.x] = ++steps; }  // HERE
}
extern "C" __global__ void circle_good(float* out, unsigned n) {
    const unsigned start = threadIdx.x | 1;
    unsigned state = start, rounds = 0;
    while (rounds != n) { state = state * 5 & 1023; rounds += state == start; out[threadIdx.x] = state; }
}

// One lane never leaves; the others wait for it. And a lane that takes long.
extern "C" __global__ void lane_bad(volatile int* out, int n) {
    int k = 0;
    while (k < n) { k += threadIdx.x != 40; out[threadIdx.x] = k; }  // HERE
    __syncthreads();
    out[threadIdx.x] += n;
}
extern "C" __global__ void lane_good(volatile int* out, int n) {
    int k = 0;
    while (k < n) { k += threadIdx.x != 40 ? 64 : 1; out[threadIdx.x] = k; }
    __syncthreads();
    out[threadIdx.x] += n;
}

// The end is decided in memory: nobody says that it is endless.
extern "C" __global__ void countdown(volatile int* left) {
    while (left[0] > 0) left[0] -= 1;
}
