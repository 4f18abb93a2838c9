// Exact top-p. A weight is exp(logit - max) as an integer in units of 2^-62, a mass an integer sum of weights: no order
// of adding, no launch shape changes it. The cut is found by radix selection on the packed (logit, id) key. The row's
// host-side twin is src/kernels/cpu/exact.rs, which also derives the error bound.
//
// One launch, grid (CLUSTER, batch): a thread block cluster a row, a slice of the row a block, kept in shared memory, so
// that the row is read once and written once. Steps, with a cluster barrier (#) between:
//   load, maximum # masses by bins of max - logit # sum bins over the cluster, scan # find the bin of the target #
//   gather the bin's keys in block 0 # sort and scan them, name the cut # mask.
// Where the bin holds more keys than fit, its key range is divided into bins again, and so on.
//
// CLUSTER: blocks a row (1 where the device has no clusters). CACHED: 1 to keep the slice in shared memory.
#include "numerics.cuh"

#ifndef CLUSTER
#define CLUSTER 8
#endif
#ifndef CACHED
#define CACHED 1
#endif
#define BINS 2048
#define BINS_LOG2 11
#define BINS_OF_BLOCK (BINS / CLUSTER)
#define CAPACITY LANES
#define NO_KEY 0xffffffffffffffffULL
// Below this difference a weight rounds to 0 units.
#define NO_WEIGHT_BELOW (-44.0)
// Beyond this distance from the maximum the binary64 exponential is exactly 0 as well.
#define NOT_EXACT_WITHIN 750.0f

typedef unsigned __int128 u128;

enum Outcome { CUT = 0, FLAGGED = 1, DISABLED = 2, REJECTED = 3 };

struct Result {
    u64 key;
    u32 outcome;
    u32 candidates;
};

// Everything that blocks of a cluster share; the slice's logits follow.
struct Shared {
    // Masses by bin, in three 32-bit limbs: 32-bit atomics are native, 64-bit ones are not.
    // Between two rounds: this block's own candidates.
    union {
        struct {
            u32 limb0[BINS], limb1[BINS], limb2[BINS];
        };
        u64 own_keys[CAPACITY];
    };
    // The sums of this block's part of the bins; later, in block 0, the candidates of all blocks.
    union {
        u64 keys[CAPACITY];
        u128 bins[BINS_OF_BLOCK];
    };
    // Written by every block of the cluster into every other's, by rank.
    u32 block_bits[2 * CLUSTER];
    // The top bit says that some weight is not exact.
    u128 block_mass[CLUSTER];
    u64 block_low[CLUSTER], block_high[CLUSTER];
    // Written by the one block that finds it.
    u32 found_bin;
    u128 found_before;
    u64 cut_key;
    u32 cut_outcome;
    // Block 0's.
    u32 candidates;
    // The same in every block.
    u128 whole, target;
    bool inexact;
    // This block's own.
    u32 own_candidates, own_base;
    u32 warp_bits[64];
    u64 shared64[64];
    u128 shared128[32];
};

// Arrives without ordering any memory access.
static __device__ __forceinline__ void cluster_arrive()
{
#if CLUSTER > 1
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}

static __device__ __forceinline__ void cluster_wait()
{
#if CLUSTER > 1
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
    __syncthreads();
#endif
}

// A barrier of the cluster that also orders shared memory. The block's barrier comes first, so that one warp's fence
// releases the writes of all: a fence a thread costs more than the rest of the barrier.
static __device__ __forceinline__ void cluster_sync()
{
    __syncthreads();
#if CLUSTER > 1
    if (threadIdx.x < 32) {
        asm volatile("fence.acq_rel.cluster;" ::: "memory");
    }
    cluster_arrive();
    cluster_wait();
#endif
}

// The address of `local`, a place in this block's shared memory, in the block of that rank.
static __device__ __forceinline__ u32 peer(const void *local, u32 rank)
{
    u32 address = (u32)__cvta_generic_to_shared(local);
#if CLUSTER > 1
    u32 mapped;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
    return mapped;
#else
    return address;
#endif
}

