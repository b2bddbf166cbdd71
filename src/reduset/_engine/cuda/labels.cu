// Sums of numbers by label: a block has a label, its threads take turns, and what they have is added pairwise: always the same bits.

// values: (n,); order: (n,) the rows by label, starts: (labels + 1,) where each begins; sums: (labels,)
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
