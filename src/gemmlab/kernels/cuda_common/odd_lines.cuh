// Rows and columns of a product that are computed apart, by multiply-adds in float32: one line of A or B with all lines
// of the other operand. Warps of the producer do it while others multiply tiles, and all warps when their tiles are done.
//
// A warp takes ODD_UNIT lines of the other operand. A lane has a patch of four of them by four steps of k:
//
//     lane                0        1        2        3                31         ODD_UNIT = 8
//     steps of k          0 .. 3   0 .. 3   4 .. 7   4 .. 7    ...    60 .. 63   then 64 more
//     lines               0 .. 3   4 .. 7   0 .. 3   4 .. 7           4 .. 7
//
// So the order of a sum depends on K alone. Partial sums may overflow although the sum does not, and two of them may do
// so with opposite signs. So a result that is not finite is told by its terms:
//
//     some operand is NaN, or 0 x infinity, or infinities of both signs     NaN
//     else, an infinity                                                     that infinity
//     else                                                                  the same sum of scaled operands, scaled back
#pragma once

#include "epilogue.cuh"
#include "turns.cuh"

constexpr int ODD_UNIT = 8;                           // lines: four bytes each make a sector
constexpr int ODD_QUADS = ODD_UNIT / 4;               // patches side by side
constexpr int ODD_STEPS = 4 * 32 / ODD_QUADS;         // of k, that a warp reads at a time
constexpr float ODD_DOWN = 0x1p-80f, ODD_UP = 0x1p80f;  // no sum of 2^31 products of floats scaled down overflows

// The elements of a line: element k lies at first[k * step].
struct LineView {
    const float* first;
    int step;

    __device__ __forceinline__ float operator[](int k) const { return first[k * static_cast<Offset>(step)]; }
};

__device__ __forceinline__ bool is_finite(float x) { return fabsf(x) < __int_as_float(0x7f800000); }

// Terms with an operand that is not finite, by their value.
enum OddTerms : unsigned { NAN_TERM = 1, PLUS_TERM = 2, MINUS_TERM = 4, ANY_TERM = 7 };

__device__ __forceinline__ unsigned odd_term(float x, float y)
{
    if (is_finite(x) && is_finite(y)) return 0;
    const float product = x * y;
    return product > 0.0f ? PLUS_TERM : product < 0.0f ? MINUS_TERM : NAN_TERM;
}

// Adds this lane's products of `line` and four lines of X, of which `lines` exist, all scaled, to `sums`. `terms` gets a byte of
// OddTerms for each line. Element k of line i lies at X[i * ld + k], or at X[k * ld + i] with ACROSS.
template <bool ACROSS>
__device__ __forceinline__ void add_odd_products(
    LineView line, const float* X, int ld, int lines, int depth, float scale, float (&sums)[4], unsigned& terms)
{
    const bool fours = rows_are_aligned(X, ld) && lines >= 4;
    const bool own_fours = line.step == 1 && reinterpret_cast<unsigned long long>(line.first) % 16 == 0;
    const int first = threadIdx.x % 32 / ODD_QUADS * 4;
    const Offset step = ACROSS ? ld : 1;  // along k
    line.first += first * static_cast<Offset>(line.step);
    X += first * step;
    const auto at = [&](int i, int j) { return X + (ACROSS ? j : i) * static_cast<Offset>(ld) + (ACROSS ? i : j); };
#pragma unroll 1
    for (int left = depth - first; left > 0; left -= ODD_STEPS) {
        float4 other[4];  // four lines at one k with ACROSS, else four k of one line
        float own[4];
        if (fours && left >= 4) {
#pragma unroll
            for (int i = 0; i < 4; ++i) other[i] = *reinterpret_cast<const float4*>(X + i * static_cast<Offset>(ld));
            if (own_fours) {
                const float4 four = *reinterpret_cast<const float4*>(line.first);
                own[0] = four.x, own[1] = four.y, own[2] = four.z, own[3] = four.w;
            } else {
#pragma unroll
                for (int j = 0; j < 4; ++j) own[j] = line[j];
            }
        } else {
            // Zeros behind the end of both lines add nothing; those of lines that do not exist are not stored.
            const auto element = [&](int i, int j) { return i < lines && j < left ? *at(i, j) : 0.0f; };
#pragma unroll
            for (int i = 0; i < 4; ++i)
                other[i] = ACROSS
                    ? make_float4(element(0, i), element(1, i), element(2, i), element(3, i))
                    : make_float4(element(i, 0), element(i, 1), element(i, 2), element(i, 3));
#pragma unroll
            for (int j = 0; j < 4; ++j) own[j] = j < left ? line[j] : 0.0f;
        }
        if (scale != 1.0f) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                own[i] *= scale;
                other[i] = make_float4(other[i].x * scale, other[i].y * scale, other[i].z * scale, other[i].w * scale);
            }
        }
        float size = 0.0f;  // not finite if some sum is not
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            float sum = 0.0f;
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float4 four = other[ACROSS ? j : i];
                const int part = ACROSS ? i : j;
                sum += own[j] * (part == 0 ? four.x : part == 1 ? four.y : part == 2 ? four.z : four.w);
            }
            sums[i] += sum;
            size += fabsf(sum);
        }
        if (!is_finite(size))