#if CLUSTER > 1
#define SPACE "shared::cluster"
#else
#define SPACE "shared"
#endif

static __device__ __forceinline__ u32 peer_load(const u32 *local, u32 rank)
{
    u32 value;
    asm volatile("ld." SPACE ".u32 %0, [%1];" : "=r"(value) : "r"(peer(local, rank)) : "memory");
    return value;
}

static __device__ __forceinline__ void peer_store(u32 *local, u32 rank, u32 value)
{
    asm volatile("st." SPACE ".u32 [%0], %1;" ::"r"(peer(local, rank)), "r"(value) : "memory");
}

static __device__ __forceinline__ void peer_store(u64 *local, u32 rank, u64 value)
{
    asm volatile("st." SPACE ".u64 [%0], %1;" ::"r"(peer(local, rank)), "l"(value) : "memory");
}

static __device__ __forceinline__ void peer_store(u128 *local, u32 rank, u128 value)
{
    peer_store((u64 *)local, rank, (u64)value);
    peer_store((u64 *)local + 1, rank, (u64)(value >> 64));
}

static __device__ __forceinline__ u32 peer_add(u32 *local, u32 rank, u32 value)
{
    u32 before;
    asm volatile("atom." SPACE ".add.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "r"(peer(local, rank)), "r"(value)
                 : "memory");
    return before;
}

static __device__ __forceinline__ u128 shuffle_up(u128 value, int distance)
{
    const u64 low = __shfl_up_sync(0xffffffffu, (u64)value, distance);
    const u64 high = __shfl_up_sync(0xffffffffu, (u64)(value >> 64), distance);
    return (u128)high << 64 | low;
}

static __device__ __forceinline__ u128 shuffle(u128 value, u32 lane)
{
    const u64 low = __shfl_sync(0xffffffffu, (u64)value, lane);
    const u64 high = __shfl_sync(0xffffffffu, (u64)(value >> 64), lane);
    return (u128)high << 64 | low;
}

static __device__ __forceinline__ u128 shuffle_xor(u128 value, int mask)
{
    const u64 low = __shfl_xor_sync(0xffffffffu, (u64)value, mask);
    const u64 high = __shfl_xor_sync(0xffffffffu, (u64)(value >> 64), mask);
    return (u128)high << 64 | low;
}

static __device__ __forceinline__ u128 scan_warp(u128 value)
{
    const u32 lane = threadIdx.x & 31;
#pragma unroll 1
    for (int distance = 1; distance < 32; distance <<= 1) {
        const u128 before = shuffle_up(value, distance);
        value += lane >= distance ? before : 0;
    }
    return value;
}

static __device__ __forceinline__ u64 key_of(float logit, u32 id) { return (u64)(~monotone(logit)) << 32 | id; }

static __device__ __forceinline__ float logit_of_bits(u32 bits)
{
    return __uint_as_float((bits >> 31) ? (bits & 0x7fffffffu) : ~bits);
}

static __device__ __forceinline__ float logit_of(u64 key) { return logit_of_bits(~(u32)(key >> 32)); }

// exp(logit - max) in units of 2^-62.
static __device__ __forceinline__ u64 weight(float logit, float row_max)
{
    const double difference = (double)logit - (double)row_max;
    if (difference < NO_WEIGHT_BELOW) {
        return 0;
    }
    int k;
    const double fraction = exp_parts(difference, &k);
    return __double2ull_rn(fraction * power_of_two(k + 62));
}

// The first bins: linear in max - logit. Monotone, as each fp32 operation is.
static __device__ __forceinline__ u32 first_bin(float logit, float row_max, float scale)
{
    return min((u32)((row_max - logit) * scale), (u32)(BINS - 1));
}

