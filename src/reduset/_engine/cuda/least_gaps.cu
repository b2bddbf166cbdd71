// The least squared distance of each candidate to many centres, by the definition: squared differences in double precision, added
// in order without fusing. A block compares 128 candidates with some of the centres, eight at a time, so that a coordinate is read
// once for eight.

#define AT_ONCE 8

// candidates: (d, k); centres: (c, d); least: (k,) of infinities; share: centres per block
extern "C" __global__ void least_gaps(const double* candidates, const double* centres, int k, int d, int c, int share,
                                      unsigned long long* least) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= k) return;
  const int last = min(c, (int)(blockIdx.y + 1) * share);
  double best = __longlong_as_double(0x7ff0000000000000LL);
  for (int first = blockIdx.y * share; first < last; first += AT_ONCE) {
    double total[AT_ONCE] = {};
    for (int j = 0; j < d; j++) {
      const double x = candidates[(long long)j * k + i];
#pragma unroll
      for (int a = 0; a < AT_ONCE; a++) {
        const int centre = min(first + a, last - 1);  // repeats the last centre if fewer are left
        const double u = __dsub_rn(x, __ldg(centres + (long long)centre * d + j));
        total[a] = __dadd_rn(total[a], __dmul_rn(u, u));
      }
    }
#pragma unroll
    for (int a = 0; a < AT_ONCE; a++) best = fmin(best, total[a]);
  }
  atomicMin(least + i, (unsigned long long)__double_as_longlong(best));  // non-negative doubles are ordered like their bits
}
