#include <fstream>
#include <iostream>
#include <map>
#include <no/such/matrices.h>
#include <random>
#include <string>
#include <thrust/device_vector.h>
#include <vector>

#include "cudaTypedefs.h"
#include "declares_host.cuh"
#include "vector_functions.h"

using std::cout;
using namespace matrices::dense;
typedef std::vector<float> Row; using Rows = std::map<int, Row>;

void write(std::ofstream&);
void fill(std::vector<float>& all);
MatrixX transposed(const MatrixX& of);
static std::mt19937 generator;

struct Options {
  std::string name;
  int repeats;
};

bool operator==(const Options& a, const Options& b) { return a.repeats == b.repeats; }
static_assert(sizeof(Options) > 4);

inline int checked(int size) {
  if (size < 0) throw size;
  return size;
}

struct Tile {
  static constexpr int edge = 16;
};

/* gemmlab
kernel = "product<Tile>"
grid = "ceil_div(N, 16), ceil_div(M, 16)"
threads = "16, 16"
*/
template <typename Shape>
__global__ void product(int M, int N, int K, const float* A, const float* B, float* C) {
  const int row = blockIdx.y * Shape::edge + threadIdx.y, column = blockIdx.x * Shape::edge + threadIdx.x;
  if (row >= M || column >= N) return;
  float sum = 0.0f;
  for (int k = 0; k < K; ++k) sum = added(sum, A[row * K + k], B[k * N + column]);
  C[row * N + column] = make_float2(sum, 0.0f).x;
}
