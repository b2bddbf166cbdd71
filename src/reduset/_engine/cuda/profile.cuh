// A kernel on the GPU: the distance of two points (`gap`), the family's exponent of that distance (`depth`), exp(−depth).
//
// This is the counterpart of `_engine.profile`, with the same numbers of metrics and families. REAL, D (columns), METRIC and FAMILY
// are defined at compilation. Points and queries are in the coordinates of a frame.

#define SQUARED 0
#define CITYBLOCK 1
#define SOFT_CITYBLOCK 2
#define LINEAR 0
#define ROOT 1
#define LOGARITHM 2
#define TABLE 3

__device__ float exp_minus(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(-1.4426950408889634f * x));
  return y;
}
__device__ double exp_minus(double x) { return exp(-x); }

struct Shape {
  double exponent;
  const double* table;
  int knots;
  double step;
};

__device__ REAL depth_of(REAL t, const Shape& shape) {
#if FAMILY == ROOT
  return sqrt(t);
#elif FAMILY == LOGARITHM
  return (REAL)shape.exponent * log1p(t);
#elif FAMILY == TABLE
  double x = log1p(sqrt((double)t)) / shape.step;
  const int last = shape.knots - 2;
  const int k = x < last ? (int)x : last;
  x -= k;
  const double* here = shape.table + 2 * k;
  if (x > 1.0) return here[2] + (x - 1.0) * shape.step * here[3];
  const double y = 1.0 - x;
  return y * y * (1.0 + 2.0 * x) * here[0] + x * x * (1.0 + 2.0 * y) * here[2] + shape.step * x * y * (y * here[1] - x * here[3]);
#else
  return t;
#endif
}

// The factor of z − q in the gradient for a point of value v at squared distance t: v · 2 · d(depth)/dt; 0 at a corner.
__device__ REAL pull_of(REAL v, REAL t, const Shape& shape) {
#if FAMILY == ROOT
  return t > 0 ? v / sqrt(t) : (REAL)0;
#elif FAMILY == LOGARITHM
  return v * (REAL)(2 * shape.exponent) / (1 + t);
#elif FAMILY == TABLE
  const double r = sqrt((double)t);
  if (r == 0.0) return 0;
  double x = log1p(r) / shape.step;
  const int last = shape.knots - 2;
  const int k = x < last ? (int)x : last;
  x -= k;
  const double* here = shape.table + 2 * k;
  double slope = here[3];
  if (x <= 1.0) {
    const double rise = 6.0 * x * (1.0 - x) * (here[2] - here[0]) / shape.step;
    slope = rise + (1.0 - x) * (1.0 - 3.0 * x) * here[1] + x * (3.0 * x - 2.0) * here[3];
  }
  return v * slope / ((1.0 + r) * r);
#else
  return 2 * v;
#endif
}

__device__ REAL gap_of(const REAL* z, const REAL* q) {
  REAL t = 0;
#pragma unroll
  for (int j = 0; j < D; j++) {
    const REAL u = z[j] - q[j];
#if METRIC == SQUARED
    t += u * u;
#elif METRIC == CITYBLOCK
    t += fabs(u);
#else
    t += fabs(u) - log1p(fabs(u));
#endif
  }
  return t;
}

// A distance as |z|² + |q|² − 2z·q, with −2q and |q|² given. This halves the work if cancellation is harmless.
__device__ REAL gap_by_product(const REAL* z, REAL square, const REAL* q, REAL own) {
  REAL t = square + own;
#pragma unroll
  for (int j = 0; j < D; j++) t += z[j] * q[j];
  return t > 0 ? t : (REAL)0;
}
