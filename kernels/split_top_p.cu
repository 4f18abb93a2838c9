// The split top-p algorithm in fp32, written from the published facts of the kernel: statistics, five rounds of eight
// pivots, mask. Seven launches, grid (slices, batch), 1,024 threads. The CPU model is src/kernels/cpu/split.rs; both
// add in the same order and give the same bits.
#include "numerics.cuh"

#define PIVOTS 8
#define ROUNDS 5
#define TIE_BAND 1e-9f
#define TILE 8192
#define MAX_SLICES 32

// What a slice's statistics are: [batch, MAX_SLICES].
struct Slice {
    float max, sum, min;
};

// What a pivot leaves above it in a slice: [ROUNDS, batch, MAX_SLICES, PIVOTS].
struct Probe {
    float mass, smallest;
    u32 count;
};

enum Status { SEARCHING = 0, KEEP_ROW = 1, RIGHT = 2, BEST = 3 };

// The search's state before a round: [ROUNDS + 1, batch].
struct State {
    float low, high;
    int status;
    // The cut: the pivot, in which round and place it stood, and how many duplicates stay.
    float pivot, smallest;
    int round, number;
    u32 duplicates_kept;
};

struct Row {
    float max, normalizer, min;
};

static __device__ Row combine_statistics(const Slice *slices, int count)
{
    Row row = {NEGATIVE_INFINITY, 0.0f, POSITIVE_INFINITY};
    for (int s = 0; s < count; s++) {
        row.max = fmaxf(row.max, slices[s].max);
        row.min = fminf(row.min, slices[s].min);
    }
    for (int s = 0; s < count; s++) {
        if (slices[s].max != NEGATIVE_INFINITY) {
            row.normalizer = row.normalizer + slices[s].sum * exp32(slices[s].max - row.max);
        }
    }
    return row;
}

static __device__ __forceinline__ float pivot_of(float low, float step, int number)
{
    return low * exp32(step * (float)(number + 1) / 9.0f);
}

static __device__ __forceinline__ bool in_band(const Probe &slice, float smallest)
{
    return slice.count > 0 && fabsf(slice.smallest - smallest) <= TIE_BAND;
}

static __device__ Probe combine_probes(const Probe *probes, int slices, int number)
{
    Probe whole = {0.0f, POSITIVE_INFINITY, 0};
    for (int s = 0; s < slices; s++) {
        whole.mass += probes[s * PIVOTS + number].mass;
        whole.smallest = fminf(whole.smallest, probes[s * PIVOTS + number].smallest);
    }
    for (int s = 0; s < slices; s++) {
        if (in_band(probes[s * PIVOTS + number], whole.smallest)) {
            whole.count += probes[s * PIVOTS + number].count;
        }
    }
    return whole;
}

// The state after a round, from what its pivots left above them.
static __device__ State decide(State state, const Probe *whole, int round, float p)
{
    const float step = log32(state.high / state.low);
    const float low = state.low, high = state.high;
    float next_low = low, next_high = high;
    for (int number = 0; number < PIVOTS; number++) {
        const float pivot = pivot_of(low, step, number);
        const Probe above = whole[number];
        if (above.mass >= p) {
            const bool right = above.mass - above.smallest * (float)above.count < p;
            if (right) {
                const float surplus = floorf(fmaxf(above.mass - p, 0.0f) / above.smallest);
                const float kept = fminf(fmaxf((float)above.count - surplus, 1.0f), (float)above.count);
                state.status = RIGHT;
                state.pivot = pivot;
                state.smallest = above.smallest;
                state.round = round;
                state.number = number;
                state.duplicates_kept = (u32)kept;
            } else {
                if (state.status != RIGHT && (state.round < 0 || pivot > state.pivot)) {
                    state.pivot = pivot;
                    state.smallest = above.smallest;
                    state.round = round;
                    state.number = number;
                    state.duplicates_kept = 0xffffffffu;
                }
                next_low = fmaxf(next_low, pivot);
            }
        } else {
            next_high = fminf(next_high, pivot);
        }
    }
    if (state.status == RIGHT) {
        return state;
    }
    state.low = next_low;
    state.high = next_high;
    if (round == ROUNDS - 1 || next_high <= next_low * (1.0f + 1e-7f)) {
        state.status = state.round < 0 ? KEEP_ROW : BEST;
    }
    return state;
}

