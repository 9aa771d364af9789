// Control flow: divergence and its joins, loops of different lengths, switches, calls, barriers of all kinds.
#include "elementwise.cuh"

KERNEL1(diverge, u32, u32, r = x;
        if (x & 1) { r *= 3; if (x & 2) r = r / ((x >> 4) | 1); else r ^= x << 3; }
        else { r += 7; if (x & 8) r -= x >> 2; })
KERNEL1(collatz, u32, u32, u32 v = (x & 0xffff) + 1; r = 0;
        while (v != 1 && r < 300) { v = v & 1 ? 3 * v + 1 : v / 2; r++; })
KERNEL2(nested_loops, u32, u32, u32, r = 0;
        for (u32 p = 0; p < (x & 7); p++)
            for (u32 q = 0; q < (y & 15); q++) { if (((p * q) & 3) == 3) break;
                                                 if ((q & x) == 5) continue; r += p * q + 1; })
KERNEL1(early_exit, u32, u32, r = 1; out[i] = 9; if ((x & 3) == 2) return; r = x * 5)
KERNEL2(dense_switch, u32, u32, u32, switch (x % 13) {
    case 0: r = y + 1; break; case 1: r = y * 77; break; case 2: r = y / 3; break; case 3: r = y ^ x; break;
    case 4: r = __popc(y); break;
    case 5: r = y << 3; break; case 6: r = y % 11; break; case 7: r = ~y; break;
    case 8: r = a[y % (u32)n]; break; case 9: r = __brev(y); break;
    case 10: r = (u32)sqrtf((f32)y); break; case 11: r = y * y * y; break; default: r = 5; })
// A machine of one register.
ARGS(register_machine, "u32 u32 =u32*2 n")
extern "C" __global__ void register_machine(const u32* a, const u32* b, u32* out, int n) {
    const int i = ELEMENT;
    if (i >= n) return;
    u32 v = b[i];
    u32 code = a[i];
    for (int step = 0; step < 6; step++) {
        switch (code & 15) {
            case 0: v += 77; out[n + i] = v; break;
            case 1: v *= 5; out[n + i] += 1; break;
            case 2: v = v / 7 + out[n + i]; break;
            case 3: v ^= v << 13; out[n + i] ^= v; break;
            case 4: v = __popc(v) + 3; break;
            case 5: v = a[v % (u32)n]; break;
            case 6: v = b[v % (u32)n] * 3; break;
            case 7: v -= out[n + i]; break;
            case 8: v = __brev(v); break;
            case 9: v = v % 1000; out[n + i] = 4; break;
            case 10: v = (u32)__float_as_int((f32)v); break;
            case 11: v = __clz((int)v) + v * v; break;
            case 12: v |= 1; break;
            case 13: v = ~v; out[n + i] += v; break;
            case 14: v = v >> (code & 7); break;
            default: out[i] = v; return;
        }
        code >>= 4;
    }
    out[i] = v;
}
// A table of jumps.
KERNEL2(jump_table, u32, u32, u32,
        asm volatile("{.reg .u32 k, v; and.b32 k, %1, 3; mov.u32 v, %2;\n"
                     "targets: .branchtargets case0, case1, case2, case3;\n"
                     "brx.idx k, targets;\n"
                     "case0: add.u32 v, v, 17; bra done;\n"
                     "case1: mul.lo.u32 v, v, 5; bra case3;\n"
                     "case2: shr.u32 v, v, 3; bra done;\n"
                     "case3: xor.b32 v, v, 0x5555;\n"
                     "done: mov.u32 %0, v;}" : "=r"(r) : "r"(x), "r"(y)))
