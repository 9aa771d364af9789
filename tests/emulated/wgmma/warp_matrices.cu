// mma.sync with integers, 8-bit floats and doubles. Each thread passes its registers.
typedef const unsigned *in;

extern "C" __global__ void nothing() {}

#define INTEGERS(NAME, STATEMENT, A, B)                                                                               \
    extern "C" __global__ void NAME(in a, in b, int *c) {                                                             \
        int *d = c + threadIdx.x * 4;                                                                                 \
        in l = a + threadIdx.x * 4, r = b + threadIdx.x * 2;                                                          \
        asm volatile(STATEMENT " {%0, %1, %2, %3}, " A ", " B ", {%0, %1, %2, %3};"                                   \
                     : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])                                                 \
                     : "r"(l[0]), "r"(l[1]), "r"(l[2]), "r"(l[3]), "r"(r[0]), "r"(r[1]));                             \
    }

INTEGERS(s8_s8_32, "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", "{%4, %5, %6, %7}", "{%8, %9}")
INTEGERS(u8_s8_32, "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.u8.s8.s32", "{%4, %5, %6, %7}", "{%8, %9}")
INTEGERS(u8_u8_16, "mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32", "{%4, %5}", "{%8}")

#if __CUDA_ARCH__ == 890
INTEGERS(e4m3_e5m2_32, "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", "{%4, %5, %6, %7}", "{%8, %9}")
#endif

extern "C" __global__ void doubles_4(const double *a, const double *b, double *c) {
    double *d = c + threadIdx.x * 2;
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+d"(d[0]), "+d"(d[1]) : "d"(a[threadIdx.x]), "d"(b[threadIdx.x]));
}

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void doubles_8(const double *a, const double *b, double *c) {
    double *d = c + threadIdx.x * 4;
    const double *l = a + threadIdx.x * 4, *r = b + threadIdx.x * 2;
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};" : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
                 : "d"(l[0]), "d"(l[1]), "d"(l[2]), "d"(l[3]), "d"(r[0]), "d"(r[1]));
}
#endif
