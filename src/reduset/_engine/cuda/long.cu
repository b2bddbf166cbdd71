// Kernel sums of rows with many columns, from inner products of points and queries (a matrix product).
//
// A thread processes one query and a span of points. Spans are added in their order (`add`).

#include "profile.cuh"

#define CANCELLED 1e-3  // of |z|² + |q|²; for a root, smaller squared distances are computed from differences

__device__ REAL gap_at(const REAL* G, long long i, long long k, long long count, const REAL* points, const REAL* squares,
                       const REAL* queries, const REAL* own, int d) {
  const REAL both = squares[i] + own[k];
  REAL t = both - 2 * G[i * count + k];
#if FAMILY == ROOT
  if (t < (REAL)CANCELLED * both) {
    t = 0;
    for (int j = 0; j < d; j++) {
      const REAL u = points[i * d + j] - queries[k * d + j];
      t += u * u;
    }
  }
#endif
  return t > 0 ? t : (REAL)0;
}

// G: (m, count) inner products; points: (m, d), queries: (count, d), with their squared lengths; out: (spans, count)
extern "C" __global__ void value_sums(const REAL* G, const REAL* points, const REAL* squares, const REAL* weights, long long m,
                                      const REAL* queries, const REAL* own, long long count, int d, int span, double exponent,
                                      const double* table, int knots, double step, double* out) {
  const Shape shape = {exponent, table, knots, step};
  const long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= count) return;
  const long long begin = (long long)blockIdx.y * span, end = min(m, begin + span);
  double total = 0;
  for (long long first = begin; first < end; first += 128) {
    REAL part = 0;
    const long long stop = min(end, first + 128);
#pragma unroll 8
    for (long long i = first; i < stop; i++) {
      part += weights[i] * exp_minus(depth_of(gap_at(G, i, k, count, points, squares, queries, own, d), shape));
    }
    total += part;
  }
  out[blockIdx.y * count + k] = total;
}

// The same, as the least exponent and the sum relative to it; out: (spans, 2, count)
extern "C" __global__ void log_sums(const REAL* G, const REAL* points, const REAL* squares, const REAL* weights, long long m,
                                    const REAL* queries, const REAL* own, long long count, int d, int span, double exponent,
                                    const double* table, int knots, double step, double* out) {
  const Shape shape = {exponent, table, knots, step};
  const long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= count) return;
  const long long begin = (long long)blockIdx.y * span, end = min(m, begin + span);
  double least = __longlong_as_double(0x7ff0000000000000LL), total = 0;
  for (long long i = begin; i < end; i++) {
    if (weights[i] == 0) continue;
    const double depth = depth_of(gap_at(G, i, k, count, points, squares, queries, own, d), shape);
    if (depth < least) {
      total = total * exp(depth - least) + weights[i];
      least = depth;
    } else if (depth - least < 745.0) {
      total += weights[i] * exp(least - depth);
    }
  }
  out[(2 * blockIdx.y) * count + k] = least;
  out[(2 * blockIdx.y + 1) * count + k] = total;
}
