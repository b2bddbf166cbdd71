// Sums of numbers by label. A block computes one label. Its threads take rows in turn, and their sums are added pairwise. Results
// have the same bits in every run.

// values: (n,); order: (n,) the rows by label, starts: (labels + 1,) their starts; sums: (labels,)
extern "C" __global__ void label_sums(const double* values, const long long* order, const long long* starts, double* sums) {
  __shared__ double part[THREADS];
  double total = 0;
  for (long long i = starts[blockIdx.x] + threadIdx.x; i < starts[blockIdx.x + 1]; i += THREADS) total += values[order[i]];
  part[threadIdx.x] = total;
  for (int half = THREADS / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}