KERNEL1(trap_not_taken, u32, u32, if (n < 0) asm volatile("trap;"); r = x + 1)
KERNEL1(breakpoint_not_taken, u32, u32, if (n < 0) asm volatile("brkpt;"); r = x + 2)
__device__ __noinline__ u32 mix(u32 v, u32 w) {
    for (int k = 0; k < (int)(w & 3); k++) v = v * 1664525u + 1013904223u;
    return v;
}
__device__ __noinline__ u64 outer(u32 v, u32 w) { return (u64)mix(v, w) << 32 | mix(w, v + 1); }
KERNEL2(calls, u64, u32, u32, r = outer(x, y) + mix(y, x))
KERNEL2(call_in_divergence, u32, u32, u32, r = y; if (x & 1) r = mix(x, y); if (x & 2) r ^= mix(r, x))
typedef u32 (*Function)(u32, u32);
__device__ __noinline__ u32 other(u32 v, u32 w) { return v - w * 5; }
__device__ Function functions[2] = {mix, other};
KERNEL2(call_by_pointer, u32, u32, u32, r = functions[x & 1](y, x))
__device__ u32 ackermann_like(u32 m, u32 v) {
    return m == 0 ? v + 1 : v == 0 ? ackermann_like(m - 1, 1) : ackermann_like(m - 1, ackermann_like(m, v - 1));
}
KERNEL1(recursion, u32, u32, r = ackermann_like(x & 1, (x >> 1) & 3))

ARGS(barrier_full, "u32 =u32 n")
extern "C" __global__ void barrier_full(const u32* a, u32* out, int n) {
    __shared__ u32 cells[256];
    for (int round = 0; round < 3; round++) {
        cells[threadIdx.x] = a[(ELEMENT + round) % n];
        __syncthreads();
        out[ELEMENT] += cells[blockDim.x - 1 - threadIdx.x] * (round + 1);
        __syncthreads();
    }
}
ARGS(barrier_count, "u32 =u32 n")
SHAPE(barrier_count, "threads=128")
extern "C" __global__ void barrier_count(const u32* a, u32* out, int n) {
    __shared__ u32 cells[256];
    cells[threadIdx.x] = a[ELEMENT];
    const u32 half = threadIdx.x / 64;
    if (half == 0) asm volatile("bar.sync 1, 64;" ::: "memory"); else asm volatile("bar.sync 2, 64;" ::: "memory");
    out[ELEMENT] = cells[threadIdx.x ^ 63];
}
ARGS(barrier_registers, "u32 =u32 n")
extern "C" __global__ void barrier_registers(const u32* a, u32* out, int n) {
    __shared__ u32 cells[256];
    cells[threadIdx.x] = a[ELEMENT];
    const u32 name = threadIdx.x / 64 + 3;
    const u32 count = 64;
    asm volatile("bar.sync %0, %1;" ::"r"(name), "r"(count) : "memory");
    out[ELEMENT] = cells[threadIdx.x ^ 63];
}
ARGS(barrier_arrive, "u32 =u32 n")
SHAPE(barrier_arrive, "threads=128")
extern "C" __global__ void barrier_arrive(const u32* a, u32* out, int n) {
    __shared__ u32 cells[128];
    if (threadIdx.x < 64) {
        cells[threadIdx.x] = a[ELEMENT] + 1;
        asm volatile("bar.arrive 1, 128;" ::: "memory");
    } else {
        asm volatile("bar.sync 1, 128;" ::: "memory");
        out[ELEMENT] = cells[127 - threadIdx.x];
    }
}
ARGS(barrier_red, "flag =u32 n")
extern "C" __global__ void barrier_red(const flag* a, u32* out, int n) {
    const int mine = (int)a[ELEMENT];
    out[ELEMENT] = (u32)__syncthreads_count(mine) + ((u32)__syncthreads_or(mine) != 0) * 1000 +
                   ((u32)__syncthreads_and(mine) != 0) * 2000;
}
ARGS(warp_sync_partial, "u32 =u32 n")
extern "C" __global__ void warp_sync_partial(const u32* a, u32* out, int n) {
    __shared__ volatile u32 cells[256];
    cells[threadIdx.x] = a[ELEMENT];
    if (threadIdx.x & 16) { __syncwarp(0xffff0000u); out[ELEMENT] = cells[threadIdx.x ^ 15]; }
    else { __syncwarp(0x0000ffffu); out[ELEMENT] = cells[threadIdx.x ^ 7] + 1; }
}
KERNEL1(sleeps, u32, u32, __nanosleep(20); __nanosleep(x & 63); r = x + 1)
KERNEL1(spin_for_lane_zero, u32, u32,
        { __shared__ volatile u32 gate; if (threadIdx.x == 0) gate = 0; __syncthreads();
          if (threadIdx.x == 0) gate = x | 1; else while (gate == 0) {} r = gate; })
