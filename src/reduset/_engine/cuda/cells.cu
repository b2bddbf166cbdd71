// Sums over the rows of each cell: a thread has a cell and a column, or the mass, and adds its rows in their order.

#include <cuda_fp16.h>

__device__ double number(float x) { return x; }
__device__ double number(double x) { return x; }
__device__ double number(__half x) { return __half2float(x); }

// values: (n, d); weights: (n,); order: (n,) the rows by cell, starts: (m + 1,) where each begins; centres: (m, d); sums: (m, 1 + d)
extern "C" __global__ void cells(const TYPE* values, const double* weights, const long long* order, const long long* starts,
                                 const double* centres, int m, int d, double* sums) {
  const long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= (long long)m * (1 + d)) return;
  const int cell = (int)(k / (1 + d)), j = (int)(k % (1 + d)) - 1;
  const double centre = j < 0 ? 0.0 : centres[(long long)cell * d + j];
  double total = 0;
  for (long long i = starts[cell]; i < starts[cell + 1]; i++) {
    const long long row = order[i];
    total += weights[row] * (j < 0 ? 1.0 : number(values[row * d + j]) - centre);
  }
  sums[k] += total;
}
