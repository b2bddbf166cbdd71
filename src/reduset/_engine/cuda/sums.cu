// Weighted kernel sums at many queries, Σᵢ wᵢ exp(−depth of the gap between point i and q), and their logarithms.
//
// A thread has R queries in its registers; points go through shared memory, a tile at a time. Sums inside a tile run in REAL, across
// tiles in double precision, always in the order of the points: no number of blocks changes a result. REAL, TYPE (of the queries),
// D (columns), R, TILE, METRIC and FAMILY are defined when this is compiled; the numbers of metrics and families are those of `profile`.

#include <cuda_fp16.h>

#define SQUARED 0
#define CITYBLOCK 1
#define LINEAR 0
#define ROOT 1
#define LOGARITHM 2
#define TABLE 3

__device__ double number(float x) { return x; }
__device__ double number(double x) { return x; }
__device__ double number(__half x) { return __half2float(x); }

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

__device__ REAL gap_of(const REAL* z, const REAL* q) {
  REAL t = 0;
#pragma unroll
  for (int j = 0; j < D; j++) {
    const REAL u = z[j] - q[j];
#if METRIC == SQUARED
    t += u * u;
#else
    t += abs(u);
#endif
  }
  return t;
}

struct __align__(16) Tile {
  REAL points[TILE * D];
  REAL weights[TILE];
  REAL squares[TILE];
};

__device__ int load(Tile& tile, const REAL* points, const REAL* weights, int first, int m) {
  const int some = min(TILE, m - first);
  __syncthreads();
  for (int j = threadIdx.x; j < some * D; j += blockDim.x) tile.points[j] = points[(long long)first * D + j];
  __syncthreads();
  for (int i = threadIdx.x; i < some; i += blockDim.x) {
    tile.weights[i] = weights[first + i];
    REAL square = 0;
    for (int j = 0; j < D; j++) square += tile.points[i * D + j] * tile.points[i * D + j];
    tile.squares[i] = square;
  }
  __syncthreads();
  return some;
}

// A gap as |z|² + |q|² − 2z·q, with −2q and |q|² given: half the work, where nothing that counts cancels.
__device__ REAL gap_by_product(const REAL* z, REAL square, const REAL* q, REAL own) {
  REAL t = square + own;
#pragma unroll
  for (int j = 0; j < D; j++) t += z[j] * q[j];
  return t > 0 ? t : (REAL)0;
}

// The queries of a thread, in the points' coordinates; the largest of these, in size. Those that are none are at 0.
__device__ double place(const TYPE* queries, const long long* rows, long long count, const double* centre, const double* scale,
                        REAL q[R][D], long long mine[R]) {
  double largest = 0.0;
  for (int r = 0; r < R; r++) {
    const long long k = ((long long)blockIdx.x * R + r) * blockDim.x + threadIdx.x;
    mine[r] = k < count ? (rows ? rows[k] : k) : -1;
    for (int j = 0; j < D; j++) {
      const double z = mine[r] < 0 ? 0.0 : (number(queries[mine[r] * D + j]) - centre[j]) * scale[j];
      largest = fmax(largest, fabs(z));
      q[r][j] = (REAL)z;
    }
  }
  return largest;
}

// queries: (n, D); rows: (count,) of them, or null for all; points: (m, D) in their coordinates; out: (n,), NaN beyond reach.
// Gaps by products are for queries of at most the squared length ``close``.
extern "C" __global__ void value_sums(const TYPE* queries, const long long* rows, long long count, const REAL* points,
                                      const REAL* weights, int m, const double* centre, const double* scale, double exponent,
                                      const double* table, int knots, double step,
                                      double reach, double close, double unit, double* out) {
  __shared__ Tile tile;
  const Shape shape = {exponent, table, knots, step};
  REAL q[R][D];
  long long mine[R];
  const bool near = place(queries, rows, count, centre, scale, q, mine) <= reach;
  REAL own[R], longest = 0;
  for (int r = 0; r < R; r++) {
    own[r] = 0;
    for (int j = 0; j < D; j++) own[r] += q[r][j] * q[r][j];
    longest = own[r] > longest ? own[r] : longest;
  }
  const bool by_product = METRIC == SQUARED && longest <= close;
  if (by_product) {
    for (int r = 0; r < R; r++) {
      for (int j = 0; j < D; j++) q[r][j] *= -2;
    }
  }
  double total[R] = {};
  for (int first = 0; first < m; first += TILE) {
    const int some = load(tile, points, weights, first, m);
    REAL part[R] = {};
    if (by_product) {
      for (int i = 0; i < some; i++) {
#pragma unroll
        for (int r = 0; r < R; r++) {
          const REAL t = gap_by_product(tile.points + i * D, tile.squares[i], q[r], own[r]);
          part[r] += tile.weights[i] * exp_minus(depth_of(t, shape));
        }
      }
    } else {
      for (int i = 0; i < some; i++) {
#pragma unroll
        for (int r = 0; r < R; r++) {
          part[r] += tile.weights[i] * exp_minus(depth_of(gap_of(tile.points + i * D, q[r]), shape));
        }
      }
    }
    for (int r = 0; r < R; r++) total[r] += part[r];
  }
  for (int r = 0; r < R; r++) {
    if (mine[r] >= 0) out[mine[r]] = near ? unit * total[r] : __longlong_as_double(0x7ff8000000000000LL);
  }
}

// The same, as logarithms that do not underflow: the least depth, and the sum of what is left.
extern "C" __global__ void log_sums(const TYPE* queries, const long long* rows, long long count, const REAL* points,
                                    const REAL* weights, int m, const double* centre, const double* scale, double exponent,
                                    const double* table, int knots, double step,
                                    double* out) {
  __shared__ Tile tile;
  const Shape shape = {exponent, table, knots, step};
  REAL q[R][D];
  long long mine[R];
  place(queries, rows, count, centre, scale, q, mine);
  REAL least[R];
  double total[R] = {};
  for (int r = 0; r < R; r++) least[r] = __longlong_as_double(0x7ff0000000000000LL);
  for (int first = 0; first < m; first += TILE) {
    const int some = load(tile, points, weights, first, m);
    for (int i = 0; i < some; i++) {
#pragma unroll
      for (int r = 0; r < R; r++) {
        const REAL depth = depth_of(gap_of(tile.points + i * D, q[r]), shape);
        if (depth < least[r]) {
          total[r] = total[r] * exp_minus(least[r] - depth) + tile.weights[i];
          least[r] = depth;
        } else if (depth - least[r] < (REAL)745) {
          total[r] += tile.weights[i] * exp_minus(depth - least[r]);
        }
      }
    }
  }
  for (int r = 0; r < R; r++) {
    if (mine[r] >= 0) out[mine[r]] = log(total[r]) - least[r];
  }
}
