// Weighted kernel sums and their gradients in the coordinates of a frame, Σᵢ wᵢ exp(−exponent) and Σᵢ wᵢ ∇exp(−exponent), in one
// pass.

#include "profile.cuh"
#include "tile.cuh"

// queries: (count, D); points: (m, D), weights: (m,); out: (spans, 1 + D, count).
extern "C" __global__ void __launch_bounds__(THREADS) gradient_sums(
    const REAL* queries, long long count, const REAL* points, const REAL* weights, long long m, int span, double exponent,
    const double* table, int knots, double step, double close, double* out) {
  __shared__ Tile tile;
  const Shape shape = {exponent, table, knots, step};
  const long long begin = (long long)blockIdx.y * span, end = min(m, begin + span);
  const long long mine = (long long)blockIdx.x * blockDim.x + threadIdx.x, k = min(mine, count - 1);
  REAL q[D];
  double total[1 + D] = {};
#pragma unroll
  for (int j = 0; j < D; j++) q[j] = queries[k * D + j];
  for (long long first = begin; first < end; first += TILE) {
    const int some = load(tile, points, weights, first, end);
    REAL part[1 + D] = {};
    for (int i = 0; i < some; i++) {
      const REAL* z = tile.points + i * D;
      const REAL t = gap_of(z, q), v = tile.weights[i] * exp_minus(depth_of(t, shape));
      part[0] += v;
#if METRIC == SQUARED
      const REAL pull = pull_of(v, t, shape);
#pragma unroll
      for (int j = 0; j < D; j++) part[1 + j] += pull * (z[j] - q[j]);
#else
#pragma unroll
      for (int j = 0; j < D; j++) {
        const REAL u = z[j] - q[j];
#if METRIC == CITYBLOCK
        part[1 + j] += u > 0 ? v : u < 0 ? -v : (REAL)0;
#else
        part[1 + j] += v * u / (1 + fabs(u));
#endif
      }
#endif
    }
#pragma unroll
    for (int j = 0; j <= D; j++) total[j] += part[j];
  }
  if (mine < count) {
#pragma unroll
    for (int j = 0; j <= D; j++) out[(blockIdx.y * (1 + D) + j) * count + mine] = total[j];
  }
}
