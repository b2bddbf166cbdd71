// Choose centres among a few thousand candidates, always the farthest, in one launch of a cooperative grid.
//
// Arithmetic follows the definition: squared differences in double precision, added in order without fusing; the first of equal
// candidates wins. A block is one warp, so that candidates are spread over the whole device. Each thread keeps its candidates, and
// reads PANEL coordinates at once; those of the centre are read once for a warp. A step reads the results of all blocks. Coordinates
// are of single precision if that holds them exactly, since they then stay in the cache.

#define WARP 32
#define PANEL 32
#define ALL 0xffffffffu

__device__ void wait_for_all(unsigned int* arrived, unsigned int target) {
  __syncwarp();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1u);
    while (atomicAdd(arrived, 0u) < target) {
    }
    __threadfence();
  }
  __syncwarp();
}

// The farthest candidate of all threads of a warp, in all of them; the first of equal ones.
__device__ void farthest_of_warp(double& value, int& place) {
  for (int half = WARP / 2; half > 0; half /= 2) {
    const double other = __shfl_xor_sync(ALL, value, half);
    const int other_place = __shfl_xor_sync(ALL, place, half);
    if (other > value || (other == value && other_place < place)) {
      value = other;
      place = other_place;
    }
  }
}

// PANEL coordinates of a candidate from j, and the coordinate j + lane of the centre; zeros after the last.
__device__ void read(const TYPE* candidates, int k, int d, int i, int centre, int j, TYPE (&x)[PANEL], TYPE& y) {
#pragma unroll
  for (int a = 0; a < PANEL; a++) x[a] = j + a < d ? candidates[(long long)(j + a) * k + i] : TYPE(0);
  y = j + (int)threadIdx.x < d ? candidates[(long long)(j + threadIdx.x) * k + centre] : TYPE(0);
}

// candidates: (d, k); found_values, found_places: (2, blocks); chosen, at: (most,); result: number chosen, largest distance left
extern "C" __global__ void __launch_bounds__(WARP)
    choose(const TYPE* candidates, double* gaps, int k, int d, double floor, int most, long long* chosen, double* at,
           double* found_values, int* found_places, unsigned int* arrived, double* result) {
  const int first = blockIdx.x * WARP, stride = gridDim.x * WARP;
  for (int step = 0;; step++) {
    double value = -1.0;
    int place = k;
    for (int i = first + threadIdx.x; i < k; i += stride) {
      if (gaps[i] > value) {
        value = gaps[i];
        place = i;
      }
    }
    farthest_of_warp(value, place);
    const int turn = (step & 1) * gridDim.x;  // two buffers, since a block may read while another writes the next step
    if (threadIdx.x == 0) {
      found_values[turn + blockIdx.x] = value;
      found_places[turn + blockIdx.x] = place;
    }
    wait_for_all(arrived, (step + 1) * gridDim.x);
    value = -1.0;
    place = k;
    for (int b = threadIdx.x; b < gridDim.x; b += WARP) {
      const double other = ((volatile double*)found_values)[turn + b];
      const int other_place = ((volatile int*)found_places)[turn + b];
      if (other > value || (other == value && other_place < place)) {
        value = other;
        place = other_place;
      }
    }
    farthest_of_warp(value, place);
    if (step == most || value < floor) {
      if (first == 0 && threadIdx.x == 0) {
        result[0] = step;
        result[1] = value;
      }
      return;
    }
    if (first == 0 && threadIdx.x == 0) {
      chosen[step] = place;
      at[step] = value;
    }
    for (int base = first; base < k; base += stride) {
      const int i = min(base + (int)threadIdx.x, k - 1);  // all threads of the warp take part
      double total = 0.0;
      TYPE x[PANEL], y, next[PANEL], next_y;
      read(candidates, k, d, i, place, 0, next, next_y);
      for (int j = 0; j < d; j += PANEL) {
#pragma unroll
        for (int a = 0; a < PANEL; a++) x[a] = next[a];
        y = next_y;
        if (j + PANEL < d) read(candidates, k, d, i, place, j + PANEL, next, next_y);
#pragma unroll
        for (int a = 0; a < PANEL; a++) {
          const double u = __dsub_rn((double)x[a], (double)__shfl_sync(ALL, y, a));  // zero after the last coordinate
          total = __dadd_rn(total, __dmul_rn(u, u));
        }
      }
      if (base + (int)threadIdx.x < k) gaps[i] = fmin(gaps[i], total);
    }
  }
}
