// What random programs use, the same for the host (C++17) and a GPU. Nothing here or in them is undefined: integers wrap,
// shifts and indices are masked, conversions stay in range, and of a NaN no bits are ever looked at.

using i8 = signed char;
using u8 = unsigned char;
using i16 = short;
using u16 = unsigned short;
using i32 = int;
using u32 = unsigned;
using i64 = long long;
using u64 = unsigned long long;
using f32 = float;
using f64 = double;

#ifdef __CUDACC__
#define DEVICE __device__
#define CALLED __device__ __noinline__
#define TABLE __device__ const
DEVICE inline f32 as_f32(u32 bits) { return __uint_as_float(bits); }
DEVICE inline u32 bits_of(f32 x) { return __float_as_uint(x); }
DEVICE inline f64 as_f64(u64 bits) { return __longlong_as_double((i64)bits); }
DEVICE inline u64 bits_of(f64 x) { return (u64)__double_as_longlong(x); }
DEVICE inline u32 ones(u32 x) { return __popc(x); }
DEVICE inline u32 ones(u64 x) { return __popcll(x); }
DEVICE inline u32 zeros(u32 x) { return __clz((i32)x); }
DEVICE inline u32 zeros(u64 x) { return __clzll((i64)x); }
DEVICE inline u32 lowest(u32 x) { return __ffs((i32)x); }
DEVICE inline u32 lowest(u64 x) { return __ffsll((i64)x); }
DEVICE inline u32 mirrored(u32 x) { return __brev(x); }
DEVICE inline u64 mirrored(u64 x) { return __brevll(x); }
DEVICE inline u32 upper(u32 a, u32 b) { return __umulhi(a, b); }
DEVICE inline i32 upper(i32 a, i32 b) { return __mulhi(a, b); }
DEVICE inline u64 upper(u64 a, u64 b) { return __umul64hi(a, b); }
DEVICE inline i64 upper(i64 a, i64 b) { return __mul64hi(a, b); }
DEVICE inline u32 funnel_left(u32 low, u32 high, u32 n) { return __funnelshift_l(low, high, n); }
DEVICE inline u32 funnel_right(u32 low, u32 high, u32 n) { return __funnelshift_rc(low, high, n); }
DEVICE inline u32 picked(u32 a, u32 b, u32 which) { return __byte_perm(a, b, which & 0x7777u); }
DEVICE inline u32 distance(u32 a, u32 b, u32 c) { return __usad(a, b, c); }
#else
#include <cmath>
#include <cstring>
#define DEVICE static
#define CALLED static __attribute__((noinline))
#define TABLE static const
DEVICE inline f32 as_f32(u32 bits) { f32 x; memcpy(&x, &bits, 4); return x; }
DEVICE inline u32 bits_of(f32 x) { u32 bits; memcpy(&bits, &x, 4); return bits; }
DEVICE inline f64 as_f64(u64 bits) { f64 x; memcpy(&x, &bits, 8); return x; }
DEVICE inline u64 bits_of(f64 x) { u64 bits; memcpy(&bits, &x, 8); return bits; }
DEVICE inline u32 ones(u32 x) { return __builtin_popcount(x); }
DEVICE inline u32 ones(u64 x) { return __builtin_popcountll(x); }
DEVICE inline u32 zeros(u32 x) { return x ? __builtin_clz(x) : 32; }
DEVICE inline u32 zeros(u64 x) { return x ? __builtin_clzll(x) : 64; }
DEVICE inline u32 lowest(u32 x) { return x ? __builtin_ctz(x) + 1 : 0; }
DEVICE inline u32 lowest(u64 x) { return x ? __builtin_ctzll(x) + 1 : 0; }
template <class T> DEVICE T mirrored_bits(T x) { T y = 0; for (u32 i = 0; i < 8 * sizeof x; ++i) y |= (x >> i & 1) << (8 * sizeof x - 1 - i); return y; }
DEVICE inline u32 mirrored(u32 x) { return mirrored_bits(x); }
DEVICE inline u64 mirrored(u64 x) { return mirrored_bits(x); }
DEVICE inline u32 upper(u32 a, u32 b) { return (u32)((u64)a * b >> 32); }
DEVICE inline i32 upper(i32 a, i32 b) { return (i32)((i64)a * b >> 32); }
DEVICE inline u64 upper(u64 a, u64 b) { return (u64)((unsigned __int128)a * b >> 64); }
DEVICE inline i64 upper(i64 a, i64 b) { return (i64)((__int128)a * b >> 64); }
DEVICE inline u32 funnel_left(u32 low, u32 high, u32 n) { return (u32)(((u64)high << 32 | low) << (n & 31) >> 32); }
DEVICE inline u32 funnel_right(u32 low, u32 high, u32 n) { return (u32)(((u64)high << 32 | low) >> (n < 32 ? n : 32)); }
DEVICE inline u32 picked(u32 a, u32 b, u32 which) { u32 r = 0; for (u32 i = 0; i < 4; ++i) r |= (u32)(((u64)b << 32 | a) >> 8 * (which >> 4 * i & 7) & 255) << 8 * i; return r; }
DEVICE inline u32 distance(u32 a, u32 b, u32 c) { return c + (a < b ? b - a : a - b); }
#endif
// The compiler has no such instruction in a debug build.
#if defined(__CUDACC__) && !defined(DEBUG_BUILD)
DEVICE inline i32 dot_bytes(u32 a, u32 b, i32 c) { return __dp4a((i32)a, (i32)b, c); }
DEVICE inline u32 dot_bytes(u32 a, u32 b, u32 c) { return __dp4a(a, b, c); }
#else
DEVICE inline i32 dot_bytes(u32 a, u32 b, i32 c) { u32 r = (u32)c; for (u32 i = 0; i < 32; i += 8) r += (u32)((i8)(a >> i) * (i8)(b >> i)); return (i32)r; }
DEVICE inline u32 dot_bytes(u32 a, u32 b, u32 c) { for (u32 i = 0; i < 32; i += 8) c += (a >> i & 255) * (b >> i & 255); return c; }
#endif

