// Where the lanes of a warp lie on a tile of C, when a thread's TM x TN results are pieces of 4 x 4 that lie apart.
//
// With 8 x 8 neighbours a thread, the 8 lanes that one LDS.128 serves at a time read from every 8th word: two lanes a
// bank. So the thread tile is taken apart into quarters of 4 x 4. The lanes' first quarters lie side by side, then
// their second ones follow, and a row of lanes reads neighbouring 16-byte pieces: 8 of them are the 32 banks, once.
//
//       columns of the warp's tile: LANES_N = 4, TN = 8
//          0   4   8   12  16  20  24  28
//       0  [0] [1] [2] [3] 0   1   2   3        [x]  first quarter of lane x (as the scan numbers them)
//       4  [4] [5] [6] [7] 4   5   6   7         x   its other three: 4 * LANES_N columns to the right,
//       :                                            4 * LANES_M rows below, and both
//      28  [28][29][30][31]28  29  30  31
//      32   0   1   2   3  0   1   2   3
//       :
//
// Two neighbouring groups of 8 lanes are served at once if all lanes i and i ^ 1 read the same address, or all lanes i
// and i ^ 2. LANE_MAP decides whether that is so for the rows (pieces of As) and for the columns (pieces of Bs):
//
//       SCAN, 8 x 4 lanes           Z_ORDER, 8 x 4 lanes
//        0  1  2  3                  0  1 16 17      rows:    lanes i and i ^ 1 share one in both orders
//        4  5  6  7                  2  3 18 19      columns: lanes i and i ^ 2 share one in z-order; in a scan it
//        8  9 10 11                  4  5 20 21               is i and i ^ 4, and such groups are not served at once
//        :                           :
//       28 29 30 31                 14 15 30 31      wavefronts of two LDS.128: SCAN 2 + 4, Z_ORDER 2 + 2
#pragma once

constexpr int SCAN = 0;
constexpr int Z_ORDER = 1;

// Of a lane's first quarter, in floats from the corner of its warp's tile.
struct LanePlace {
    int row;  // [0, 4 * LANES_M) in steps of 4
    int col;  // [0, 4 * LANES_N) in steps of 4
};

// LANES_M x LANES_N lanes, 8 x 4 or 4 x 8. The z-order of 4 x 8 is that of 8 x 4 turned.
template <int LANE_MAP, int LANES_M, int LANES_N>
__device__ __forceinline__ LanePlace lane_place()
{
    static_assert((LANES_M == 8 && LANES_N == 4) || (LANES_M == 4 && LANES_N == 8), "a warp is 8 x 4 or 4 x 8 lanes");
    static_assert(LANE_MAP == SCAN || LANE_MAP == Z_ORDER, "no such order");
    const int lane = threadIdx.x % 32;
    if (LANE_MAP == SCAN) return {lane / LANES_N * 4, lane % LANES_N * 4};
    const int along8 = lane / 2 % 8 * 4;
    const int along4 = (lane / 16 * 2 + lane % 2) * 4;
    return LANES_M == 8 ? LanePlace{along8, along4} : LanePlace{along4, along8};
}
