/* gemmlab
summary = "one warp has one query; keys pass by, and the running maximum rescales what was added (online softmax)"
source = "Milakov and Gimelshein, Online normalizer calculation for softmax, 2018"
require = ["width == 64"]
args = ["Q", "K", "V", "OUT", "length", "width"]
grid = "ceil_div(length, 4), heads"
threads = "32, 4"
*/
__global__ void attention(const float* q, const float* k, const float* v, float* out, int length, int width) {
    const int query = blockIdx.x * 4 + threadIdx.y;  // 0 <= query < length, or beyond the last
    if (query >= length) return;
    // Each lane has two of the 64 columns: lane and lane + 32.
    const size_t head = (size_t)blockIdx.y * length * 64;
    const float* own = q + head + (size_t)query * 64;
    const float q0 = own[threadIdx.x], q1 = own[threadIdx.x + 32];
    float most = -INFINITY, sum = 0.0f, out0 = 0.0f, out1 = 0.0f;
    for (int key = 0; key < length; ++key) {
        const float* row = k + head + (size_t)key * 64;
        float score = q0 * row[threadIdx.x] + q1 * row[threadIdx.x + 32];
        for (int distance = 16; distance > 0; distance /= 2) score += __shfl_xor_sync(0xffffffffu, score, distance);
        score *= 0.125f;  // 1 / sqrt(64)
        const float next = fmaxf(most, score), shrink = expf(most - next), weight = expf(score - next);
        const float* value = v + head + (size_t)key * 64;
        out0 = out0 * shrink + weight * value[threadIdx.x];
        out1 = out1 * shrink + weight * value[threadIdx.x + 32];
        sum = sum * shrink + weight;
        most = next;
    }
    float* to = out + head + (size_t)query * 64;
    to[threadIdx.x] = out0 / sum;
    to[threadIdx.x + 32] = out1 / sum;
}
