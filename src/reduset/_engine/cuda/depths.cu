// Convert distances to exponents of a profile, in place; one thread per number.

#include "profile.cuh"

extern "C" __global__ void depths(REAL* gaps, long long count, double exponent, const double* table, int knots, double step) {
  const Shape shape = {exponent, table, knots, step};
  const long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (k < count) gaps[k] = depth_of(gaps[k], shape);
}
