// Bytes that two threads tell one mbarrier to expect: each kernel with its bug and without. `// NAME` marks the lines
// reported.
#include "hazard_pairs.cuh"

// Together they are more than an mbarrier counts.
template <bool GOOD> __device__ void overflow_of_two(float* out) {
    begin(1);
    if (threadIdx.x == 0) expect(cell(0), 1000000);  // NEARLY_ALL
    __syncthreads();
    if (threadIdx.x == 32) expect(cell(0), GOOD ? 48575 : 48576);  // TOO_MUCH
    __syncthreads();
    if (threadIdx.x == 64) {
        complete(cell(0), 1000000);
        complete(cell(0), GOOD ? 48575 : 48576);
        arrive(cell(0));
    }
    __syncthreads();
    out[threadIdx.x] = 1;
}

PAIR(overflow_of_two, (float* out), (out))
