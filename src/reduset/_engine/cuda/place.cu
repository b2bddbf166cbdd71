// Rows in the coordinates of a frame, z = (x − centre)·scale. Differences are taken before rounding. A thread computes EACH
// numbers.

#include "number.cuh"

// values: (count, D) of TYPE; out: the same of REAL
extern "C" __global__ void place(const TYPE* values, long long count, const double* centre, const double* scale, REAL* out) {
  const long long first = (long long)blockIdx.x * blockDim.x * EACH + threadIdx.x;
  TYPE x[EACH];
#pragma unroll
  for (int i = 0; i < EACH; i++) x[i] = values[min(first + (long long)i * blockDim.x, count * D - 1)];
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    const long long k = first + (long long)i * blockDim.x;
    const int j = (int)(k % D);
    if (k < count * D) out[k] = (REAL)((number(x[i]) - centre[j]) * scale[j]);
  }
}
