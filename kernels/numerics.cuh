// The exponential and the logarithm that every kernel here uses: IEEE-754 binary64 operations with explicit fused
// multiply-adds in one fixed order, so that the CPU model (src/kernels/numerics.rs) gives the same bits. Compile with
// --fmad=false: no other operation may be fused. Coefficients are the Taylor series'.
#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;

#define NEGATIVE_INFINITY __int_as_float(0xff800000)
#define POSITIVE_INFINITY __int_as_float(0x7f800000)

static __device__ __forceinline__ double power_of_two(int k) { return __longlong_as_double((long long)(k + 1023) << 52); }

// exp(x) = result * 2^k for |x| <= 700; the result lies in [0.70, 1.42] and within 2^-51 of the truth, relatively.
static __device__ __forceinline__ double exp_parts(double x, int *k_out)
{
    // Adding 1.5 * 2^52 rounds to an integer, nearest even, which then stands in the low bits.
    const double shifted = fma(x, 1.4426950408889634, 6755399441055744.0);
    const double k = shifted - 6755399441055744.0;
    double r = fma(-k, __longlong_as_double(0x3fe62e42fefa39efLL), x);
    r = fma(-k, __longlong_as_double(0x3c7abc9e3b39803fLL), r);
    double sum = 1.0 / 6227020800.0;
    sum = fma(sum, r, 1.0 / 479001600.0);
    sum = fma(sum, r, 1.0 / 39916800.0);
    sum = fma(sum, r, 1.0 / 3628800.0);
    sum = fma(sum, r, 1.0 / 362880.0);
    sum = fma(sum, r, 1.0 / 40320.0);
    sum = fma(sum, r, 1.0 / 5040.0);
    sum = fma(sum, r, 1.0 / 720.0);
    sum = fma(sum, r, 1.0 / 120.0);
    sum = fma(sum, r, 1.0 / 24.0);
    sum = fma(sum, r, 1.0 / 6.0);
    sum = fma(sum, r, 1.0 / 2.0);
    sum = fma(sum, r, 1.0);
    *k_out = (int)__double_as_longlong(shifted);
    return fma(sum, r, 1.0);
}

// exp(x), rounded once to fp32 from binary64. NaN stays NaN.
static __device__ __forceinline__ float exp32(float x32)
{
    const double x = (double)x32;
    if (isnan(x32)) {
        return __int_as_float(0x7fc00000);
    }
    if (x < -700.0) {
        return 0.0f;
    }
    int k;
    const double fraction = exp_parts(fmin(x, 700.0), &k);
    return __double2float_rn(fraction * power_of_two(k));
}

// ln(x) of a positive, finite x, rounded once to fp32 from binary64.
static __device__ __forceinline__ float log32(float x)
{
    const u64 bits = (u64)__double_as_longlong((double)x);
    int exponent = (int)(bits >> 52) - 1023;
    double mantissa = __longlong_as_double((long long)((bits & ((1ULL << 52) - 1)) | (1023ULL << 52)));
    if (mantissa > 1.4142135623730951) {
        mantissa *= 0.5;
        exponent += 1;
    }
    // ln(m) = 2 atanh((m - 1) / (m + 1)).
    const double s = (mantissa - 1.0) / (mantissa + 1.0);
    const double z = s * s;
    double sum = 1.0 / 19.0;
    sum = fma(sum, z, 1.0 / 17.0);
    sum = fma(sum, z, 1.0 / 15.0);
    sum = fma(sum, z, 1.0 / 13.0);
    sum = fma(sum, z, 1.0 / 11.0);
    sum = fma(sum, z, 1.0 / 9.0);
    sum = fma(sum, z, 1.0 / 7.0);
    sum = fma(sum, z, 1.0 / 5.0);
    sum = fma(sum, z, 1.0 / 3.0);
    sum = fma(sum, z, 1.0);
    return __double2float_rn(fma((double)exponent, __longlong_as_double(0x3fe62e42fefa39efLL), 2.0 * s * sum));
}

// The logit's bits in an order that ascends with it; -0.0 and 0.0 are one.
static __device__ __forceinline__ u32 monotone(float logit)
{
    const u32 bits = __float_as_uint(logit + 0.0f);
    return (bits >> 31) ? ~bits : (bits | 0x80000000u);
}

// Every block here has 1,024 threads: 32 warps of 32.
#define LANES 1024

// Sums a value a thread: within each warp by halves, then the warps' sums the same way. All threads get the result.
static __device__ __forceinline__ float fold_sum(float value)
{
    for (int half = 16; half > 0; half >>= 1) {
        value += __shfl_xor_sync(0xffffffffu, value, half);
    }
    return value;
}

static __device__ __forceinline__ float block_sum(float value, float *shared32)
{
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    value = fold_sum(value);
    __syncthreads();
    if (lane == 0) {
        shared32[warp] = value;
    }
    __syncthreads();
    return fold_sum(shared32[lane]);
}

static __device__ __forceinline__ float block_max(float value, float *shared32)
{
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (int half = 16; half > 0; half >>= 1) {
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, half));
    }
    __syncthreads();
    if (lane == 0) {
        shared32[warp] = value;
    }
    __syncthreads();
    value = shared32[lane];
    for (int half = 16; half > 0; half >>= 1) {
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, half));
    }
    return value;
}

static __device__ __forceinline__ float block_min(float value, float *shared32) { return -block_max(-value, shared32); }