// Adds masses to their bins, several at a time so that their latencies overlap.
#define AT_ONCE 2
static __device__ __forceinline__ void add_masses(Shared *shared, const u32 *bin, const u64 *mass)
{
    u32 high[AT_ONCE];
#pragma unroll
    for (int j = 0; j < AT_ONCE; j++) {
        const u32 low = (u32)mass[j];
        high[j] = (u32)(mass[j] >> 32);
        if (low > 0) {
            high[j] += atomicAdd(&shared->limb0[bin[j]], low) > ~low ? 1 : 0;
        }
    }
#pragma unroll
    for (int j = 0; j < AT_ONCE; j++) {
        if (high[j] > 0 && atomicAdd(&shared->limb1[bin[j]], high[j]) > ~high[j]) {
            atomicAdd(&shared->limb2[bin[j]], 1u);
        }
    }
}

static __device__ __forceinline__ void clear_bins(Shared *shared)
{
#pragma unroll 1
    for (u32 i = threadIdx.x; i < BINS; i += LANES) {
        shared->limb0[i] = 0;
        shared->limb1[i] = 0;
        shared->limb2[i] = 0;
    }
}

// p times the whole mass, rounded up to a unit; at least one.
static __device__ u128 target_of(float p, u128 whole)
{
    if (p <= 0.0f) {
        return 1;
    }
    const u32 bits = __float_as_uint(p);
    const u32 fraction = bits & 0x7fffffu, exponent = bits >> 23;
    const u32 significand = exponent == 0 ? fraction : (fraction | 0x800000u);
    const u32 shift = exponent == 0 ? 149 : 150 - exponent;
    if (shift >= 128) {
        return 1;
    }
    const u128 product = (u128)significand * whole;
    const u128 floor = product >> shift;
    const u128 target = (floor << shift) == product ? floor : floor + 1;
    return target > 0 ? target : 1;
}

// Sums this block's part of the bins over the cluster into shared->bins. Barriers before and after are the caller's.
static __device__ void gather_bins(Shared *shared, u32 rank)
{
    constexpr u32 GROUP = LANES / BINS_OF_BLOCK < 1 ? 1 : LANES / BINS_OF_BLOCK > CLUSTER ? CLUSTER : LANES / BINS_OF_BLOCK;
    const u32 member = threadIdx.x % GROUP;
    for (u32 b = threadIdx.x / GROUP; b < BINS_OF_BLOCK; b += LANES / GROUP) {
        const u32 bin = rank * BINS_OF_BLOCK + b;
        u128 mass = 0;
#pragma unroll
        for (u32 from = 0; from < CLUSTER; from += GROUP) {
            const u32 limb0 = peer_load(&shared->limb0[bin], from + member);
            const u32 limb1 = peer_load(&shared->limb1[bin], from + member);
            const u32 limb2 = peer_load(&shared->limb2[bin], from + member);
            mass += (u128)limb2 << 64 | (u64)limb1 << 32 | limb0;
        }
        for (u32 half = GROUP / 2; half > 0; half /= 2) {
            mass += shuffle_xor(mass, half);
        }
        if (member == 0) {
            shared->bins[b] = mass;
        }
    }
}

#define INEXACT ((u128)1 << 127)

