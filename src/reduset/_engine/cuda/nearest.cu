// The nearest of a few atoms to every row, and its distance.
//
// A thread holds R rows in registers, and atoms pass through shared memory. They are ranked in single precision; the first of equal
// ones wins. The distance to the nearest is computed in double precision.

#define SQUARED 0
#define CITYBLOCK 1

// rows: (count, D), atoms: (m, D); single: the same in coordinates of single precision; index, distance: (count,)
extern "C" __global__ void __launch_bounds__(THREADS) nearest(const double* rows, const float* single, long long count,
                                                              const double* atoms, const float* ranked, int m, int* index,
                                                              double* distance) {
  __shared__ __align__(16) float tile[TILE * D];
  float z[R][D], best[R];
  int which[R];
#pragma unroll
  for (int r = 0; r < R; r++) {
    const long long k = min(((long long)blockIdx.x * R + r) * blockDim.x + threadIdx.x, count - 1);
#pragma unroll
    for (int j = 0; j < D; j++) z[r][j] = single[k * D + j];
    best[r] = __int_as_float(0x7f800000);
    which[r] = 0;  // remains if all distances exceed single precision
  }
  for (int first = 0; first < m; first += TILE) {
    const int some = min(TILE, m - first);
    __syncthreads();
    for (int j = threadIdx.x; j < some * D; j += blockDim.x) tile[j] = ranked[(long long)first * D + j];
    __syncthreads();
    for (int i = 0; i < some; i++) {
#pragma unroll
      for (int r = 0; r < R; r++) {
        float t = 0;
#pragma unroll
        for (int j = 0; j < D; j++) {
          const float u = tile[i * D + j] - z[r][j];
#if METRIC == SQUARED
          t = fmaf(u, u, t);
#else
          t += fabsf(u);
#endif
        }
        if (t < best[r]) {
          best[r] = t;
          which[r] = first + i;
        }
      }
    }
  }
#pragma unroll
  for (int r = 0; r < R; r++) {
    const long long k = ((long long)blockIdx.x * R + r) * blockDim.x + threadIdx.x;
    if (k >= count) continue;
    double t = 0;
    for (int j = 0; j < D; j++) {
      const double u = rows[k * D + j] - atoms[(long long)which[r] * D + j];
#if METRIC == SQUARED
      t += u * u;
#else
      t += fabs(u);
#endif
    }
    index[k] = which[r];
#if METRIC == SQUARED
    distance[k] = sqrt(t);
#else
    distance[k] = t;
#endif
  }
}
