/* CUDA's own occupancy calculator, from the toolkit's header: a line of numbers in, a line of blocks out. */
#include <cuda_occupancy.h>
#include <stdio.h>

int main(void)
{
    int major, minor, warps, registers_per_sm, registers, smem, threads;
    unsigned long smem_per_sm, smem_per_block, optin, reserved;
    while (scanf("%d %d %d %d %lu %lu %lu %lu %d %d %d", &major, &minor, &warps, &registers_per_sm, &smem_per_sm,
                 &smem_per_block, &optin, &reserved, &registers, &smem, &threads) == 11) {
        cudaOccDeviceProp device = {0};
        cudaOccFuncAttributes function = {0};
        cudaOccDeviceState state = {0};
        cudaOccResult result;
        device.computeMajor = major;
        device.computeMinor = minor;
        device.maxThreadsPerBlock = 1024;
        device.maxThreadsPerMultiprocessor = 32 * warps;
        device.regsPerBlock = registers_per_sm;
        device.regsPerMultiprocessor = registers_per_sm;
        device.warpSize = 32;
        device.sharedMemPerBlock = smem_per_block;
        device.sharedMemPerMultiprocessor = smem_per_sm;
        device.numSms = 1;
        device.sharedMemPerBlockOptin = optin;
        device.reservedSharedMemPerBlock = reserved;
        function.maxThreadsPerBlock = 1024;
        function.numRegs = registers;
        function.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
        function.maxDynamicSharedSizeBytes = optin;
        function.numBlockBarriers = 1;
        state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
        if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &state, threads, smem))
            result.activeBlocksPerMultiprocessor = -1;
        printf("%d %d %d %d\n", result.activeBlocksPerMultiprocessor, result.blockLimitWarps, result.blockLimitRegs,
               result.blockLimitBlocks);
    }
    return 0;
}
