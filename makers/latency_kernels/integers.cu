// Integers of 8 to 64 bits: code of other forms than the catalog has, for makers/sass_latencies.py.

extern "C" __global__ void loop_while(int n, unsigned *p) {
    unsigned x = p[threadIdx.x];
    int c = 0;
    while (x != 1 && c<n) {
        x = (x&1) ? 3*x+1:x/2;
        c++;
    }
    p[threadIdx.x] = c;
}

extern "C" __global__ void int64(long long *p, long long m, unsigned long long q) {
    long long i = blockIdx.x*(long long) blockDim.x+threadIdx.x;
    long long v = p[i];
    v = v*m+(v >> 7);
    v ^= v << 13;
    v /= m;
    v%=(m|1);
    unsigned long long w = __umul64hi(v, q);
    p[i] = v+w/q+__popcll(w)+__clzll(v);
}

extern "C" __global__ void int128ish(unsigned long long *p) {
    unsigned long long a = p[threadIdx.x], b = p[threadIdx.x+32], lo, hi;
    asm("mul.lo.u64 %0,%2,%3;mul.hi.u64 %1,%2,%3;":"=l"(lo),"=l"(hi):"l"(a),"l"(b));
    asm("add.cc.u64 %0,%0,%2;addc.u64 %1,%1,%3;":"+l"(lo),"+l"(hi):"l"(a),"l"(b));
    for (int i = 0; i<20; i++) {
        if (lo>hi) {
            lo -= hi;
        } else {
            unsigned long long t = hi-lo;
            hi = lo;
            lo = t;
        }
        if (lo<5) break;
        lo = lo << 3|hi >> 61;
    }
    p[threadIdx.x] = lo^hi;
}

extern "C" __global__ void bits(unsigned *p, int n) {
    unsigned v = p[threadIdx.x];
    v = __brev(v)^__byte_perm(v, v >> 3, 0x3120);
    v += __clz(v)+__popc(v*3)+__ffs(v);
    v = __funnelshift_l(v, v+1, n)+__funnelshift_rc(v, 3, n);
    v = __vadd4(v, 0x01020304)+__sad(v, n, 7)+__dp4a((int) v, n, 3)+__vabsdiffu4(v, n);
    v += __mul24(v, n)+__mulhi((int) v, n)+__usad(v, 1u, 2u);
    asm("bfe.u32 %0,%0,%1,5;bfi.b32 %0,%0,%1,3,9;":"+r"(v):"r"(n));
    p[threadIdx.x] = v;
}

extern "C" __global__ void big_divide(int *p, unsigned *q, int n) {
    int i = blockIdx.x*blockDim.x+threadIdx.x;
    int r = i/n, c = i%n;
    q[i] = p[r]/(q[c]|1u)+p[c]%(n+1)+(unsigned) i/7u;
}

extern "C" __global__ void sha(const unsigned *in, unsigned *out) {
    unsigned w[16];
    for (int i = 0; i<16; i++) w[i] = in[threadIdx.x*16+i];
    unsigned a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8;
    #pragma unroll
    for (int i = 0; i<64; i++) {
        unsigned x = w[i&15];
        unsigned s = __funnelshift_r(e, e, 6)^__funnelshift_r(e, e, 11)^__funnelshift_r(e, e, 25),
            t = h+s+((e&f)^(~e&g))+x+i*0x428a2f98u;
        unsigned m = (a&b)^(a&c)^(b&c);
        h = g;
        g = f;
        f = e;
        e = d+t;
        d = c;
        c = b;
        b = a;
        a = t+m;
        unsigned y = w[(i+1)&15], z = w[(i+14)&15];
        w[i&15] = x+w[(i+9)&15]+(__funnelshift_r(y, y, 7)^(y >> 3))+(__funnelshift_r(z, z, 17)^(z >> 10));
    }
    out[threadIdx.x] = a^b^c^d^e^f^g^h;
}

extern "C" __global__ void bitonic(int *p) {
    __shared__ int s[1024];
    int t = threadIdx.x;
    s[t] = p[t];
    for (int k = 2; k <= 1024; k *= 2) for (int j = k/2; j; j /= 2) {
        __syncthreads();
        int u = t^j;
        if (u>t) {
            bool up = !(t&k);
            int a = s[t], b = s[u];
            if ((a>b) == up) {
                s[t] = b;
                s[u] = a;
            }
        }
    }
    __syncthreads();
    p[t] = s[t];
}

extern "C" __global__ void mixed_width(const char4 *a, const ushort2 *b, short4 *c, ulonglong2 *d, int n) {
    int i = threadIdx.x;
    for (int k = 0; k<n; k++) {
        char4 x = a[i+k];
        ushort2 y = b[i];
        c[i] = make_short4(x.x+y.x, x.y*y.y, x.z-y.x, x.w^y.y);
        ulonglong2 z = d[i];
        z.x += (unsigned long long) x.x*y.x;
        z.y = z.x*z.y;
        d[i+32] = z;
    }
}
