// Calls, recursion, tables of functions, printf, malloc, traps: code of other forms than the catalog has, for makers/sass_latencies.py.

__device__ __noinline__ float helper(float a, int b) {
    for (int i = 0; i<b; i++) a = sinf(a)*b;
    return a;
}
__device__ __noinline__ double helper2(double a, float *p) {
    p[threadIdx.x] = helper(a, 3);
    return a*2+p[1];
}
extern "C" __global__ void calls(float *p, double *q, int n) {
    float a = p[threadIdx.x];
    for (int i = 0; i<n; i++) a = helper(a, i)+helper2(a, p);
    q[threadIdx.x] = helper2(a, p);
    p[threadIdx.x] = a;
}

__device__ __noinline__ int fib(int n) {
    return n<2 ? n:fib(n-1)+fib(n-2);
}
extern "C" __global__ void recursion(int *p) {
    p[threadIdx.x] = fib(p[threadIdx.x]);
}

typedef float(*F)(float);
__device__ __noinline__ float f0(float a) {
    return a+1;
}
__device__ __noinline__ float f1(float a) {
    return a*2;
}
__device__ __noinline__ float f2(float a) {
    return sqrtf(a);
}
__device__ F table[3] = {f0, f1, f2};
extern "C" __global__ void indirect(float *p, int k) {
    p[threadIdx.x] = table[(k+threadIdx.x)%3](p[threadIdx.x]);
}

extern "C" __global__ void switch_table(int *p, float *f) {
    int i = threadIdx.x;
    float a = f[i];
    switch (p[i]) {
        case 0:a = sinf(a);
        break;
        case 1:a = a*a*3;
        break;
        case 2:a = expf(a);
        break;
        case 3:a = a/7;
        break;
        case 4:a = logf(a);
        break;
        case 5:a = sqrtf(a);
        break;
        case 6:a = a-1;
        for (int k = 0; k<i; k++) a *= 1.01f;
        break;
        case 7:a = cbrtf(a);
        break;
        case 8:a = tanhf(a);
        break;
        default:a = 0;
    }
    f[i] = a;
}

extern "C" int printf(const char*,...);
extern "C" __global__ void printer(int *p, float x, double d) {
    if(p[threadIdx.x]>3)printf("%d %f %f\n",p[threadIdx.x],x,d);
    else printf("no %d\n",threadIdx.x);
    p[threadIdx.x] = 7;
}

extern "C" __global__ void mallocs(int**p, int n) {
    int*q = (int*) malloc(n*4);
    if (q) {
        for (int i = 0; i<n; i++) q[i] = i*threadIdx.x;
    }
    p[threadIdx.x] = q;
    if (n == 3) free(q);
}

extern "C" __global__ void assert_trap(int *p) {
    if (p[0] == 3) __trap();
    if(p[1]==4)asm volatile("brkpt;");
    if(p[2]==5)asm volatile("exit;");
    p[threadIdx.x] = 1;
}
