// Sums over the rows of each cluster. A block computes one column of one cluster, or its mass. Its threads take rows in turn, and
// their sums are added pairwise. Results have the same bits in every run.

#include "number.cuh"

// values: (n, d); weights: (n,); order: (n,) the rows by cluster, starts: (m + 1,) their starts; centres: (m, d); sums: (m, 1 + d)
extern "C" __global__ void cells(const TYPE* values, const double* weights, const long long* order, const long long* starts,
                                 const double* centres, int d, double* sums) {
  __shared__ double part[THREADS];
  const int cell = blockIdx.x / (1 + d), j = blockIdx.x % (1 + d) - 1;
  const double centre = j < 0 ? 0.0 : centres[(long long)cell * d + j];
  double total = 0;
  for (long long i = starts[cell] + threadIdx.x; i < starts[cell + 1]; i += THREADS) {
    const long long row = order[i];
    total += weights[row] * (j < 0 ? 1.0 : number(values[row * d + j]) - centre);
  }
  part[threadIdx.x] = total;
  for (int half = THREADS / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
  }
  if (threadIdx.x == 0) sums[blockIdx.x] += part[0];
}
