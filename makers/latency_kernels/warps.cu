// Shuffles, votes, divergent code, barriers: code of other forms than the catalog has, for makers/sass_latencies.py.

extern "C" __global__ void shfl_scan(int *p) {
    int l = threadIdx.x&31;
    int v = p[threadIdx.x];
    for (int d = 1; d<32; d *= 2) {
        int u = __shfl_up_sync(~0u, v, d);
        if (l >= d) v += u;
    }
    p[threadIdx.x] = v;
}

extern "C" __global__ void vote(int *p, int n) {
    int v = p[threadIdx.x];
    unsigned b = __ballot_sync(~0u, v>n);
    int a = __all_sync(~0u, v>0)+__any_sync(~0u, v == n)*2;
    unsigned m = __match_any_sync(~0u, v);
    int pr;
    unsigned mm = __match_all_sync(~0u, v, &pr);
    unsigned lt;
    asm("mov.u32 %0,%%lanemask_lt;":"=r"(lt));
    p[threadIdx.x] = __popc(b&lt)+a+__ffs(m)+mm*pr+__reduce_add_sync(~0u, v)+__reduce_max_sync(~0u, (unsigned) v);
}

extern "C" __global__ void divergent(int *p, int n) {
    int i = threadIdx.x, v = p[i];
    for (int k = 0; k<n; k++) {
        if (v&1) {
            if (v&2) {
                v += p[(i+k)&31];
                if (v%7 == 0) break;
            } else {
                for (int j = 0; j<(v&7); j++) v ^= p[j]*3;
            }
        } else {
            if (v<0) continue;
            v -= k;
            __syncwarp();
        }
        v = __shfl_sync(__activemask(), v, 0)+v/3;
    }
    if (v == 77) return;
    p[i] = v;
}

extern "C" __global__ void grid_barrier(unsigned *t, float *p) {
    p[threadIdx.x] += 1;
    __threadfence();
    __syncthreads();
    if (!threadIdx.x) {
        atomicAdd(t, 1);
        while (*(volatile unsigned*) t<gridDim.x) __nanosleep(50);
    }
    __syncthreads();
    __threadfence_block();
    __threadfence_system();
    int c = __syncthreads_count(p[3]>1);
    p[threadIdx.x] += c+__syncthreads_or(c == 1)+clock64()+clock();
    unsigned long long g;
    asm volatile("mov.u64 %0,%%globaltimer;":"=l"(g));
    p[1] = g;
    asm volatile("bar.sync 3,64;");
    asm volatile("bar.arrive 2,64;");
}
