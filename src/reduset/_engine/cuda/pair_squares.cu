// Squared distances of pairs of rows by the definition: differences in double precision, squared and added in order without fusing.
// With cosine distances rows are divided by their lengths, whose squares are added in order, too.

#include "number.cuh"

// values: (n, d) rows; ones, others: (count,) row numbers; squares: (count,)
extern "C" __global__ void pair_squares(const TYPE* values, const long long* ones, const long long* others, long long count, int d,
                                        int cosine, double* squares) {
  const long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= count) return;
  const TYPE* x = values + ones[k] * d;
  const TYPE* y = values + others[k] * d;
  double one = 1.0, other = 1.0;
  if (cosine) {
    one = other = 0.0;
    for (int j = 0; j < d; j++) {
      const double a = number(x[j]), b = number(y[j]);
      one = __dadd_rn(one, __dmul_rn(a, a));
      other = __dadd_rn(other, __dmul_rn(b, b));
    }
    one = __dsqrt_rn(one);
    other = __dsqrt_rn(other);
  }
  double total = 0.0;
  for (int j = 0; j < d; j++) {
    const double u = cosine ? __dsub_rn(__ddiv_rn(number(x[j]), one), __ddiv_rn(number(y[j]), other))
                            : __dsub_rn(number(x[j]), number(y[j]));
    total = __dadd_rn(total, __dmul_rn(u, u));
  }
  squares[k] = total;
}
