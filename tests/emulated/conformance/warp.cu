// Lanes of a warp together: shuffles, votes, matches, reductions, with whole and partial masks.
#include "elementwise.cuh"

// The second operand is the lane or offset, the third the clamp with the segment mask in bits 8 to 12.
#define SHFL(mode) \
    KERNEL3(shfl_##mode, u64, u32, lane, lane, u32 v; u32 ok; \
            asm volatile("{.reg .pred p; shfl.sync." #mode ".b32 %0|p, %2, %3, %4, 0xffffffff; selp.u32 %1, 1, 0, p;}" \
                         : "=r"(v), "=r"(ok) : "r"(x), "r"(y), "r"(z & 0x1f1f)); \
            r = v | (u64)ok << 32)
SHFL(idx)
SHFL(up)
SHFL(down)
SHFL(bfly)
KERNEL1(shfl_up_1, u32, u32, r = __shfl_up_sync(~0u, x, 1))
KERNEL1(shfl_down_3_of_8, u32, u32, r = __shfl_down_sync(~0u, x, 3, 8))
KERNEL1(shfl_xor_16, f32, f32, r = __shfl_xor_sync(~0u, x, 16))
KERNEL1(shfl_idx_5_of_16, u32, u32, r = __shfl_sync(~0u, x, 5, 16))
KERNEL2(shfl_idx_64, u64, u64, lane, r = __shfl_sync(~0u, x, (int)y))
KERNEL2(shfl_half_mask, u32, u32, lane,
        if (threadIdx.x & 1) r = __shfl_sync(0xaaaaaaaau, x, (int)(y | 1)); else r = __shfl_xor_sync(0x55555555u, x, 2))
KERNEL1(vote_all, u32, flag, r = __all_sync(~0u, (int)x) != 0)
KERNEL1(vote_any, u32, flag, r = __any_sync(~0u, (int)x) != 0)
KERNEL1(vote_uni, u32, flag,
        asm volatile("{.reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.uni.pred p, p, 0xffffffff;"
                     " selp.u32 %0, 1, 0, p;}" : "=r"(r) : "r"(x)))
KERNEL1(vote_ballot, u32, flag, r = __ballot_sync(~0u, (int)x))
KERNEL1(vote_all_negated, u32, flag, r = __all_sync(~0u, !x))
KERNEL1(vote_ballot_diverged, u32, flag, r = 0; if ((threadIdx.x & 31) % 3 == 0) r = __ballot_sync(0x49249249u, (int)x))
KERNEL1(active_mask, u32, flag, r = 7; if (x) r = __activemask())
KERNEL1(match_any_32, u32, small, r = __match_any_sync(~0u, x))
KERNEL1(match_any_64, u32, small, r = __match_any_sync(~0u, (u64)x << 32 | (x & 1)))
KERNEL1(match_all_32, u32, small, int p; r = __match_all_sync(~0u, x / 9, &p); r += (u32)p * 3)
KERNEL1(match_all_64, u32, small, int p; r = __match_all_sync(~0u, (u64)(x / 9) << 33, &p); r += (u32)p * 3)
KERNEL1(match_any_diverged, u32, small, r = 1; if ((threadIdx.x & 31) % 5 != 0) r = __match_any_sync(~0x42108421u, x))
KERNEL1(redux_add_u32, u32, u32, r = __reduce_add_sync(~0u, x))
KERNEL1(redux_add_s32, s32, s32, r = __reduce_add_sync(~0u, x))
KERNEL1(redux_min_u32, u32, u32, r = __reduce_min_sync(~0u, x))
KERNEL1(redux_min_s32, s32, s32, r = __reduce_min_sync(~0u, x))
KERNEL1(redux_max_u32, u32, u32, r = __reduce_max_sync(~0u, x))
KERNEL1(redux_max_s32, s32, s32, r = __reduce_max_sync(~0u, x))
KERNEL1(redux_and, u32, u32, r = __reduce_and_sync(~0u, x))
KERNEL1(redux_or, u32, u32, r = __reduce_or_sync(~0u, x))
KERNEL1(redux_xor, u32, u32, r = __reduce_xor_sync(~0u, x))
KERNEL1(redux_add_diverged, u32, u32, r = 0; if ((threadIdx.x & 31) % 3 == 1) r = __reduce_add_sync(0x92492492u, x))
#if __CUDA_ARCH__ >= 900
KERNEL1(elect_leader, u32, u32, u32 who; u32 me;
        asm volatile("{.reg .pred p; elect.sync %0|p, 0xffffffff; selp.u32 %1, 1, 0, p;}" : "=r"(who), "=r"(me));
        r = who + me * 100 + (x & 0xff000000))
#endif
KERNEL1(elect_like_leader, u32, small,
        const u32 m = __match_any_sync(~0u, x); r = (u32)(__ffs((int)m) - 1) == (threadIdx.x & 31u))
