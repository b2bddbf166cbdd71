// Rows in the coordinates of a frame, z = (x − centre)·scale, differences taken before anything is rounded; one thread a number.

#include <cuda_fp16.h>

__device__ double number(float x) { return x; }
__device__ double number(double x) { return x; }
__device__ double number(__half x) { return __half2float(x); }

// values: (count, D) of TYPE; out: the same of REAL
extern "C" __global__ void place(const TYPE* values, long long count, const double* centre, const double* scale, REAL* out) {
  const long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= count * D) return;
  const int j = (int)(k % D);
  out[k] = (REAL)((number(values[k]) - centre[j]) * scale[j]);
}
