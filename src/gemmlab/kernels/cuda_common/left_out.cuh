// Lines of a tile of C that another part of a kernel computes.
#pragma once

// The rows and columns of a tile that are left out, because they are computed apart: a bit for each.
struct LeftOut {
    const unsigned *rows, *cols;  // null if there are none

    __device__ __forceinline__ bool some() const { return rows != nullptr; }
};
