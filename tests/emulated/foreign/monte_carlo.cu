// pi by throwing darts: a xorshift generator a thread in 64-bit integers, doubles, and one atomic a warp.
__device__ unsigned long long next(unsigned long long& state) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 2685821657736338717ull;
}

extern "C" __global__ void darts(unsigned long long seed, int throws, unsigned long long* hits) {
    unsigned long long state = seed + (blockIdx.x * blockDim.x + threadIdx.x + 1) * 0x9e3779b97f4a7c15ull;
    unsigned int inside = 0;
    for (int t = 0; t < throws; t++) {
        double x = (next(state) >> 11) * (1.0 / 9007199254740992.0);
        double y = (next(state) >> 11) * (1.0 / 9007199254740992.0);
        inside += x * x + y * y < 1.0;
    }
    inside = __reduce_add_sync(0xffffffffu, inside);
    if (threadIdx.x % 32 == 0) atomicAdd(hits, (unsigned long long)inside);
}