// Finds the bin in which the running mass reaches the target; `base` is the mass before the first bin. The first call
// also finds the whole mass and sets the target.
static __device__ void find_bin(Shared *shared, u32 rank, bool first, bool inexact, float p, u128 base)
{
    constexpr u32 OWN = BINS_OF_BLOCK / 32;
    const u32 lane = threadIdx.x & 31;
    cluster_sync();
    gather_bins(shared, rank);
    __syncthreads();
    u128 own = 0, running = 0;
    if (threadIdx.x < 32) {
#pragma unroll 1
        for (u32 i = 0; i < OWN; i++) {
            own += shared->bins[lane * OWN + i];
        }
        running = scan_warp(own);
        const u128 mass = shuffle(running, 31);
        if (lane < CLUSTER) {
            peer_store(&shared->block_mass[rank], lane, inexact ? mass | INEXACT : mass);
        }
    }
    cluster_sync();
    if (threadIdx.x < 32) {
        const u128 stated = lane < CLUSTER ? shared->block_mass[lane] : (u128)0;
        const u128 block = stated & ~INEXACT;
        const u128 through = scan_warp(block);
        if (first) {
            const bool any_inexact = __any_sync(0xffffffffu, stated != block);
            const u128 whole = shuffle(through, 31);
            const u128 target = target_of(p, whole);
            if (lane == 0) {
                shared->whole = whole;
                shared->target = target;
                shared->inexact = any_inexact;
            }
            __syncwarp();
        }
        const u128 target = shared->target;
        u128 from = base + shuffle(through - block, rank) + running - own;
        const bool here = from < target && from + own >= target;
        const u32 ballot = __ballot_sync(0xffffffffu, here);
        if (ballot != 0) {
            u32 b = lane * OWN;
#pragma unroll 1
            while (here && from + shared->bins[b] < target) {
                from += shared->bins[b];
                b += 1;
            }
            __syncwarp();
            const u32 leader = __ffs(ballot) - 1;
            b = __shfl_sync(0xffffffffu, b, leader);
            from = shuffle(from, leader);
            if (lane < CLUSTER) {
                peer_store(&shared->found_bin, lane, rank * BINS_OF_BLOCK + b);
                peer_store(&shared->found_before, lane, from);
            }
        }
    }
    cluster_sync();
}

// Sorts a key a thread, ascending, over the first `size` threads (a power of two, at least 32); a bitonic sort. Within a
// warp keys are exchanged by shuffles, beyond it through `keys`.
static __device__ u64 sort_keys(u64 *keys, u64 key, u32 size)
{
    const u32 t = threadIdx.x;
#pragma unroll 1
    for (u32 span = 2; span <= size; span <<= 1) {
#pragma unroll 1
        for (u32 stride = span >> 1; stride > 0; stride >>= 1) {
            u64 other;
            if (stride >= 32) {
                __syncthreads();
                keys[t] = key;
                __syncthreads();
                other = keys[t ^ stride];
            } else {
                other = __shfl_xor_sync(0xffffffffu, key, stride);
            }
            const bool take_smaller = ((t & stride) == 0) == ((t & span) == 0);
            key = (key < other) == take_smaller ? key : other;
        }
    }
    return key;
}

// Block 0: the cut among the gathered keys, of which `before` is the mass ranked higher.
static __device__ void cut_among(Shared *shared, u32 count, int vocab, float row_max, u128 before)
{
    u32 size = 32;
    while (size < count) {
        size <<= 1;
    }
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const u64 key = sort_keys(shared->keys, threadIdx.x < count ? shared->keys[threadIdx.x] : NO_KEY, size);
    u128 running = 0;
    u64 mass = 0;
    if (warp * 32 < count) {
        mass = threadIdx.x < count ? weight(logit_of(key), row_max) : 0;
        running = scan_warp(mass);
    }
    if (lane == 31) {
        shared->shared128[warp] = running;
    }
    __syncthreads();
    if (warp == 0) {
        const u128 total = shared->shared128[lane];
        shared->shared128[lane] = scan_warp(total) - total;
    }
    __syncthreads();
    const u128 target = shared->target;
    const u128 from = before + shared->shared128[warp] + running - mass;
    if (from < target && from + mass >= target) {
        const u128 bound = shared->inexact ? (shared->whole >> 49) + (u128)vocab + 1 : (u128)0;
        const bool near = from + mass - target < bound || (from > 0 && target - from <= bound);
        shared->cut_key = key;
        shared->cut_outcome = near ? FLAGGED : CUT;
    }
    __syncthreads();
    if (threadIdx.x > 0 && threadIdx.x < CLUSTER) {
        peer_store(&shared->cut_key, threadIdx.x, shared->cut_key);
    }
}