#pragma unroll 1
            for (int i = 0; i < min(lines, 4); ++i)
#pragma unroll 1
                for (int j = 0; j < min(left, 4); ++j) terms |= odd_term(line[j], *at(i, j)) << 8 * i;
        line.first += ODD_STEPS * static_cast<Offset>(line.step);
        X += ODD_STEPS * step;
    }
}

// The dot product of `line` and one of ODD_UNIT lines of X, of which `lines` exist: lane l gets that of line
// odd_line_of(l). All lanes of a warp come here.
__device__ __forceinline__ int odd_line_of(int lane) { return lane % ODD_QUADS * 4 + lane / ODD_QUADS % 4; }

template <bool ACROSS>
__device__ __forceinline__ float odd_sum(LineView line, const float* X, int ld, int lines, int depth)
{
    const int lane = threadIdx.x % 32, first = lane % ODD_QUADS * 4, mine = lane / ODD_QUADS % 4;
    X += ACROSS ? first : first * static_cast<Offset>(ld);
    float sum = 0.0f, scale = 1.0f;
    unsigned terms;
#pragma unroll 1
    for (;;) {
        float sums[4] = {};
        terms = 0;
        add_odd_products<ACROSS>(line, X, ld, lines - first, depth, scale, sums, terms);
#pragma unroll
        for (int apart = ODD_QUADS; apart < 32; apart *= 2) {
#pragma unroll
            for (int i = 0; i < 4; ++i) sums[i] += __shfl_xor_sync(0xffffffff, sums[i], apart);
            terms |= __shfl_xor_sync(0xffffffff, terms, apart);
        }
        terms = terms >> 8 * mine & ANY_TERM;
        const float found = mine == 0 ? sums[0] : mine == 1 ? sums[1] : mine == 2 ? sums[2] : sums[3];
        if (scale != 1.0f) {
            if (!is_finite(sum)) sum = found * ODD_UP * ODD_UP;
            break;
        }
        sum = found;
        const bool open = first + mine < lines && !is_finite(sum) && !terms;
        if (!__any_sync(0xffffffff, open)) break;
        scale = ODD_DOWN;
    }
    const float infinity = __int_as_float(0x7f800000);
    return !terms ? sum : terms == PLUS_TERM ? infinity : terms == MINUS_TERM ? -infinity : __int_as_float(0x7fffffff);
}

// Odd lines of a product, in units that warps take in turn, until none is left. An element whose row and column are both
// odd belongs to the row. Units of the same lines of the other operand follow each other, so that these are in a cache.
template <bool TRANS_A, bool TRANS_B, class Product, class Slice>
__device__ __forceinline__ void store_odd_lines(const Product& parts, const Slice& it, Turns turns)
{
    const unsigned of_a = parts.a.verdicts.odd_lines(), of_b = parts.b.verdicts.odd_lines();
    const unsigned row_units = of_a * ceil_div(it.N, ODD_UNIT), units = row_units + of_b * ceil_div(it.M, ODD_UNIT);
    const int lane = threadIdx.x % 32;
    const Offset ld_a = it.lda, ld_b = it.ldb, ld_c = it.ldc;
#pragma unroll 1
    for (;;) {
        const unsigned taken = lane == 0 ? turns.take(Turns::LINES) : 0;
        const unsigned unit = __shfl_sync(0xffffffff, taken, 0);
        if (unit >= units) return;
        if (unit < row_units) {
            const Offset row = parts.a.verdicts.odd_line(unit % of_a);
            const int col = static_cast<int>(unit / of_a) * ODD_UNIT, cols = it.N - col, own = odd_line_of(lane);
            const float sum = odd_sum<!TRANS_B>(
                TRANS_A ? LineView{it.A + row, it.lda} : LineView{it.A + row * ld_a, 1},
                it.B + (TRANS_B ? col * ld_b : col), it.ldb, cols, it.depth);
            if (lane < ODD_UNIT && own < cols) store_element(it.C + row * ld_c + col + own, it.alpha, sum, it.beta);
        } else {
            const Offset col = parts.b.verdicts.odd_line((unit - row_units) % of_b);
            const int row = static_cast<int>((unit - row_units) / of_b) * ODD_UNIT, rows = it.M - row;
            const int own = odd_line_of(lane);
            const float sum = odd_sum<TRANS_A>(
                TRANS_B ? LineView{it.B + col * ld_b, 1} : LineView{it.B + col, it.ldb},
                it.A + (TRANS_A ? row : row * ld_a), it.lda, rows, it.depth);
            if (lane < ODD_UNIT && own < rows && !parts.a.verdicts.is_odd(row + own))
                store_element(it.C + (row + own) * ld_c + col, it.alpha, sum, it.beta);
        }
    }
}
