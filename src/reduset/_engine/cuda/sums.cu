// Weighted kernel sums at many queries, Σᵢ wᵢ exp(−depth of the gap between point i and q).
//
// A thread has R queries in its registers; points go through shared memory. Sums inside a tile run in REAL, across tiles in double
// precision, always in the order of the points. A block has one span of them, so that few queries keep a card busy too; spans are
// added in their order (`add`): no number of blocks changes a result.

#include "profile.cuh"

#define LOG2_E 1.4426950408889634

__device__ float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
#include "tile.cuh"

// queries: (count, D); points: (m, D), weights: (m,); out: (spans, count).
// Gaps by products are for queries of at most the squared length ``close``. Of a Gaussian in single precision exp(−|q|²) is then left
// for the end, and what is summed, exp(2z·q − |z|²) ≤ exp(|q|²), has neither room to overflow nor need of a squared distance.
extern "C" __global__ void __launch_bounds__(THREADS) value_sums(
    const REAL* queries, long long count, const REAL* points, const REAL* weights, long long m, int span, double exponent,
    const double* table, int knots, double step, double close, double* out) {
  __shared__ Tile tile;
  const Shape shape = {exponent, table, knots, step};
  const long long begin = (long long)blockIdx.y * span, end = min(m, begin + span);
  REAL q[R][D];
  REAL own[R], longest = 0;
#pragma unroll
  for (int r = 0; r < R; r++) {
    const long long k = min(((long long)blockIdx.x * R + r) * blockDim.x + threadIdx.x, count - 1);
    own[r] = 0;
#pragma unroll
    for (int j = 0; j < D; j++) {
      q[r][j] = queries[k * D + j];
      own[r] += q[r][j] * q[r][j];
    }
    longest = own[r] > longest ? own[r] : longest;
  }
  const bool by_product = METRIC == SQUARED && longest <= close;
  if (by_product) {
#pragma unroll
    for (int r = 0; r < R; r++) {
#pragma unroll
      for (int j = 0; j < D; j++) q[r][j] *= FOLDED ? (REAL)(2 * LOG2_E) : (REAL)-2;
    }
  }
  double total[R] = {};
  for (long long first = begin; first < end; first += TILE) {
    const int some = load(tile, points, weights, first, end);
    REAL part[R] = {};
    if (by_product) {
#pragma unroll 2
      for (int i = 0; i < some; i++) {
#pragma unroll
        for (int r = 0; r < R; r++) {
#if FOLDED
          REAL t = (REAL)-LOG2_E * tile.squares[i];
#pragma unroll
          for (int j = 0; j < D; j++) t += tile.points[i * D + j] * q[r][j];
          part[r] += tile.weights[i] * power_of_two(t);
#else
          const REAL t = gap_by_product(tile.points + i * D, tile.squares[i], q[r], own[r]);
          part[r] += tile.weights[i] * exp_minus(depth_of(t, shape));
#endif
        }
      }
    } else {
      for (int i = 0; i < some; i++) {
#pragma unroll
        for (int r = 0; r < R; r++) {
          part[r] += tile.weights[i] * exp_minus(depth_of(gap_of(tile.points + i * D, q[r]), shape));
        }
      }
    }
#pragma unroll
    for (int r = 0; r < R; r++) total[r] += part[r];
  }
#pragma unroll
  for (int r = 0; r < R; r++) {
    const long long k = ((long long)blockIdx.x * R + r) * blockDim.x + threadIdx.x;
    if (k < count) out[blockIdx.y * count + k] = FOLDED && by_product ? total[r] * exp(-(double)own[r]) : total[r];
  }
}