// The smallest and largest of (low, high) over the block.
static __device__ void block_range(Shared *shared, u64 *low, u64 *high)
{
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
#pragma unroll 1
    for (int half = 16; half > 0; half >>= 1) {
        *low = min(*low, __shfl_xor_sync(0xffffffffu, *low, half));
        *high = max(*high, __shfl_xor_sync(0xffffffffu, *high, half));
    }
    if (lane == 0) {
        shared->shared64[warp] = *low;
        shared->shared64[32 + warp] = *high;
    }
    __syncthreads();
    *low = shared->shared64[lane];
    *high = shared->shared64[32 + lane];
#pragma unroll 1
    for (int half = 16; half > 0; half >>= 1) {
        *low = min(*low, __shfl_xor_sync(0xffffffffu, *low, half));
        *high = max(*high, __shfl_xor_sync(0xffffffffu, *high, half));
    }
}

// Appends a candidate's key to this block's list, which counts it even where it no longer fits. All lanes of a warp
// call.
static __device__ __forceinline__ void append(Shared *shared, bool candidate, u64 key)
{
    const u32 lane = threadIdx.x & 31;
    const u32 ballot = __ballot_sync(0xffffffffu, candidate);
    if (ballot == 0) {
        return;
    }
    const u32 leader = __ffs(ballot) - 1;
    u32 at = 0;
    if (lane == leader) {
        at = atomicAdd(&shared->own_candidates, __popc(ballot));
    }
    at = __shfl_sync(0xffffffffu, at, leader) + __popc(ballot & ((1u << lane) - 1));
    if (candidate && at < CAPACITY) {
        shared->own_keys[at] = key;
    }
}

// Sends this block's candidates to block 0 and returns their number over the cluster. The list of block 0 is whole where
// they fit.
static __device__ u32 collect(Shared *shared)
{
    __syncthreads();
    const u32 own = shared->own_candidates;
    if (threadIdx.x == 0 && own > 0) {
        shared->own_base = peer_add(&shared->candidates, 0, own);
    }
    __syncthreads();
    const u32 base = shared->own_base;
#pragma unroll 1
    for (u32 i = threadIdx.x; i < own && base + i < CAPACITY; i += LANES) {
        peer_store(&shared->keys[base + i], 0, shared->own_keys[i]);
    }
    cluster_sync();
    return peer_load(&shared->candidates, 0);
}

extern "C" __global__ void
#if CLUSTER > 1
    __cluster_dims__(CLUSTER, 1, 1)
