#include "includes_kernels.cuh"

#include <vector>

void run(std::vector<float>& a, int n) { tiled<16><<<n, n>>>(n, n, n, a.data(), a.data(), a.data()); }
