// Where both conditions hold a loop runs, else another one: too much for predicates, so that the compiler branches on
// two of them, `@P0 BRA P1`.
extern "C" __global__ void two_predicates(const int* first, const int* second, int bound, float* out)
{
    float sum = 0;
    if (first[threadIdx.x] > 0 && bound < 3) {
#pragma unroll 1
        for (int k = 0; k < first[threadIdx.x]; ++k) sum += second[k];
    } else {
#pragma unroll 1
        for (int k = 0; k < second[threadIdx.x]; ++k) sum -= first[k];
    }
    out[threadIdx.x] = sum;
}
