"""Substitutes for host headers that kernel files include by habit, with the parts that a GPU can use.

NVRTC has no host headers, and declares by itself what `cuda_runtime.h`, `math.h` and the like would declare for
device code. Types and limits that it lacks are given here.
"""

from __future__ import annotations

_INTEGERS = """#pragma once
typedef signed char int8_t; typedef unsigned char uint8_t;
typedef short int16_t; typedef unsigned short uint16_t;
typedef int int32_t; typedef unsigned int uint32_t;
typedef long long int64_t; typedef unsigned long long uint64_t;
typedef long long intptr_t; typedef unsigned long long uintptr_t;
#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295u
#define INT64_MIN (-9223372036854775807ll - 1)
#define INT64_MAX 9223372036854775807ll
#define UINT64_MAX 18446744073709551615ull
"""
_LIMITS = """#pragma once
#define CHAR_BIT 8
#define INT_MIN (-2147483647 - 1)
#define INT_MAX 2147483647
#define UINT_MAX 4294967295u
#define LLONG_MIN (-9223372036854775807ll - 1)
#define LLONG_MAX 9223372036854775807ll
#define ULLONG_MAX 18446744073709551615ull
"""
_FLOATS = """#pragma once
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_MAX 1.7976931348623158e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
"""
_MATHEMATICS = """#pragma once
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define HUGE_VALF INFINITY
#define M_E 2.7182818284590452354
#define M_LN2 0.69314718055994530942
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_SQRT1_2 0.70710678118654752440
#define M_SQRT2 1.41421356237309504880
"""
_SHORT_NAMES = """#pragma once
typedef unsigned int uint; typedef unsigned short ushort; typedef unsigned long ulong;
"""
_TENSOR_MAP = """#pragma once
typedef struct CUtensorMap_st { alignas(128) unsigned long long opaque[16]; } CUtensorMap;
"""
_BUILT_IN = "#pragma once\n"

HOST_HEADERS = {
    **dict.fromkeys(("stdint.h", "cstdint", "inttypes.h"), _INTEGERS),
    **dict.fromkeys(("limits.h", "climits"), _LIMITS),
    **dict.fromkeys(("float.h", "cfloat"), _FLOATS),
    **dict.fromkeys(("math.h", "cmath"), _MATHEMATICS),
    **dict.fromkeys(("cuda_runtime.h", "stdlib.h", "cstdlib", "sys/types.h"), _SHORT_NAMES),
    "cuda.h": _TENSOR_MAP,
    **dict.fromkeys(
        (
            "cuda_runtime_api.h", "device_launch_parameters.h", "cuda_device_runtime_api.h", "cublas_v2.h",
            "device_functions.h", "math_functions.h", "sm_20_intrinsics.h",
            "stdio.h", "cstdio", "string.h", "cstring", "assert.h", "cassert", "stddef.h", "cstddef", "time.h", "ctime",
            "algorithm", "chrono", "fstream", "iomanip", "iostream", "random", "string", "vector",
        ),
        _BUILT_IN,
    ),
}  # fmt: skip
"""Text by the name in `#include`."""
