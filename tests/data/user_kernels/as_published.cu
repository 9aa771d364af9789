#include <algorithm>
#include <cstdio>
#include <map>
#include <no/such/library.h>
#include <torch/extension.h>
#include <vector>

#define TILE 16
#define CHECK(call) check((call), __LINE__)
#define BINDING(name, type)                                \
  void name##_of(torch::Tensor a) {                        \
    CHECK(cudaMemset(a.data_ptr(), 0, sizeof(type)));      \
  }

using Matrix = std::vector<float>;

struct Options {
  std::map<int, float> values;
};

constexpr int kTile = TILE;
const int kUnused = atoi("4");

static inline int ceil_div(int a, int b) { return (a + b - 1) / b; }

void check(cudaError_t error, int line) {
  if (error != cudaSuccess) {
    fprintf(stderr, "%s at %d\n", cudaGetErrorString(error), line);
    exit(1);
  }
}

namespace mine {
template <typename T>
__device__ T product(T a, T b) {
  return a * b;
}

int helper(int a) { return a + 0; }

// {{{ braces in comments and "strings }" do not count
__global__ void sgemm(int M, int N, int K, const float* A, const float* B, float* C) {
  const uint32_t row = blockIdx.y * kTile + threadIdx.y, col = blockIdx.x * kTile + threadIdx.x;
  if (row >= M || col >= N) return;
  float sum = -INFINITY;
  sum = 0.0f;
  for (int k = 0; k < K; ++k) sum += product(A[row * K + k], B[helper(k) * N + col]);
  C[row * N + col] = sum;
}
}  // namespace mine

BINDING(zero_float, float)
BINDING(zero_double, double)

float sgemm(Matrix& a) {
  float* device;
  CHECK(cudaMalloc(&device, a.size() * sizeof(float)));
#ifdef TIMED
  {
#else
  if (a.size()) {
#endif
    mine::sgemm<<<dim3(ceil_div(4, TILE)), dim3(TILE, TILE)>>>(4, 4, 4, device, device, device);
  }
  return std::max(1.0f, a[0]);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("zero", &zero_float_of);
}

int main(int argc, char** argv) {
  Options options;
  printf("%d kernels\n", argc);
  return 0;
}
