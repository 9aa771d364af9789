// Lanes of one warp in shared memory with no warp-level synchronisation between: what lockstep once hid.
extern "C" __global__ void last_warp_bad(const float* in, float* out) {
    __shared__ volatile float s[64];
    s[threadIdx.x] = in[threadIdx.x];
    s[threadIdx.x + 32] = in[threadIdx.x + 32];
    __syncthreads();
    if (threadIdx.x < 32) {
        s[threadIdx.x] = s[threadIdx.x] + s[threadIdx.x + 32];
        s[threadIdx.x] = s[threadIdx.x] + s[threadIdx.x + 16];  // HERE
        s[threadIdx.x] = s[threadIdx.x] + s[threadIdx.x + 8];
        s[threadIdx.x] = s[threadIdx.x] + s[threadIdx.x + 4];
        s[threadIdx.x] = s[threadIdx.x] + s[threadIdx.x + 2];
        s[threadIdx.x] = s[threadIdx.x] + s[threadIdx.x + 1];
    }
    if (threadIdx.x == 0) out[0] = s[0];
}
extern "C" __global__ void last_warp_good(const float* in, float* out) {
    __shared__ float s[64];
    s[threadIdx.x] = in[threadIdx.x];
    s[threadIdx.x + 32] = in[threadIdx.x + 32];
    __syncthreads();
    for (int d = 32; d > 0; d >>= 1) {
        float v = s[threadIdx.x] + s[(threadIdx.x + d) & 63];
        __syncwarp();
        s[threadIdx.x] = v;
        __syncwarp();
    }
    if (threadIdx.x == 0) out[0] = s[0];
}

// A neighbour's value: volatile alone orders nothing.
extern "C" __global__ void neighbour_bad(const float* in, float* out) {
    __shared__ volatile float s[32];
    s[threadIdx.x] = in[threadIdx.x];               // OTHER
    out[threadIdx.x] = s[(threadIdx.x + 1) % 32];  // HERE
}
extern "C" __global__ void neighbour_good(const float* in, float* out) {
    __shared__ volatile float s[32];
    s[threadIdx.x] = in[threadIdx.x];
    __syncwarp();
    out[threadIdx.x] = s[(threadIdx.x + 1) % 32];
}

// One word that all lanes read, and one lane then writes.
extern "C" __global__ void broadcast(int* which, int* out) {
    __shared__ volatile int s[1];
    if (threadIdx.x == 0) s[0] = 7;
    __syncthreads();
    const int writer = which[0];
    out[threadIdx.x] = s[0];
    if (threadIdx.x == writer) s[0] = 8;
}

// Several lanes store different values to one word at once: which stays is not defined.
extern "C" __global__ void one_word_bad(const float* in, float* out) {
    __shared__ float s[8];
    s[threadIdx.x / 4] = in[threadIdx.x];  // HERE
    __syncwarp();
    out[threadIdx.x] = s[threadIdx.x / 4];
}
extern "C" __global__ void one_word_good(const float* in, float* out) {
    __shared__ float s[8];
    if (threadIdx.x % 4 == 0) s[threadIdx.x / 4] = in[threadIdx.x];
    __syncwarp();
    out[threadIdx.x] = s[threadIdx.x / 4];
}

// As before, of 8 bytes.
extern "C" __global__ void one_double_bad(const float* in, float* out) {
    __shared__ volatile double s[8];
    s[threadIdx.x / 4] = in[threadIdx.x];  // HERE
    __syncwarp();
    out[threadIdx.x] = s[threadIdx.x / 4];
}
extern "C" __global__ void one_double_good(const float* in, float* out) {
    __shared__ volatile double s[8];
    s[threadIdx.x / 4] = in[threadIdx.x & ~3];
    __syncwarp();
    out[threadIdx.x] = s[threadIdx.x / 4];
}

// As before, of one byte.
extern "C" __global__ void one_byte_bad(const float* in, float* out) {
    __shared__ volatile unsigned char s[8];
    s[threadIdx.x / 4] = in[threadIdx.x];  // HERE
    __syncwarp();
    out[threadIdx.x] = s[threadIdx.x / 4];
}
extern "C" __global__ void one_byte_good(const float* in, float* out) {
    __shared__ volatile unsigned char s[8];
    s[threadIdx.x / 4] = in[threadIdx.x & ~3];
    __syncwarp();
    out[threadIdx.x] = s[threadIdx.x / 4];
}
