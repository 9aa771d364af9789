// One Jacobi step of the 5-point Laplacian with a shared tile and its halo; the border keeps its values.
#define BX 16
#define BY 16

extern "C" __global__ void jacobi5(const float* __restrict__ u, float* __restrict__ next, int nx, int ny, float h2) {
    __shared__ float s[BY + 2][BX + 2];
    const int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    const int x = blockIdx.x * BX + threadIdx.x, y = blockIdx.y * BY + threadIdx.y;
    const bool inside = x < nx && y < ny;

    if (inside) {
        s[ty][tx] = u[y * nx + x];
        if (threadIdx.x == 0 && x > 0) s[ty][0] = u[y * nx + x - 1];
        if ((threadIdx.x == BX - 1 || x == nx - 1) && x < nx - 1) s[ty][tx + 1] = u[y * nx + x + 1];
        if (threadIdx.y == 0 && y > 0) s[0][tx] = u[(y - 1) * nx + x];
        if ((threadIdx.y == BY - 1 || y == ny - 1) && y < ny - 1) s[ty + 1][tx] = u[(y + 1) * nx + x];
    }
    __syncthreads();
    if (!inside) return;

    if (x == 0 || y == 0 || x == nx - 1 || y == ny - 1)
        next[y * nx + x] = s[ty][tx];
    else
        next[y * nx + x] = 0.25f * (s[ty][tx - 1] + s[ty][tx + 1] + s[ty - 1][tx] + s[ty + 1][tx] - h2 * s[ty][tx]);
}
