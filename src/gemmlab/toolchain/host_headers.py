"""Substitutes for host headers that kernel files include by habit, with the parts that a GPU can use.

NVRTC has no host headers, but declares the device functions of `cuda_runtime.h`, `math.h` and similar headers itself.
Types and limits that it lacks are defined here. They have the same text as in libcu++, which may define them again.
"""

from __future__ import annotations

_INTEGERS = """#pragma once
#include <limits.h>
typedef signed char int8_t; typedef unsigned char uint8_t;
typedef short int16_t; typedef unsigned short uint16_t;
typedef int int32_t; typedef unsigned int uint32_t;
typedef long long int64_t; typedef unsigned long long uint64_t;
typedef long long intptr_t; typedef unsigned long long uintptr_t;
#define INT8_MIN SCHAR_MIN
#define INT8_MAX SCHAR_MAX
#define UINT8_MAX UCHAR_MAX
#define INT16_MIN SHRT_MIN
#define INT16_MAX SHRT_MAX
#define UINT16_MAX USHRT_MAX
#define INT32_MIN INT_MIN
#define INT32_MAX INT_MAX
#define UINT32_MAX UINT_MAX
#define INT64_MIN LLONG_MIN
#define INT64_MAX LLONG_MAX
#define UINT64_MAX ULLONG_MAX
#define SIZE_MAX UINT64_MAX
typedef int8_t int_fast8_t; typedef uint8_t uint_fast8_t;
typedef int16_t int_fast16_t; typedef uint16_t uint_fast16_t;
typedef int32_t int_fast32_t; typedef uint32_t uint_fast32_t;
typedef int64_t int_fast64_t; typedef uint64_t uint_fast64_t;
namespace std {
using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t; using ::intptr_t;
using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t; using ::uintptr_t;
using ::size_t;
}
"""
_LIMITS = """#pragma once
#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define SHRT_MIN (-SHRT_MAX - 1)
#define SHRT_MAX 0x7fff
#define USHRT_MAX 0xffff
#define INT_MIN (-INT_MAX - 1)
#define INT_MAX 0x7fffffff
#define UINT_MAX 0xffffffff
#define LONG_MIN (-LONG_MAX - 1)
#define LONG_MAX LLONG_MAX
#define ULONG_MAX ULLONG_MAX
#define LLONG_MIN (-LLONG_MAX - 1)
#define LLONG_MAX 0x7fffffffffffffffLL
#define ULLONG_MAX 0xffffffffffffffffUL
"""
_FLOATS = """#pragma once
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_MAX 1.7976931348623158e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
"""
_CONSTANTS = """#pragma once
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define HUGE_VALF INFINITY
#define HUGE_VAL __longlong_as_double(0x7ff0000000000000ll)
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT1_2 0.70710678118654752440
#define M_SQRT2 1.41421356237309504880
"""
_FUNCTIONS = """#pragma once
#include <math.h>
namespace std {
using ::abs; using ::acos; using ::asin; using ::atan; using ::atan2; using ::cbrt; using ::ceil; using ::copysign;
using ::cos; using ::cosh; using ::erf; using ::erfc; using ::exp; using ::exp2; using ::expm1; using ::fabs;
using ::floor; using ::fma; using ::fmax; using ::fmin; using ::fmod; using ::hypot; using ::isfinite; using ::isinf;
using ::isnan; using ::ldexp; using ::lgamma; using ::log; using ::log10; using ::log1p; using ::log2; using ::lrint;
using ::lround; using ::modf; using ::nearbyint; using ::pow; using ::remainder; using ::rint; using ::round;
using ::signbit; using ::sin; using ::sinh; using ::sqrt; using ::tan; using ::tanh; using ::tgamma; using ::trunc;
}
"""
_ORDER = """#pragma once
namespace std {
template <class T> __device__ constexpr const T& min(const T& a, const T& b) { return b < a ? b : a; }
template <class T> __device__ constexpr const T& max(const T& a, const T& b) { return a < b ? b : a; }
template <class T> __device__ constexpr const T& clamp(const T& x, const T& low, const T& high) {
  return x < low ? low : high < x ? high : x;
}
template <class T> __device__ constexpr void swap(T& a, T& b) {
  T first = static_cast<T&&>(a);
  a = static_cast<T&&>(b);
  b = static_cast<T&&>(first);
}
}
"""
_SHORT_NAMES = """#pragma once
#include <math.h>
#include <stdint.h>
typedef unsigned int uint; typedef unsigned short ushort; typedef unsigned long ulong;
"""
_TENSOR_MAP = """#pragma once
typedef struct CUtensorMap_st { alignas(128) unsigned long long opaque[16]; } CUtensorMap;
"""
_BUILT_IN = "#pragma once\n"
_CUB_PARTS = (
    "block/block_adjacent_difference", "block/block_discontinuity", "block/block_exchange", "block/block_histogram",
    "block/block_load", "block/block_merge_sort", "block/block_radix_rank", "block/block_radix_sort",
    "block/block_reduce", "block/block_scan", "block/block_shuffle", "block/block_store", "thread/thread_load",
    "thread/thread_operators", "thread/thread_store", "util_ptx", "util_type", "warp/warp_exchange", "warp/warp_load",
    "warp/warp_merge_sort", "warp/warp_reduce", "warp/warp_scan", "warp/warp_store",
)  # fmt: skip
"""The headers of CUB that NVRTC can compile. They replace `cub/cub.cuh`, which refuses NVRTC."""


def _as_std(name: str) -> str:
    """Return the text of a header that offers libcu++'s header `name` in the namespace `std`."""
    return f"#pragma once\n#include <cuda/std/{name}>\nnamespace std {{ using namespace cuda::std; }}\n"


HOST_HEADERS = {
    **dict.fromkeys(("stdint.h", "cstdint", "inttypes.h"), _INTEGERS),
    **dict.fromkeys(("limits.h", "climits"), _LIMITS),
    **dict.fromkeys(("float.h", "cfloat"), _FLOATS),
    "math.h": _CONSTANTS,
    "cmath": _FUNCTIONS,
    "algorithm": _ORDER,
    "cub/cub.cuh": "#pragma once\n" + "".join(f"#include <cub/{part}.cuh>\n" for part in _CUB_PARTS),
    **{name: _as_std(name) for name in ("array", "limits", "tuple", "type_traits", "utility")},
    **dict.fromkeys(("cuda_runtime.h", "stdlib.h", "cstdlib", "sys/types.h"), _SHORT_NAMES),
    "cuda.h": _TENSOR_MAP,
    **dict.fromkeys(
        (
            "cuda_runtime_api.h", "device_launch_parameters.h", "cuda_device_runtime_api.h", "cublas_v2.h",
            "device_functions.h", "math_functions.h", "sm_20_intrinsics.h",
            "stdio.h", "cstdio", "string.h", "cstring", "assert.h", "cassert", "stddef.h", "cstddef", "time.h", "ctime",
            "chrono", "fstream", "iomanip", "iostream", "random", "string", "vector",
        ),
        _BUILT_IN,
    ),
}  # fmt: skip
"""Name in `#include` -> text of the substitute for that header."""
