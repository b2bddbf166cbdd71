// The largest score of each row of a matrix, its first position, and the second largest score. The score of an entry x[t] is
// x[t]·scale[t] − offset[t]; a null pointer means 1 or 0. A block per row.

#define THREADS 256

__device__ void join(float& best, float& second, int& at, float other_best, float other_second, int other_at) {
  if (other_best > best || (other_best == best && other_at < at)) {
    second = fmaxf(best, other_second);
    best = other_best;
    at = other_at;
  } else {
    second = fmaxf(second, other_best);
  }
}

// products: (q, t) row by row; scale, offset: (t,) or null; best, second: (q,); positions: (q,)
extern "C" __global__ void best_scores(const float* products, const float* scale, const float* offset, int t, float* best,
                                       float* second, int* positions) {
  const float* row = products + (long long)blockIdx.x * t;
  float first = -3.0e38f, next = -3.0e38f;
  int at = 0x7fffffff;
  auto add = [&](float x, int k) {
    if (x > first) {
      next = first;
      first = x;
      at = k;
    } else {
      next = fmaxf(next, x);
    }
  };
  const int fours = t % 4 == 0 ? t / 4 : 0;  // rows of other lengths are not aligned
  for (int k = threadIdx.x; k < fours; k += THREADS) {
    float4 x = reinterpret_cast<const float4*>(row)[k];
    if (scale) {
      const float4 a = reinterpret_cast<const float4*>(scale)[k];
      x.x *= a.x; x.y *= a.y; x.z *= a.z; x.w *= a.w;
    }
    if (offset) {
      const float4 b = reinterpret_cast<const float4*>(offset)[k];
      x.x -= b.x; x.y -= b.y; x.z -= b.z; x.w -= b.w;
    }
    const float largest = fmaxf(fmaxf(x.x, x.y), fmaxf(x.z, x.w));
    if (largest > next) {
      add(x.x, 4 * k);
      add(x.y, 4 * k + 1);
      add(x.z, 4 * k + 2);
      add(x.w, 4 * k + 3);
    }
  }
  for (int k = 4 * fours + threadIdx.x; k < t; k += THREADS) {
    float x = row[k];
    if (scale) x *= scale[k];
    if (offset) x -= offset[k];
    add(x, k);
  }
  for (int width = 16; width > 0; width /= 2) {
    const float other_first = __shfl_down_sync(0xffffffffu, first, width), other_next = __shfl_down_sync(0xffffffffu, next, width);
    const int other_at = __shfl_down_sync(0xffffffffu, at, width);
    join(first, next, at, other_first, other_next, other_at);
  }
  __shared__ float firsts[THREADS / 32], nexts[THREADS / 32];
  __shared__ int places[THREADS / 32];
  if (threadIdx.x % 32 == 0) {
    firsts[threadIdx.x / 32] = first;
    nexts[threadIdx.x / 32] = next;
    places[threadIdx.x / 32] = at;
  }
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (int k = 1; k < THREADS / 32; k++) join(first, next, at, firsts[k], nexts[k], places[k]);
  best[blockIdx.x] = first;
  second[blockIdx.x] = next;
  positions[blockIdx.x] = at;
}
