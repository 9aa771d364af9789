// An index behind the last __constant__ variable.
__constant__ float table[16] = {1.0f, 2.0f, 3.0f};

extern "C" __global__ void past_the_end_bad(float* out, int first) {
    out[threadIdx.x] = table[threadIdx.x + first];  // HERE
}
extern "C" __global__ void past_the_end_good(float* out, int first) {
    out[threadIdx.x] = table[threadIdx.x + first < 16 ? threadIdx.x + first : 15];
}

// The same index in all lanes, and one before the first variable.
extern "C" __global__ void before_the_start_bad(float* out, int first) {
    out[threadIdx.x] = table[first - 40];  // HERE
}
extern "C" __global__ void before_the_start_good(float* out, int first) {
    out[threadIdx.x] = table[first - 4];
}
