// Add partial results of spans of points in the order of the spans, one thread per number.

// part: (spans, count); total: (count,), added to.
extern "C" __global__ void add_sums(const double* part, int spans, long long count, double* total) {
  const long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= count) return;
  double sum = total[k];
  for (long long s = 0; s < spans; s++) sum += part[s * count + k];
  total[k] = sum;
}

// part: (spans, 2, count), least exponents and sums relative to them; total: (2, count), the same over all spans so far.
extern "C" __global__ void add_logs(const double* part, int spans, long long count, double* total) {
  const long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= count) return;
  double least = total[k], sum = total[count + k];
  for (long long s = 0; s < spans; s++) {
    const double depth = part[2 * s * count + k], more = part[(2 * s + 1) * count + k];
    if (depth < least) {
      sum = sum * exp(depth - least) + more;
      least = depth;
    } else if (depth - least < 745.0) {
      sum += more * exp(least - depth);
    }
  }
  total[k] = least;
  total[count + k] = sum;
}
