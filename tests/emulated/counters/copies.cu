// One asynchronous copy of a warp: lane i brings BYTES from word `from[i]` of global memory to word `to[i]` of shared.
#define WORDS 4096

// Past L1 (BYPASS, 16 bytes only) or through it; GUARDED under a predicate, which holds for all lanes.
template <int BYTES, int BYPASS, int GUARDED>
__global__ void copy(const int* from, const int* to, const float* in, float* out)
{
    __shared__ __align__(128) float shared[WORDS];
#pragma unroll 1
    for (int k = threadIdx.x; k < WORDS; k += 32) shared[k] = 0;
    __syncthreads();
    const float* source = in + from[threadIdx.x];
    const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(shared + to[threadIdx.x]));
    if (BYPASS && GUARDED)
        asm volatile("{ .reg .pred p; setp.ge.s32 p, %2, 0; @p cp.async.cg.shared.global [%0], [%1], 16; }"
                     ::"r"(target), "l"(source), "r"(from[threadIdx.x]) : "memory");
    else if (BYPASS)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(target), "l"(source) : "memory");
    else if (GUARDED)
        asm volatile("{ .reg .pred p; setp.ge.s32 p, %2, 0; @p cp.async.ca.shared.global [%0], [%1], %3; }"
                     ::"r"(target), "l"(source), "r"(from[threadIdx.x]), "n"(BYTES) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(target), "l"(source), "n"(BYTES) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    out[threadIdx.x] = shared[to[threadIdx.x]];
}
