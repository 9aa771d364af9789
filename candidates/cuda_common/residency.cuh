// How many blocks should be resident on a multiprocessor, for __launch_bounds__.
#pragma once

// A thread's registers hold its sums, two sets of fragments, the words of the next tiles on their way, and addresses:
// 128 of them do for 64 sums and 8 words, 168 with more words, 255 for more sums. Left to itself the compiler takes a
// few more than 128, and then one block of 256 threads fits where two could be.
constexpr int resident_blocks(int BM, int BN, int BK, int threads)
{
    const int sums = BM * BN / threads, words = (BM + BN) * BK / threads;
    const int registers = sums > 64 ? 255 : words > 8 && threads < 256 ? 168 : 128;
    const int blocks = 65536 / registers / threads;
    return blocks < 1 ? 1 : blocks;
}
