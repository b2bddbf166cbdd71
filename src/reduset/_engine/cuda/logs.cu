// Logarithms of weighted kernel sums without underflow: for a span of points the least exponent, and the sum relative to it.

#include "profile.cuh"
#include "tile.cuh"

// queries: (count, D); points: (m, D), weights: (m,); out: (spans, 2, count), the least exponent and Σ wᵢ exp(least − exponent).
extern "C" __global__ void __launch_bounds__(THREADS) log_sums(
    const REAL* queries, long long count, const REAL* points, const REAL* weights, long long m, int span, double exponent,
    const double* table, int knots, double step, double close, double* out) {
  __shared__ Tile tile;
  const Shape shape = {exponent, table, knots, step};
  const long long begin = (long long)blockIdx.y * span, end = min(m, begin + span);
  REAL q[R][D], least[R];
  double total[R] = {};
#pragma unroll
  for (int r = 0; r < R; r++) {
    const long long k = min(((long long)blockIdx.x * R + r) * blockDim.x + threadIdx.x, count - 1);
#pragma unroll
    for (int j = 0; j < D; j++) q[r][j] = queries[k * D + j];
    least[r] = __longlong_as_double(0x7ff0000000000000LL);
  }
  for (long long first = begin; first < end; first += TILE) {
    const int some = load(tile, points, weights, first, end);
    for (int i = 0; i < some; i++) {
      if (tile.weights[i] == 0) continue;  // points without weight must not set the scale
#pragma unroll
      for (int r = 0; r < R; r++) {
        const REAL depth = depth_of(gap_of(tile.points + i * D, q[r]), shape);
        if (depth < least[r]) {
          total[r] = total[r] * exp_minus(least[r] - depth) + tile.weights[i];
          least[r] = depth;
        } else if (depth - least[r] < (REAL)745) {
          total[r] += tile.weights[i] * exp_minus(depth - least[r]);
        }
      }
    }
  }
#pragma unroll
  for (int r = 0; r < R; r++) {
    const long long k = ((long long)blockIdx.x * R + r) * blockDim.x + threadIdx.x;
    if (k < count) {
      out[(2 * blockIdx.y) * count + k] = least[r];
      out[(2 * blockIdx.y + 1) * count + k] = total[r];
    }
  }
}
