// The largest score of each row of a matrix, max over t of x[t]·scale[t] − offset[t]; a null pointer means 1 or 0. A block per row.

#define THREADS 256

// products: (q, t) row by row; scale, offset: (t,) or null; largest: (q,)
extern "C" __global__ void largest_scores(const float* products, const float* scale, const float* offset, long long t,
                                          float* largest) {
  const float* row = products + (long long)blockIdx.x * t;
  float best = -3.0e38f;
  const long long fours = (t % 4 == 0) ? t / 4 : 0;  // rows of other lengths are not aligned
  for (long long k = threadIdx.x; k < fours; k += THREADS) {
    float4 x = reinterpret_cast<const float4*>(row)[k];
    if (scale) {
      const float4 a = reinterpret_cast<const float4*>(scale)[k];
      x.x *= a.x; x.y *= a.y; x.z *= a.z; x.w *= a.w;
    }
    if (offset) {
      const float4 b = reinterpret_cast<const float4*>(offset)[k];
      x.x -= b.x; x.y -= b.y; x.z -= b.z; x.w -= b.w;
    }
    best = fmaxf(best, fmaxf(fmaxf(x.x, x.y), fmaxf(x.z, x.w)));
  }
  for (long long k = 4 * fours + threadIdx.x; k < t; k += THREADS) {
    float x = row[k];
    if (scale) x *= scale[k];
    if (offset) x -= offset[k];
    best = fmaxf(best, x);
  }
  __shared__ float part[THREADS];
  part[threadIdx.x] = best;
  for (int width = THREADS / 2; width > 0; width /= 2) {
    __syncthreads();
    if (threadIdx.x < width) part[threadIdx.x] = fmaxf(part[threadIdx.x], part[threadIdx.x + width]);
  }
  if (threadIdx.x == 0) largest[blockIdx.x] = part[0];
}