// Bits of a float; those of all NaN are one pattern, for a processor and a GPU make different ones.
DEVICE inline u32 seen(f32 x) { return x != x ? 0x7FC00000u : bits_of(x); }
DEVICE inline u64 seen(f64 x) { return x != x ? 0x7FF8000000000000ull : bits_of(x); }

template <class T> DEVICE inline T quotient(T a, T b) { return b == 0 ? a : (T)-1 < (T)0 && b == (T)-1 ? (T)(0 - (u64)a) : (T)(a / b); }
template <class T> DEVICE inline T remainder_of(T a, T b) { return b == 0 ? a : (T)-1 < (T)0 && b == (T)-1 ? (T)0 : (T)(a % b); }
template <class T> DEVICE inline T magnitude(T a) { return a < 0 ? (T)(0 - (u64)a) : a; }
DEVICE inline f32 magnitude(f32 x) { return fabsf(x); }
DEVICE inline f64 magnitude(f64 x) { return fabs(x); }
template <class T> DEVICE inline T smaller(T a, T b) { return a < b ? a : b; }
template <class T> DEVICE inline T larger(T a, T b) { return a < b ? b : a; }
template <class T> DEVICE inline i32 to_i32(T x) { return x > (T)-2147483000 && x < (T)2147483000 ? (i32)x : 77; }
template <class T> DEVICE inline u32 to_u32(T x) { return x > (T)-1 && x < (T)4294967000.0 ? (u32)x : 78; }
template <class T> DEVICE inline i64 to_i64(T x) { return x > (T)-9e18 && x < (T)9e18 ? (i64)x : 79; }
template <class T> DEVICE inline u64 to_u64(T x) { return x > (T)-1 && x < (T)1.8e19 ? (u64)x : 80; }
// By a function, because g++ 12 folds 0.0 - (double)i to -(double)i, which is -0.0 where i is 0.
template <class T> DEVICE inline f32 to_f32(T x) { return (f32)x; }
template <class T> DEVICE inline f64 to_f64(T x) { return (f64)x; }
DEVICE inline f32 fused(f32 a, f32 b, f32 c) { return fmaf(a, b, c); }
DEVICE inline f64 fused(f64 a, f64 b, f64 c) { return fma(a, b, c); }
DEVICE inline f32 root(f32 x) { return sqrtf(x); }
DEVICE inline f64 root(f64 x) { return sqrt(x); }
DEVICE inline f32 down(f32 x) { return floorf(x); }
DEVICE inline f64 down(f64 x) { return floor(x); }
DEVICE inline f32 up(f32 x) { return ceilf(x); }
DEVICE inline f64 up(f64 x) { return ceil(x); }
DEVICE inline f32 cut(f32 x) { return truncf(x); }
DEVICE inline f64 cut(f64 x) { return trunc(x); }
DEVICE inline f32 even(f32 x) { return rintf(x); }
DEVICE inline f64 even(f64 x) { return rint(x); }

struct alignas(16) Quad { f32 x, y, z, w; };
struct alignas(8) Pair { i32 x, y; };
struct alignas(16) Wide { f64 x; u64 y; };
// No padding: a debug build copies it, and nothing has written it.
struct Mixed { f64 a; i32 b; i16 c; u16 d; u8 e; i8 f; u8 rest[6]; };
struct Bits { u32 a : 3; i32 b : 13; u32 c : 16; u64 d : 41; };
DEVICE inline Bits made_bits(u32 a, i32 b, u32 c, u64 d) { Bits made = {}; made.a = a; made.b = b; made.c = c; made.d = d; return made; }

// What a thread carries from phase to phase, and what it ends with.
struct State { u32 a; i32 b; u64 c; i64 d; f64 f; f32 e; u32 rest; };

constexpr u32 THREADS = 64, PHASES = 4, WORDS = 8, RESULTS = 8;

// `posted` of one phase is read in the next, `sums` too; `words`, `bytes` and `quads` have a row for each thread alone.
struct Shared {
  Quad quads[THREADS][2];
  u32 posted[PHASES][THREADS], sums[PHASES][4], words[THREADS][4];
  u8 bytes[THREADS][8];
};

