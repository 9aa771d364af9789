// Room for machine code: a loop that is written anew keeps its sums in other registers than the compiler, and puts them
// back where the compiler's code behind it looks for them (sass/rewriting). That takes instructions that the compiler
// does not have.
#pragma once

// Right behind the loop. Of these instructions nothing is left in the loop written anew; those that the compiler makes
// of them count events for a profiler, and cost one cycle each.
__device__ __forceinline__ void leave_room_behind_loop()
{
#if __CUDA_ARCH__ == 900
    constexpr int FOURS = 48;
#pragma unroll
    for (int i = 0; i < FOURS; ++i) asm volatile("pmevent 0;\npmevent 1;\npmevent 2;\npmevent 3;" ::: "memory");
#endif
}
