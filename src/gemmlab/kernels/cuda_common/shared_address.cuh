// Addresses in shared memory, as instructions take them that are written in PTX.
#pragma once

using SharedAddress = unsigned;

__device__ __forceinline__ SharedAddress shared_address(const void* in_shared)
{
    return static_cast<SharedAddress>(__cvta_generic_to_shared(in_shared));
}