#endif
        __launch_bounds__(LANES, 1)
            exact_top_p(const float *logits, const float *p, int vocab, int length, float *output, Result *results)
{
    extern __shared__ __align__(16) unsigned char dynamic[];
    Shared *shared = (Shared *)dynamic;
    const u32 rank = blockIdx.x, row = blockIdx.y;
    // `length` is a multiple of 4.
    const int begin = min((int)rank * length, vocab), count = min(length, vocab - begin);
    const float *source = logits + (size_t)row * vocab + begin;
    float *sink = output + (size_t)row * vocab + begin;
    const float p_row = p[row];
    const bool wide = (vocab & 3) == 0;
#if CACHED
    float *slice = (float *)(dynamic + sizeof(Shared));
#else
    const float *slice = source;
#endif

    // No block may write into another's shared memory before that one has started.
    cluster_arrive();

    // Load; the largest and smallest logit, as monotone bits: a NaN's lie above infinity's.
    u32 highest_bits = 0, lowest_bits = 0xffffffffu;
    if (wide) {
        for (int i = threadIdx.x; i < count / 4; i += LANES) {
            const float4 four = ((const float4 *)source)[i];
#if CACHED
            ((float4 *)slice)[i] = four;
#endif
            const u32 x = monotone(four.x), y = monotone(four.y), z = monotone(four.z), w = monotone(four.w);
            highest_bits = max(highest_bits, max(max(x, y), max(z, w)));
            lowest_bits = min(lowest_bits, min(min(x, y), min(z, w)));
        }
    } else {
#pragma unroll 1
        for (int i = threadIdx.x; i < count; i += LANES) {
            const float logit = source[i];
#if CACHED
            slice[i] = logit;
#endif
            highest_bits = max(highest_bits, monotone(logit));
            lowest_bits = min(lowest_bits, monotone(logit));
        }
    }
    clear_bins(shared);
    if (threadIdx.x == 0) {
        shared->candidates = 0;
        shared->own_candidates = 0;
    }
    highest_bits = __reduce_max_sync(0xffffffffu, highest_bits);
    lowest_bits = __reduce_min_sync(0xffffffffu, lowest_bits);
    if ((threadIdx.x & 31) == 0) {
        shared->warp_bits[threadIdx.x >> 5] = highest_bits;
        shared->warp_bits[32 + (threadIdx.x >> 5)] = lowest_bits;
    }
    __syncthreads();
    cluster_wait();
    if (threadIdx.x < 32) {
        highest_bits = __reduce_max_sync(0xffffffffu, shared->warp_bits[threadIdx.x]);
        lowest_bits = __reduce_min_sync(0xffffffffu, shared->warp_bits[32 + threadIdx.x]);
        if (threadIdx.x < CLUSTER) {
            peer_store(&shared->block_bits[rank], threadIdx.x, highest_bits);
            peer_store(&shared->block_bits[CLUSTER + rank], threadIdx.x, lowest_bits);
        }
    }
    cluster_sync();
    {
        const u32 from = threadIdx.x & (CLUSTER - 1);
        highest_bits = __reduce_max_sync(0xffffffffu, shared->block_bits[from]);
        lowest_bits = __reduce_min_sync(0xffffffffu, shared->block_bits[CLUSTER + from]);
    }
    const float row_max = logit_of_bits(highest_bits), row_min = logit_of_bits(lowest_bits);
    const bool rejected = isnan(p_row) || !isfinite(row_max);
    u64 cut_key = NO_KEY;
    if (p_row >= 1.0f || rejected) {
        if (rank == 0 && threadIdx.x == 0) {
            results[row] = Result{NO_KEY, (u32)(p_row >= 1.0f ? DISABLED : REJECTED), 0};
        }
    } else {
        // Masses by bin of max - logit, which spread over the logits that have a weight.
        const float span = fminf(row_max - row_min, 44.0f);
        const float scale = span > 0.0f ? (float)(BINS - 1) / span : 0.0f;
        bool inexact = false;
#pragma unroll 1
        for (int first = threadIdx.x; first < count; first += AT_ONCE * LANES) {
            u32 bins[AT_ONCE];
            u64 masses[AT_ONCE];
#pragma unroll
            for (int j = 0; j < AT_ONCE; j++) {
                const int i = first + j * LANES;
                const float logit = i < count ? slice[i] : NEGATIVE_INFINITY;
                inexact |= logit < row_max && row_max - logit <= NOT_EXACT_WITHIN;
                masses[j] = weight(logit, row_max);
                bins[j] = first_bin(logit, row_max, scale);
            }
            add_masses(shared, bins, masses);
        }
        inexact = __syncthreads_or(inexact);
        find_bin(shared, rank, true, inexact, p_row, 0);
        u128 before = shared->found_before;
        const u32 bin = shared->found_bin;

        // Gather the bin's keys; divide their range again while they are too many.
        u64 low = 0, high = NO_KEY;
        bool by_bin = true;
        u32 candidates;
        while (true) {
#pragma unroll 1
            for (int start = 0; start < count; start += 4 * LANES) {
                float logit[4];
                bool candidate[4], any = false;
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    const int i = start + j * LANES + threadIdx.x;
                    logit[j] = i < count ? slice[i] : NEGATIVE_INFINITY;
                    const u64 key = key_of(logit[j], begin + i);
                    const bool inside =
                        by_bin ? first_bin(logit[j], row_max, scale) == bin : (key >= low && key <= high);
                    candidate[j] = i < count && inside;
                    any |= candidate[j];
                }
                if (__any_sync(0xffffffffu, any)) {
#pragma unroll 1
                    for (int j = 0; j < 4; j++) {
                        const float of = j == 0 ? logit[0] : j == 1 ? logit[1] : j == 2 ? logit[2] : logit[3];
                        const bool inside = j == 0   ? candidate[0]
                                            : j == 1 ? candidate[1]
                                            : j == 2 ? candidate[2]
                                                     : candidate[3];
                        // What has no weight is in no bin.
                        const bool appended = inside && (double)of - (double)row_max >= NO_WEIGHT_BELOW;
                        append(shared, appended, key_of(of, begin + start + j * LANES + threadIdx.x));
                    }
                }
            }
            candidates = collect(shared);
            if (candidates <= CAPACITY) {
                break;
            }
            clear_bins(shared);
            if (by_bin) {
                u64 lowest = NO_KEY, highest = 0;
#pragma unroll 1
                for (int i = threadIdx.x; i < count; i += LANES) {
                    if (first_bin(slice[i], row_max, scale) == bin) {
                        lowest = min(lowest, key_of(slice[i], begin + i));
                        highest = max(highest, key_of(slice[i], begin + i));
                    }
                }
                block_range(shared, &lowest, &highest);
                if (threadIdx.x < CLUSTER) {
                    peer_store(&shared->block_low[rank], threadIdx.x, lowest);
                    peer_store(&shared->block_high[rank], threadIdx.x, highest);
                }
                cluster_sync();
                low = NO_KEY;
                high = 0;
#pragma unroll 1
                for (u32 r = 0; r < CLUSTER; r++) {
                    low = min(low, shared->block_low[r]);
                    high = max(high, shared->block_high[r]);
                }
            }
            const int bits = 64 - __clzll((long long)(high - low));
            const int shift = max(bits - BINS_LOG2, 0);
            __syncthreads();
#pragma unroll 1
            for (int first = threadIdx.x; first < count; first += AT_ONCE * LANES) {
                u32 bins[AT_ONCE];
                u64 masses[AT_ONCE];
#pragma unroll
                for (int j = 0; j < AT_ONCE; j++) {
                    const int i = first + j * LANES;
                    const float logit = i < count ? slice[i] : NEGATIVE_INFINITY;
                    const u64 key = key_of(logit, begin + i);
                    const bool inside = i < count && key >= low && key <= high;
                    masses[j] = inside ? weight(logit, row_max) : 0;
                    bins[j] = inside ? (u32)((key - low) >> shift) : 0;
                }
                add_masses(shared, bins, masses);
            }
            by_bin = false;
            find_bin(shared, rank, false, false, p_row, before);
            if (threadIdx.x == 0) {
                shared->candidates = 0;
                shared->own_candidates = 0;
            }
            before = shared->found_before;
            low += (u64)shared->found_bin << shift;
            high = min(high, low + ((1ULL << shift) - 1));
            cluster_sync();
        }
        if (rank == 0) {
            cut_among(shared, candidates, vocab, row_max, before);
        }
        cluster_sync();
        cut_key = shared->cut_key;
        if (rank == 0 && threadIdx.x == 0) {
            results[row] = Result{cut_key, shared->cut_outcome, candidates};
        }
    }

    // Mask. A row that is returned untouched has no key above its cut.
    if (wide) {
        for (int i = threadIdx.x; i < count / 4; i += LANES) {
            float4 four = ((const float4 *)slice)[i];
            const u32 id = begin + 4 * i;
            four.x = key_of(four.x, id) <= cut_key ? four.x : NEGATIVE_INFINITY;
            four.y = key_of(four.y, id + 1) <= cut_key ? four.y : NEGATIVE_INFINITY;
            four.z = key_of(four.z, id + 2) <= cut_key ? four.z : NEGATIVE_INFINITY;
            four.w = key_of(four.w, id + 3) <= cut_key ? four.w : NEGATIVE_INFINITY;
            ((float4 *)sink)[i] = four;
        }
    } else {
#pragma unroll 1
        for (int i = threadIdx.x; i < count; i += LANES) {
            sink[i] = key_of(slice[i], begin + i) <= cut_key ? slice[i] : NEGATIVE_INFINITY;
        }
    }
}

// Bytes of shared memory before the slice, for the host to add to.
extern "C" __device__ const u32 exact_top_p_shared_bytes = sizeof(Shared);
