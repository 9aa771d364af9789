// European calls and puts: the cumulative normal distribution by polynomial, exp, log, sqrt and division.
__device__ static inline float cnd(float d) {
    const float A1 = 0.31938153f, A2 = -0.356563782f, A3 = 1.781477937f, A4 = -1.821255978f, A5 = 1.330274429f;
    const float RSQRT2PI = 0.39894228040143267793994605993438f;
    float K = __fdividef(1.0f, (1.0f + 0.2316419f * fabsf(d)));
    float c = RSQRT2PI * __expf(-0.5f * d * d) * (K * (A1 + K * (A2 + K * (A3 + K * (A4 + K * A5)))));
    return d > 0 ? 1.0f - c : c;
}

extern "C" __global__ void black_scholes(float2* __restrict__ results, const float* __restrict__ stock,
                                         const float* __restrict__ strike, const float* __restrict__ years, float R,
                                         float V, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
        const float S = stock[i], X = strike[i], T = years[i];
        const float root = sqrtf(T);
        const float d1 = (logf(S / X) + (R + 0.5f * V * V) * T) / (V * root);
        const float d2 = d1 - V * root;
        const float c1 = cnd(d1), c2 = cnd(d2);
        const float discount = expf(-R * T);
        results[i].x = S * c1 - X * discount * c2;
        results[i].y = X * discount * (1.0f - c2) - S * (1.0f - c1);
    }
}
