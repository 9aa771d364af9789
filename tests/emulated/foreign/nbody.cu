// All-pairs gravity with tiles of bodies in dynamic shared memory; one leapfrog step.
__device__ float3 interact(float3 acc, float4 a, float4 b, float soft2) {
    float3 r = {b.x - a.x, b.y - a.y, b.z - a.z};
    float d2 = r.x * r.x + r.y * r.y + r.z * r.z + soft2;
    float inv = rsqrtf(d2);
    float s = b.w * inv * inv * inv;
    acc.x += r.x * s;
    acc.y += r.y * s;
    acc.z += r.z * s;
    return acc;
}

extern "C" __global__ void nbody_step(const float4* pos, float4* vel, float4* out, int n, float dt, float soft2) {
    extern __shared__ float4 tile[];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4 mine = i < n ? pos[i] : make_float4(0, 0, 0, 0);
    float3 acc = {0, 0, 0};
    for (int base = 0; base < n; base += blockDim.x) {
        const int j = base + threadIdx.x;
        tile[threadIdx.x] = j < n ? pos[j] : make_float4(0, 0, 0, 0);
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < blockDim.x; k++) acc = interact(acc, mine, tile[k], soft2);
        __syncthreads();
    }
    if (i >= n) return;
    float4 v = vel[i];
    v.x += acc.x * dt;
    v.y += acc.y * dt;
    v.z += acc.z * dt;
    vel[i] = v;
    out[i] = make_float4(mine.x + v.x * dt, mine.y + v.y * dt, mine.z + v.z * dt, mine.w);
}