// The row's statistics and its state before `round`, computed by every block alike and written by the first.
static __device__ void prologue(int round, int slices, int batch, float p, const Slice *statistics, State *states,
                                const Probe *probes, Row *row_out, State *state_out)
{
    __shared__ Probe whole[PIVOTS];
    const int row = blockIdx.y;
    if (round > 0 && threadIdx.x < PIVOTS) {
        const Probe *of_row = probes + ((size_t)(round - 1) * batch + row) * MAX_SLICES * PIVOTS;
        whole[threadIdx.x] = combine_probes(of_row, slices, threadIdx.x);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        const Row statistic = combine_statistics(statistics + (size_t)row * MAX_SLICES, slices);
        State state;
        if (round == 0) {
            state.low = fmaxf(exp32(statistic.min - statistic.max) / statistic.normalizer, 1e-30f);
            state.high = 1.0f / statistic.normalizer;
            state.status = p >= 1.0f || state.high <= state.low * (1.0f + 1e-6f) ? KEEP_ROW : SEARCHING;
            state.pivot = 0.0f;
            state.smallest = 0.0f;
            state.round = -1;
            state.number = 0;
            state.duplicates_kept = 0;
        } else {
            state = states[(size_t)(round - 1) * batch + row];
            if (state.status == SEARCHING) {
                state = decide(state, whole, round - 1, p);
            }
        }
        if (blockIdx.x == 0) {
            states[(size_t)round * batch + row] = state;
        }
        *row_out = statistic;
        *state_out = state;
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(LANES) split_top_p_statistics(const float *logits, int vocab, Slice *out)
{
    __shared__ float shared32[32];
    const int length = max((vocab + (int)gridDim.x - 1) / (int)gridDim.x, 1);
    const int begin = min((int)blockIdx.x * length, vocab), end = min(begin + length, vocab);
    logits += (size_t)blockIdx.y * vocab;
    float row_max = NEGATIVE_INFINITY, sum = 0.0f, row_min = POSITIVE_INFINITY;
    for (int tile = begin; tile < end; tile += TILE) {
        const int tile_end = min(tile + TILE, end);
        float tile_max = NEGATIVE_INFINITY, tile_min = POSITIVE_INFINITY;
        for (int i = tile + threadIdx.x; i < tile_end; i += LANES) {
            const float logit = logits[i];
            if (logit != NEGATIVE_INFINITY) {
                tile_max = fmaxf(tile_max, logit);
                tile_min = fminf(tile_min, logit);
            }
        }
        row_min = fminf(row_min, block_min(tile_min, shared32));
        const float new_max = fmaxf(row_max, block_max(tile_max, shared32));
        if (new_max == NEGATIVE_INFINITY) {
            continue;
        }
        float lane = 0.0f;
        for (int i = tile + threadIdx.x; i < tile_end; i += LANES) {
            lane += exp32(logits[i] - new_max);
        }
        const float tile_sum = block_sum(lane, shared32);
        sum = sum * exp32(row_max - new_max) + tile_sum;
        row_max = new_max;
    }
    if (threadIdx.x == 0) {
        out[(size_t)blockIdx.y * MAX_SLICES + blockIdx.x] = Slice{row_max, sum, row_min};
    }
}

extern "C" __global__ void __launch_bounds__(LANES)
    split_top_p_step(const float *logits, const float *p, int vocab, int round, const Slice *statistics, State *states,
                     Probe *probes)
{
    __shared__ float shared32[32];
    __shared__ u32 counts[PIVOTS];
    __shared__ Row row;
    __shared__ State state;
    prologue(round, gridDim.x, gridDim.y, p[blockIdx.y], statistics, states, probes, &row, &state);
    if (state.status != SEARCHING) {
        return;
    }
    const int length = max((vocab + (int)gridDim.x - 1) / (int)gridDim.x, 1);
    const int begin = min((int)blockIdx.x * length, vocab), end = min(begin + length, vocab);
    logits += (size_t)blockIdx.y * vocab;
    const float step = log32(state.high / state.low);
    float pivots[PIVOTS], masses[PIVOTS], smallest[PIVOTS];
    u32 tied[PIVOTS];
    for (int f = 0; f < PIVOTS; f++) {
        pivots[f] = pivot_of(state.low, step, f);
        masses[f] = 0.0f;
        smallest[f] = POSITIVE_INFINITY;
        tied[f] = 0;
    }
    for (int i = begin + threadIdx.x; i < end; i += LANES) {
        const float probability = exp32(logits[i] - row.max) / row.normalizer;
#pragma unroll
        for (int f = 0; f < PIVOTS; f++) {
            if (probability > pivots[f]) {
                masses[f] += probability;
                smallest[f] = fminf(smallest[f], probability);
            }
        }
    }
    for (int f = 0; f < PIVOTS; f++) {
        masses[f] = block_sum(masses[f], shared32);
        smallest[f] = block_min(smallest[f], shared32);
    }
    if (threadIdx.x < PIVOTS) {
        counts[threadIdx.x] = 0;
    }
    __syncthreads();
    for (int i = begin + threadIdx.x; i < end; i += LANES) {
        const float probability = exp32(logits[i] - row.max) / row.normalizer;
#pragma unroll
        for (int f = 0; f < PIVOTS; f++) {
            tied[f] += probability > pivots[f] && fabsf(probability - smallest[f]) <= TIE_BAND;
        }
    }
    for (int f = 0; f < PIVOTS; f++) {
        if (tied[f] > 0) {
            atomicAdd(&counts[f], tied[f]);
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        Probe *out = probes + ((size_t)round * gridDim.y + blockIdx.y) * MAX_SLICES * PIVOTS + blockIdx.x * PIVOTS;
        for (int f = 0; f < PIVOTS; f++) {
            out[f] = Probe{masses[f], smallest[f], counts[f]};
        }
    }
}

// The number of duplicates, in token order, before this thread's in a group of 1,024 tokens; *total gets their number.
static __device__ u32 rank_of(bool duplicate, u32 *warps, u32 *total)
{
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const u32 ballot = __ballot_sync(0xffffffffu, duplicate);
    __syncthreads();
    if (lane == 0) {
        warps[warp] = __popc(ballot);
    }
    __syncthreads();
    u32 before = __popc(ballot & ((1u << lane) - 1)), all = 0;
    for (u32 w = 0; w < 32; w++) {
        const u32 count = warps[w];
        before += w < warp ? count : 0;
        all += count;
    }
    *total = all;
    return before;
}

template <bool PATCH>
static __device__ void mask(const float *logits, const float *p, int vocab, const Slice *statistics, State *states,
                            const Probe *probes, float *output)
{
    __shared__ u32 warps[32];
    __shared__ Row row;
    __shared__ State state;
    __shared__ u32 before_slice;
    prologue(ROUNDS, gridDim.x, gridDim.y, p[blockIdx.y], statistics, states, probes, &row, &state);
    const int length = max((vocab + (int)gridDim.x - 1) / (int)gridDim.x, 1);
    const int begin = min((int)blockIdx.x * length, vocab), end = min(begin + length, vocab);
    logits += (size_t)blockIdx.y * vocab;
    output += (size_t)blockIdx.y * vocab;
    if (state.status == KEEP_ROW || state.pivot * row.normalizer >= 1.0f) {
        for (int i = begin + threadIdx.x; i < end; i += LANES) {
            output[i] = logits[i];
        }
        return;
    }
    if (threadIdx.x == 0) {
        const Probe *of_row = probes + ((size_t)state.round * gridDim.y + blockIdx.y) * MAX_SLICES * PIVOTS;
        u32 before = 0;
        for (u32 s = 0; s < blockIdx.x; s++) {
            const Probe &slice = of_row[s * PIVOTS + state.number];
            before += in_band(slice, state.smallest) ? slice.count : 0;
        }
        before_slice = before;
    }
    __syncthreads();
    const float threshold = log32(state.pivot) + log32(row.normalizer) + row.max;
    u32 duplicates = before_slice;
    for (int tile = begin; tile < end; tile += TILE) {
        if (!PATCH) {
            duplicates = before_slice;
        }
        const int tile_end = min(tile + TILE, end);
        for (int group = tile; group < tile_end; group += LANES) {
            const int i = group + threadIdx.x;
            const float logit = i < tile_end ? logits[i] : NEGATIVE_INFINITY;
            const float probability = exp32(logit - row.max) / row.normalizer;
            bool keep = PATCH ? (probability > state.pivot || logit == row.max) : (logit > threshold);
            keep = keep && i < tile_end;
            const bool duplicate = keep && probability == state.smallest;
            if (__syncthreads_or(duplicate)) {
                u32 total;
                const u32 rank = duplicates + rank_of(duplicate, warps, &total);
                keep = keep && (!duplicate || rank < state.duplicates_kept);
                duplicates += total;
            }
            if (i < tile_end) {
                output[i] = keep ? logit : NEGATIVE_INFINITY;
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(LANES)
    split_top_p_mask_stock(const float *logits, const float *p, int vocab, const Slice *statistics, State *states,
                           const Probe *probes, float *output)
{
    mask<false>(logits, p, vocab, statistics, states, probes, output);
}

extern "C" __global__ void __launch_bounds__(LANES)
    split_top_p_mask_patch(const float *logits, const float *p, int vocab, const Slice *statistics, State *states,
                           const Probe *probes, float *output)
{
    mask<true>(logits, p, vocab, statistics, states, probes, output);
}
