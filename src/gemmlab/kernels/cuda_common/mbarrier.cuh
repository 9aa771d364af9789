// Barriers in shared memory that count arrivals and bytes, and bulk copies that report to them (sm_90).
//
// A ring of stages has two barriers a stage. The producer waits for `empty`, says how many bytes will come, and starts
// the copies, which end the phase of `full`. Consumers wait for `full`, read, and arrive at `empty`:
//
//     phase of a barrier   0        1        2            wait(barrier, p) ends when the phase of parity p has ended;
//     parity               0        1        0            "the one before the first" has parity 1 and has ended
#pragma once

#include "shared_address.cuh"

// `arrivals` end a phase, together with all bytes that were announced.
__device__ __forceinline__ void init_barrier(SharedAddress barrier, unsigned arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// Makes barriers known to the copy engine. A barrier of all threads of the block follows.
__device__ __forceinline__ void publish_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ __forceinline__ void wait(SharedAddress barrier, unsigned parity)
{
    asm volatile(
        "{\n"
        ".reg .pred ended;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 ended, [%0], %1;\n"
        "@!ended bra again;\n"
        "}" ::"r"(barrier),
        "r"(parity)
        : "memory");
}

__device__ __forceinline__ void arrive(SharedAddress barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void arrive_and_expect(SharedAddress barrier, unsigned nbytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(nbytes) : "memory");
}

// Contiguous bytes from global memory; both addresses and the size are multiples of 16.
__device__ __forceinline__ void copy_bulk(SharedAddress to, const void* from, unsigned nbytes, SharedAddress barrier)
{
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from),
        "r"(nbytes), "r"(barrier)
        : "memory");
}

// Contiguous bytes to global memory. `publish_to_copies` and a barrier stand between ordinary stores and this.
__device__ __forceinline__ void store_bulk(void* to, SharedAddress from, unsigned nbytes)
{
    asm volatile(
        "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(nbytes)
        : "memory");
}

__device__ __forceinline__ void commit_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Waits until shared memory may be written again, and the block may end.
__device__ __forceinline__ void wait_until_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }

// Waits until the bytes are there, too.
__device__ __forceinline__ void wait_until_stored() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// What this thread stored in shared memory can be seen by bulk copies and wgmma.
__device__ __forceinline__ void publish_to_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
