// Layer normalisation: a warp a row, Welford's mean and variance merged across lanes, four floats at a time.
struct Welford {
    float mean, m2, count;
};

__device__ __forceinline__ Welford merge(Welford a, Welford b) {
    float count = a.count + b.count;
    if (count == 0.0f) return a;
    float delta = b.mean - a.mean, share = b.count / count;
    return {a.mean + delta * share, a.m2 + b.m2 + delta * delta * a.count * share, count};
}

extern "C" __global__ void layer_norm(const float* __restrict__ x, const float* __restrict__ gamma,
                                      const float* __restrict__ beta, float* __restrict__ y, int rows, int cols,
                                      float eps) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31;
    if (row >= rows) return;
    const float4* from = reinterpret_cast<const float4*>(x + (size_t)row * cols);

    Welford w = {0.0f, 0.0f, 0.0f};
    for (int c = lane; c < cols / 4; c += 32) {
        const float4 v = from[c];
        const float each[4] = {v.x, v.y, v.z, v.w};
        for (int k = 0; k < 4; k++) {
            w.count += 1.0f;
            float delta = each[k] - w.mean;
            w.mean += delta / w.count;
            w.m2 += delta * (each[k] - w.mean);
        }
    }
    for (int offset = 16; offset > 0; offset >>= 1) {
        Welford other;
        other.mean = __shfl_down_sync(0xffffffff, w.mean, offset);
        other.m2 = __shfl_down_sync(0xffffffff, w.m2, offset);
        other.count = __shfl_down_sync(0xffffffff, w.count, offset);
        w = merge(w, other);
    }
    const float mean = __shfl_sync(0xffffffff, w.mean, 0);
    const float inverse = rsqrtf(__shfl_sync(0xffffffff, w.m2, 0) / cols + eps);

    const float4* g = reinterpret_cast<const float4*>(gamma);
    const float4* b = reinterpret_cast<const float4*>(beta);
    float4* to = reinterpret_cast<float4*>(y + (size_t)row * cols);
    for (int c = lane; c < cols / 4; c += 32) {
        float4 v = from[c];
        v.x = (v.x - mean) * inverse * g[c].x + b[c].x;
        v.y = (v.y - mean) * inverse * g[c].y + b[c].y;
        v.z = (v.z - mean) * inverse * g[c].z + b[c].z;
        v.w = (v.w - mean) * inverse * g[c].w + b[c].w;
        to[c] = v;
    }
}
