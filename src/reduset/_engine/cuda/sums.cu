// Weighted kernel sums at many queries, Σᵢ wᵢ exp(−exponent of the distance between point i and q).
//
// A thread holds R queries in registers, and points pass through shared memory. Sums inside a tile use REAL, sums across tiles
// double precision, always in the order of the points. A block processes one span of points, so that a few queries also occupy the
// GPU. Spans are added in their order (`add`), so that results do not depend on the number of blocks.

#include "profile.cuh"

#define LOG2_E 1.4426950408889634

__device__ float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
#include "tile.cuh"

// The value of point i of a tile, from its inner product with a scaled query.
__device__ REAL value_by_product(const Tile& tile, int i, const REAL* q, REAL own, const Shape& shape) {
#if FOLDED
  REAL t = (REAL)-LOG2_E * tile.squares[i];
#pragma unroll
  for (int j = 0; j < D; j++) t += tile.points[i * D + j] * q[j];
  return power_of_two(t);
#else
  return exp_minus(depth_of(gap_by_product(tile.points + i * D, tile.squares[i], q, own), shape));
#endif
}

// queries: (count, D); points: (m, D), weights: (m,); out: (spans, count).
// Distances come from products for queries with a squared length of at most ``close``. For a Gaussian in single precision the
// factor exp(−|q|²) is then applied at the end. The summands exp(2z·q − |z|²) ≤ exp(|q|²) cannot overflow and need no squared
// distance.
extern "C" __global__ void __launch_bounds__(THREADS) value_sums(
    const REAL* queries, long long count, const REAL* points, const REAL* weights, long long m, int span, double exponent,
    const double* table, int knots, double step, double close, double* out) {
  __shared__ Tile tile;
  const Shape shape = {exponent, table, knots, step};
  const long long begin = (long long)blockIdx.y * span, end = min(m, begin + span);
  REAL q[R][D];
  REAL own[R];
  bool near[R], all_near = true;
#pragma unroll
  for (int r = 0; r < R; r++) {
    const long long k = min(((long long)blockIdx.x * R + r) * blockDim.x + threadIdx.x, count - 1);
    own[r] = 0;
#pragma unroll
    for (int j = 0; j < D; j++) {
      q[r][j] = queries[k * D + j];
      own[r] += q[r][j] * q[r][j];
    }
    near[r] = METRIC == SQUARED && own[r] <= close;  // per query, so that its bits do not depend on other queries
    all_near = all_near && near[r];
    if (near[r]) {
#pragma unroll
      for (int j = 0; j < D; j++) q[r][j] *= FOLDED ? (REAL)(2 * LOG2_E) : (REAL)-2;
    }
  }
  double total[R] = {};
  for (long long first = begin; first < end; first += TILE) {
    const int some = load(tile, points, weights, first, end);
    REAL part[R] = {};
    if (all_near) {
#pragma unroll 2
      for (int i = 0; i < some; i++) {
#pragma unroll
        for (int r = 0; r < R; r++) part[r] += tile.weights[i] * value_by_product(tile, i, q[r], own[r], shape);
      }
    } else {
      for (int i = 0; i < some; i++) {
#pragma unroll
        for (int r = 0; r < R; r++) {
          part[r] += tile.weights[i] * (near[r] ? value_by_product(tile, i, q[r], own[r], shape)
                                                : exp_minus(depth_of(gap_of(tile.points + i * D, q[r]), shape)));
        }
      }
    }
#pragma unroll
    for (int r = 0; r < R; r++) total[r] += part[r];
  }
#pragma unroll
  for (int r = 0; r < R; r++) {
    const long long k = ((long long)blockIdx.x * R + r) * blockDim.x + threadIdx.x;
    if (k < count) out[blockIdx.y * count + k] = FOLDED && near[r] ? total[r] * exp(-(double)own[r]) : total[r];
  }
}
