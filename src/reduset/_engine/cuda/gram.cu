// The matrix φ(xᵢ, yⱼ) of two sets of points in the coordinates of a frame; one thread per entry.

#include "profile.cuh"

// points: (n, D), others: (m, D); out: (n, m)
extern "C" __global__ void gram(const REAL* points, const REAL* others, long long n, int m, double exponent, const double* table,
                                int knots, double step, double* out) {
  const Shape shape = {exponent, table, knots, step};
  const long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= n * m) return;
  out[k] = exp_minus(depth_of(gap_of(points + (k / m) * D, others + (k % m) * D), shape));
}
