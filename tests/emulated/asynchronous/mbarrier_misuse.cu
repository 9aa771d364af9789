// Misuse of mbarriers: each kernel with its bug and without. `// NAME` marks the lines reported.
#include "hazard_pairs.cuh"

// The parity of a wait does not alternate: the second one tests the first phase again.
template <bool GOOD> __device__ void parity(const float* in, float* out) {
    begin(1);
    float sum = 0;
    for (int step = 0; step < 2; ++step) {
        if (threadIdx.x == 0) {
            arrive_expect(cell(0), 512);
            bulk_load(shared_address(memory), in + 128 * step, 512, cell(0));
        }
        wait(cell(0), GOOD ? step : 0);
        sum += memory[threadIdx.x];  // EARLY
        __syncthreads();
    }
    out[threadIdx.x] = sum;
}

// More arrivals than a phase has.
template <bool GOOD> __device__ void many_arrivals(float* out) {
    begin(128);
    if (threadIdx.x == 0 && !GOOD) {
        arrive(cell(0));
        arrive_count(cell(0), 128);  // MANY
    }
    if (GOOD) arrive(cell(0));
    wait(cell(0), 0);
    out[threadIdx.x] = 1;
}

// One arrival is missing: nobody goes on.
template <bool GOOD> __device__ void few_arrivals(float* out) {
    begin(128);
    if (GOOD || threadIdx.x != 77) arrive(cell(0));
    wait(cell(0), 0);  // FEW
    out[threadIdx.x] = 1;
}

// Bytes that are expected never come.
template <bool GOOD> __device__ void few_bytes(const float* in, float* out) {
    begin(1);
    if (threadIdx.x == 0) {
        arrive_expect(cell(0), GOOD ? 256 : 512);
        bulk_load(shared_address(memory), in, 256, cell(0));
    }
    wait(cell(0), 0);  // HANG
    out[threadIdx.x] = memory[threadIdx.x / 2];
}

// The same with a test that never waits.
template <bool GOOD> __device__ void polled(float* out) {
    begin(128);
    if (GOOD || threadIdx.x != 77) arrive(cell(0));
    while (!test_parity(cell(0), 0)) {
    }
    out[threadIdx.x] = 1;
}

// An mbarrier is used by another warp before a barrier makes its initialisation known.
template <bool GOOD> __device__ void unknown_barrier(float* out) {
    if (threadIdx.x == 0) mbarrier_init(cell(0), 128);  // INIT
    if (GOOD || threadIdx.x < 32) __syncwarp();
    if (GOOD) __syncthreads();
    arrive(cell(0));  // USE
    wait(cell(0), 0);
    out[threadIdx.x] = 1;
}

// Copies use an mbarrier whose initialisation no fence shows to the asynchronous proxy.
template <bool GOOD> __device__ void hidden_barrier(const float* in, float* out) {
    if (threadIdx.x == 0) {
        mbarrier_init(cell(0), 1);  // HIDDEN
        if (GOOD) fence_mbarrier_init();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        arrive_expect(cell(0), 512);
        bulk_load(shared_address(memory), in, 512, cell(0));  // USER
    }
    wait(cell(0), 0);
    out[threadIdx.x] = memory[threadIdx.x];
}

// An mbarrier that was never initialised.
template <bool GOOD> __device__ void no_barrier(float* out) {
    if (GOOD) begin(128);
    arrive(cell(0));  // NONE
    out[threadIdx.x] = 1;
}

// An ordinary store hits the mbarrier's word.
template <bool GOOD> __device__ void spoilt_barrier(float* out) {
    begin(128);
    if (!GOOD && threadIdx.x == 3) *reinterpret_cast<volatile u64*>(&cells[0]) = 7;
    __syncthreads();
    arrive(cell(0));  // SPOILT
    out[threadIdx.x] = 1;
}

// More bytes than an mbarrier counts.
template <bool GOOD> __device__ void overflow(float* out) {
    begin(1);
    if (threadIdx.x == 0) {
        expect(cell(0), 1000000);
        expect(cell(0), GOOD ? 48575 : 48576);  // OVERFLOW
        complete(cell(0), 1000000);
        complete(cell(0), GOOD ? 48575 : 48576);
        arrive(cell(0));
    }
    out[threadIdx.x] = 1;
}

PAIR(parity, (const float* in, float* out), (in, out))
PAIR(many_arrivals, (float* out), (out))
PAIR(few_arrivals, (float* out), (out))
PAIR(few_bytes, (const float* in, float* out), (in, out))
PAIR(polled, (float* out), (out))
PAIR(unknown_barrier, (float* out), (out))
PAIR(hidden_barrier, (const float* in, float* out), (in, out))
PAIR(no_barrier, (float* out), (out))
PAIR(spoilt_barrier, (float* out), (out))
PAIR(overflow, (float* out), (out))
