// Room for machine code. A loop that is written anew (sass/rewriting) keeps its sums in other registers than the
// compiler, and puts them back where the compiler's code behind the loop looks for them. That takes instructions for
// which a cubin has no place, unless its source leaves some.
#pragma once

// Stands right behind the loop, for sm_90. In the loop written anew nothing is left of these instructions; as the
// compiler makes them, they count events for a profiler.
__device__ __forceinline__ void leave_room_behind_loop()
{
#if __CUDA_ARCH__ == 900
    constexpr int FOURS = 48;
#pragma unroll
    for (int i = 0; i < FOURS; ++i) asm volatile("pmevent 0;\npmevent 1;\npmevent 2;\npmevent 3;" ::: "memory");
#endif
}
