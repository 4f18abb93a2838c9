// The sort reference in fp32: sort ascending, softmax, cumulative sum, mask the low tail, keep at least one token. One
// block a row; a stable radix sort of 32-bit keys, so that equal logits stand in ascending token order. The CPU model
// is src/kernels/cpu/sort.rs.
#include "numerics.cuh"

#define BINS 256
#define ITEMS 8
#define AT_ONCE 8
#define WARPS (LANES / 32)


// One pass of the radix sort over 8 bits: a stable scatter of (keys, ids) in tiles of 8,192, each warp taking 256
// consecutive tokens of a tile.
static __device__ void radix_pass(const u32 *keys, const u32 *ids, u32 *keys_out, u32 *ids_out, int vocab, int shift,
                                  u32 *offsets, u32 (*warp_counts)[BINS])
{
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    if (threadIdx.x < BINS) {
        offsets[threadIdx.x] = 0;
    }
    __syncthreads();
    // Several loads at a time, so that their latencies overlap.
    for (int first = threadIdx.x; first < vocab; first += LANES * AT_ONCE) {
        u32 key[AT_ONCE];
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            key[j] = first + j * LANES < vocab ? keys[first + j * LANES] : 0;
        }
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            if (first + j * LANES < vocab) {
                atomicAdd(&offsets[(key[j] >> shift) & (BINS - 1)], 1u);
            }
        }
    }
    __syncthreads();
    if (warp == 0) {
        u32 carry = 0;
        for (int begin = 0; begin < BINS; begin += 32) {
            const u32 count = offsets[begin + lane];
            u32 sum = count;
            for (int distance = 1; distance < 32; distance <<= 1) {
                const u32 before = __shfl_up_sync(0xffffffffu, sum, distance);
                sum += lane >= distance ? before : 0;
            }
            offsets[begin + lane] = carry + sum - count;
            carry += __shfl_sync(0xffffffffu, sum, 31);
        }
    }
    for (int tile = 0; tile < vocab; tile += LANES * ITEMS) {
        __syncthreads();
        for (int i = threadIdx.x; i < WARPS * BINS; i += LANES) {
            (&warp_counts[0][0])[i] = 0;
        }
        __syncthreads();
        u32 key[ITEMS], id[ITEMS], rank[ITEMS];
#pragma unroll
        for (int item = 0; item < ITEMS; item++) {
            const int i = tile + (int)(warp * 32 * ITEMS + item * 32 + lane);
            key[item] = i < vocab ? keys[i] : 0;
            id[item] = i < vocab ? ids[i] : 0;
        }
#pragma unroll
        for (int item = 0; item < ITEMS; item++) {
            const bool present = tile + (int)(warp * 32 * ITEMS + item * 32 + lane) < vocab;
            // The lanes with the same bin, bit by bit: far faster than match.any, which takes a step a value.
            const u32 bin = (key[item] >> shift) & (BINS - 1);
            u32 peers = __ballot_sync(0xffffffffu, present);
#pragma unroll
            for (int bit = 0; bit < 8; bit++) {
                const u32 ones = __ballot_sync(0xffffffffu, (bin >> bit) & 1);
                peers &= (bin >> bit) & 1 ? ones : ~ones;
            }
            const u32 before = __popc(peers & ((1u << lane) - 1));
            rank[item] = present ? warp_counts[warp][bin] + before : 0;
            __syncwarp();
            if (present && before == 0) {
                warp_counts[warp][bin] += __popc(peers);
            }
            __syncwarp();
        }
        __syncthreads();
        if (threadIdx.x < BINS) {
            u32 running = offsets[threadIdx.x];
            for (int w = 0; w < WARPS; w++) {
                const u32 count = warp_counts[w][threadIdx.x];
                warp_counts[w][threadIdx.x] = running;
                running += count;
            }
            offsets[threadIdx.x] = running;
        }
        __syncthreads();
#pragma unroll
        for (int item = 0; item < ITEMS; item++) {
            const int i = tile + (int)(warp * 32 * ITEMS + item * 32 + lane);
            if (i < vocab) {
                const u32 to = warp_counts[warp][(key[item] >> shift) & (BINS - 1)] + rank[item];
                keys_out[to] = key[item];
                ids_out[to] = id[item];
            }
        }
    }
    __syncthreads();
}

static __device__ __forceinline__ float logit_of(u32 key)
{
    return __uint_as_float((key >> 31) ? (key & 0x7fffffffu) : ~key);
}

static __device__ __forceinline__ float scan_warp(float value)
{
    const u32 lane = threadIdx.x & 31;
    for (int distance = 1; distance < 32; distance <<= 1) {
        const float before = __shfl_up_sync(0xffffffffu, value, distance);
        value = lane >= distance ? value + before : value;
    }
    return value;
}

// scratch: four arrays of u32 [batch, vocab].
extern "C" __global__ void __launch_bounds__(LANES)
    sort_top_p(const float *logits, const float *p, int vocab, u32 *scratch, float *output)
{
    __shared__ u32 offsets[BINS];
    __shared__ u32 warp_counts[WARPS][BINS];
    __shared__ float shared32[32];
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const size_t plane = (size_t)gridDim.x * vocab, row = (size_t)blockIdx.x * vocab;
    u32 *keys = scratch + row, *ids = keys + plane, *keys_out = ids + plane, *ids_out = keys_out + plane;
    logits += row;
    output += row;
    const float p_row = p[blockIdx.x];
    if (p_row >= 1.0f) {
        for (int i = threadIdx.x; i < vocab; i += LANES) {
            output[i] = logits[i];
        }
        return;
    }
    for (int i = threadIdx.x; i < vocab; i += LANES) {
        keys[i] = monotone(logits[i]);
        ids[i] = i;
    }
    __syncthreads();
    for (int shift = 0; shift < 32; shift += 16) {
        radix_pass(keys, ids, keys_out, ids_out, vocab, shift, offsets, warp_counts);
        radix_pass(keys_out, ids_out, keys, ids, vocab, shift + 8, offsets, warp_counts);
    }
    // The sorted keys are the logits, but for the sign of zeros, which no weight depends on.
    const float row_max = logit_of(keys[vocab - 1]);
    float lane_sum = 0.0f;
#pragma unroll 4
    for (int i = threadIdx.x; i < vocab; i += LANES) {
        lane_sum += exp32(logit_of(keys[i]) - row_max);
    }
    const float normalizer = block_sum(lane_sum, shared32);
    // Every logit stays, unless it is masked below.
#pragma unroll 4
    for (int i = threadIdx.x; i < vocab; i += LANES) {
        output[i] = logits[i];
    }
    float carry = 0.0f;
    for (int tile = 0; tile < vocab; tile += LANES) {
        const int i = tile + threadIdx.x;
        const float probability = i < vocab ? exp32(logit_of(keys[i]) - row_max) / normalizer : 0.0f;
        const u32 id = i < vocab ? ids[i] : 0;
        float sum = scan_warp(probability);
        __syncthreads();
        if (lane == 31) {
            shared32[warp] = sum;
        }
        __syncthreads();
        const float totals = scan_warp(shared32[lane]);
        const float before = __shfl_sync(0xffffffffu, totals, (warp + 31) & 31);
        sum = warp > 0 ? sum + before : sum;
        __syncthreads();
        if (threadIdx.x == LANES - 1) {
            shared32[0] = sum;
        }
        if (i < vocab) {
            if (sum + carry <= 1.0f - p_row && i != vocab - 1) {
                output[id] = NEGATIVE_INFINITY;
            }
        }
        __syncthreads();
        carry += shared32[0];
    }
}