DEVICE inline void begin(u32 tid, State& s, Shared& shared, const u32* data) {
  s = {data[0], (i32)data[1], (u64)data[2] << 32 | data[3], (i64)data[4], as_f64((u64)data[6] << 32 | data[7]), as_f32(data[5]), 0};
  for (u32 i = 0; i < 4; ++i) shared.words[tid][i] = data[i] ^ i;
  for (u32 i = 0; i < 8; ++i) shared.bytes[tid][i] = (u8)(data[i] >> i);
  for (u32 i = 0; i < 2; ++i) shared.quads[tid][i] = {(f32)tid, (f32)(i32)data[i], 1.5f, as_f32(data[5 + i])};
  // A compiler may load ahead of a branch, for a thread that there is not, what it then does not use.
  for (u32 i = 0; i < PHASES; ++i) shared.posted[i][tid] = 0;
  if (tid < PHASES) for (u32 i = 0; i < 4; ++i) shared.sums[tid][i] = i == 3 ? 0xFFFFFFFFu : 0;
}

DEVICE inline u32 post(const State& s) {
  return s.a ^ (u32)s.b * 31 ^ (u32)(s.c >> 17) ^ (u32)s.d * 7 ^ seen(s.e) ^ (u32)(seen(s.f) >> 29);
}

DEVICE inline void finish(u32 tid, const State& s, const Shared& shared, u64* results) {
  u64 own = 0;
  for (u32 i = 0; i < 8; ++i) own = own * 31 + shared.bytes[tid][i];
  for (u32 i = 0; i < 4; ++i) own = own * 31 + shared.words[tid][i];
  for (u32 i = 0; i < 2; ++i) { const Quad& q = shared.quads[tid][i]; own = (((own * 31 + seen(q.x)) * 31 + seen(q.y)) * 31 + seen(q.z)) * 31 + seen(q.w); }
  const u64 all[RESULTS] = {s.a, (u64)s.b, s.c, (u64)s.d, seen(s.e), seen(s.f), own, shared.sums[tid % PHASES][tid / PHASES % 4]};
  for (u32 i = 0; i < RESULTS; ++i) results[i] = all[i];
}

// Phases run one after another, each by all threads, with a barrier between; then lanes of a warp may exchange values.
#ifdef __CUDACC__
DEVICE inline void add_to(u32& sum, u32 x) { atomicAdd(&sum, x); }
DEVICE inline void raise_to(u32& sum, u32 x) { atomicMax(&sum, x); }
DEVICE inline void toggle(u32& sum, u32 x) { atomicXor(&sum, x); }
DEVICE inline void lower_to(u32& sum, u32 x) { atomicMin(&sum, x); }
#define BEGIN(name) extern "C" __global__ void name(u32* data, u64* results) { \
  __shared__ Shared shared; State s; const u32 tid = threadIdx.x; data += tid * WORDS; begin(tid, s, shared, data); __syncthreads();
#define PHASE(run, n) run(tid, s, shared, data); shared.posted[n][tid] = post(s); __syncthreads();
#define EXCHANGE(member, how, by) s.member = __shfl_##how##_sync(0xFFFFFFFFu, s.member, by);
#define VOTE(condition) { const bool mine = condition; s.a ^= __ballot_sync(0xFFFFFFFFu, mine); }
#define END finish(tid, s, shared, results + tid * RESULTS); }
#else
DEVICE inline void add_to(u32& sum, u32 x) { sum += x; }
DEVICE inline void raise_to(u32& sum, u32 x) { if (sum < x) sum = x; }
DEVICE inline void toggle(u32& sum, u32 x) { sum ^= x; }
DEVICE inline void lower_to(u32& sum, u32 x) { if (x < sum) sum = x; }
DEVICE inline u32 source_xor(u32 lane, u32 by) { return lane ^ by; }
DEVICE inline u32 source_up(u32 lane, u32 by) { return lane < by ? lane : lane - by; }
DEVICE inline u32 source_down(u32 lane, u32 by) { return lane + by < 32 ? lane + by : lane; }
#define EACH for (u32 tid = 0; tid < THREADS; ++tid)
#define BEGIN(name) extern "C" void name(u32* data, u64* results) { \
  static Shared shared; static State all[THREADS]; EACH begin(tid, all[tid], shared, data + tid * WORDS);
#define PHASE(run, n) EACH { State& s = all[tid]; run(tid, s, shared, data + tid * WORDS); shared.posted[n][tid] = post(s); }
#define EXCHANGE(member, how, by) { State old[THREADS]; memcpy(old, all, sizeof all); \
  EACH all[tid].member = old[tid / 32 * 32 + source_##how(tid % 32, by)].member; }
#define VOTE(condition) for (u32 warp = 0; warp < THREADS; warp += 32) { u32 votes = 0; \
  for (u32 lane = 0; lane < 32; ++lane) { const State& s = all[warp + lane]; votes |= (u32)((condition) != 0) << lane; } \
  for (u32 lane = 0; lane < 32; ++lane) all[warp + lane].a ^= votes; }
#define END EACH finish(tid, all[tid], shared, results + tid * RESULTS); }
#endif
