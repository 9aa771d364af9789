// Atomic updates in shared, global and generic memory: code of other forms than the catalog has, for makers/sass_latencies.py.

extern "C" __global__ void atomic_cas(double *p, double v, float *q, unsigned long long *r) {
    __shared__ float m;
    if (!threadIdx.x) m = 0;
    __syncthreads();
    unsigned long long*a = (unsigned long long*) p, o = *a, e;
    do {
        e = o;
        o = atomicCAS(a, e, __double_as_longlong(v+__longlong_as_double(e)));
    } while (e != o);
    atomicMax((int*)&m, __float_as_int(q[threadIdx.x]));
    int*mi = (int*)&m;
    int old = *mi, ex;
    do {
        ex = old;
        old = atomicCAS(mi, ex, __float_as_int(__int_as_float(ex)*1.5f));
    } while (ex != old);
    __syncthreads();
    q[threadIdx.x] = m;
    atomicExch(r, 5ull);
    atomicXor(r+1, 7ull);
}

__device__ __noinline__ void add(float *a, float *b) {
    *a += *b;
    atomicAdd(a, *b);
}
extern "C" __global__ void generic(float *p, int k) {
    __shared__ float s[64];
    s[threadIdx.x] = p[threadIdx.x];
    __syncthreads();
    float l[2] = {1, 2};
    add(k ? &s[threadIdx.x]:p, k>2 ? &l[k&1]:s);
    p[threadIdx.x] = s[threadIdx.x]+l[0]+__isShared(p)+__isGlobal(s);
}
