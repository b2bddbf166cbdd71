// Upper bounds on the squared distance of rows to the nearest of many centres, in single precision, for D columns.
//
// A thread holds a row in registers and reads the centres together with its block. Rounding errors are added: ``relative`` for a
// sum of D squares, and ``coarse`` times both lengths for coordinates that were rounded before.

#include <cuda_fp16.h>

#define SHARED 128  // centres at a time

__device__ float single(float x) { return x; }
__device__ float single(double x) { return (float)x; }
__device__ float single(__half x) { return __half2float(x); }

// values: (n, D) rows; rows: (count,) of them, or null for all; centres: (c, D); bounds: (n,)
extern "C" __global__ void show(const TYPE* values, const long long* rows, long long count, const float* centres, int c,
                                int cosine, float relative, float coarse, float longest, float* bounds) {
  __shared__ float mine[SHARED * D];
  const long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  const long long row = k < count ? (rows ? rows[k] : k) : -1;
  float x[D];
  float square = 0.0f;
  if (row >= 0) {
#pragma unroll
    for (int j = 0; j < D; j++) {
      x[j] = single(values[row * D + j]);
      square = fmaf(x[j], x[j], square);
    }
  }
  float least = __int_as_float(0x7f800000);
  for (int first = 0; first < c; first += SHARED) {
    const int some = min(SHARED, c - first);
    __syncthreads();
    for (int j = threadIdx.x; j < some * D; j += blockDim.x) mine[j] = centres[(long long)first * D + j];
    __syncthreads();
    if (row < 0) continue;
    for (int a = 0; a < some; a++) {
      float total = 0.0f;
      if (cosine) {
#pragma unroll
        for (int j = 0; j < D; j++) total = fmaf(x[j], mine[a * D + j], total);
        least = fminf(least, -total);
      } else {
#pragma unroll
        for (int j = 0; j < D; j++) {
          const float u = x[j] - mine[a * D + j];
          total = fmaf(u, u, total);
        }
        least = fminf(least, total);
      }
    }
  }
  if (row < 0) return;
  if (cosine) {
    least = 2.0f + 2.0f * least * rsqrtf(square) + 2.0f * relative;
  } else {
    const float distance = sqrtf(least) + coarse * (sqrtf(square) + longest);
    least = distance * distance * (1.0f + relative) + 1e-33f;  // smaller squares may underflow
  }
  bounds[row] = fminf(bounds[row], fmaxf(least, 0.0f));
}
