// Pairs of a query and a target within a distance, by matrix products of coordinates in half precision on the tensor cores.
//
// A block holds ROWS queries in shared memory. Of PER_BLOCK tiles with TARGETS targets each, it skips those whose groups are not
// joined to the groups of its queries; the others pass through shared memory, 64 coordinates at a time. The accumulators begin
// with −(|x|² + |y|² − limit)/2, so that they end with a sign of 0 for a pair within the limit. Only these pairs are written.

#include <cuda_fp16.h>

#define TARGETS 128
#define PER_BLOCK 256
#define THREADS 256
#define PANEL 64                     // coordinates at a time, 128 bytes of a row
#define PANELS (WIDTH / PANEL)
#define ALONG (ROWS / 64)            // warps along the queries; each has 64
#define COLUMNS (TARGETS * ALONG / 8)  // targets of a warp
#define FAR 3.0e38f

// Units of 16 bytes are permuted within a row, so that eight rows are read without bank conflicts.
__device__ unsigned int address_of(unsigned int start, int row, int unit) {
  return start + row * 128 + ((unit ^ (row & 7)) << 4);
}

__device__ void copy_unit(unsigned int to, const void* from, bool is_inside) {
  const int bytes = is_inside ? 16 : 0;  // the rest is filled with zeros
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from), "r"(bytes));
}

// Copy one panel of some rows: 64 coordinates of each, from row ``first`` of ``count``.
__device__ void copy_panel(unsigned int to, const __half* values, long long first, long long count, int rows, int panel) {
  for (int k = threadIdx.x; k < rows * 8; k += THREADS) {
    const int row = k / 8, unit = k % 8;
    const bool is_inside = first + row < count;
    copy_unit(address_of(to, row, unit), values + (is_inside ? first + row : 0) * WIDTH + panel * PANEL + unit * 8, is_inside);
  }
}

__device__ void load_matrices(unsigned int (&parts)[4], unsigned int from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(parts[0]), "=r"(parts[1]), "=r"(parts[2]), "=r"(parts[3])
               : "r"(from));
}

__device__ void multiply(float (&sums)[4], const unsigned int (&x)[4], unsigned int y0, unsigned int y1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
               : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
               : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y0), "r"(y1));
}

// queries: (q, WIDTH), targets: (t, WIDTH); x_halves: (q,) (|x|² − limit)/2, y_halves: (t,) |y|²/2; x_groups, y_groups: ascending
// numbers of groups; joined: (groups + 1, groups + 1) how many joined pairs of groups have smaller numbers; pairs: (capacity,)
// numbers of queries and targets; count: how many pairs there are, which may exceed the capacity
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    near_pairs(const __half* queries, const __half* targets, const float* x_halves, const float* y_halves, const int* x_groups,
               const int* y_groups, int q, int t, const int* joined, int groups, unsigned long long capacity, uint2* pairs,
               unsigned long long* count) {
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ int tiles[PER_BLOCK], found[THREADS / 32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const long long first = (long long)blockIdx.x * ROWS;
  {
    const long long start = ((long long)blockIdx.y * PER_BLOCK + threadIdx.x) * TARGETS;
    bool is_joined = false;
    if (start < t) {
      const int* high = joined + (long long)(x_groups[min((long long)q, first + ROWS) - 1] + 1) * (groups + 1);
      const int* low = joined + (long long)x_groups[first] * (groups + 1);
      const int left = y_groups[start], right = y_groups[min((long long)t, start + TARGETS) - 1] + 1;
      is_joined = high[right] - high[left] - low[right] + low[left] > 0;
    }
    const unsigned int votes = __ballot_sync(0xffffffffu, is_joined);
    if (lane == 0) found[warp] = __popc(votes);
    __syncthreads();
    int before = __popc(votes & ((1u << lane) - 1));
    for (int k = 0; k < warp; k++) before += found[k];
    if (is_joined) tiles[before] = blockIdx.y * PER_BLOCK + threadIdx.x;
  }
  int steps = 0;
  for (int k = 0; k < THREADS / 32; k++) steps += found[k];
  if (steps == 0) return;
  __syncthreads();
  steps *= PANELS;

  const unsigned int x_start = (unsigned int)__cvta_generic_to_shared(memory), y_start = x_start + ROWS * WIDTH * 2;
  for (int panel = 0; panel < PANELS; panel++) copy_panel(x_start + panel * ROWS * 128, queries, first, q, ROWS, panel);
  auto send = [&](int step) {
    if (step < steps) {
      const long long start = (long long)tiles[step / PANELS] * TARGETS;
      copy_panel(y_start + (step % STAGES) * TARGETS * 128, targets, start, t, TARGETS, step % PANELS);
    }
    asm volatile("cp.async.commit_group;\n");
  };
  for (int step = 0; step < STAGES - 1; step++) send(step);

  const int row = (warp % ALONG) * 64, column = (warp / ALONG) * COLUMNS;  // of the warp
  const int x_row = row + lane % 16, x_unit = lane / 16, y_row = column + lane % 8 + lane / 16 * 8, y_unit = lane / 8 % 2;
  float x_half[4][2], sums[4][COLUMNS / 8][4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
#pragma unroll
    for (int k = 0; k < 2; k++) {
      const long long at = first + row + i * 16 + k * 8 + lane / 4;
      x_half[i][k] = at < q ? x_halves[at] : FAR;
    }
  }
  for (int step = 0; step < steps; step++) {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(STAGES - 2));
    __syncthreads();
    send(step + STAGES - 1);
    const int panel = step % PANELS;
    const long long start = (long long)tiles[step / PANELS] * TARGETS + column + lane % 4 * 2;  // the thread's first target
    if (panel == 0) {
#pragma unroll
      for (int j = 0; j < COLUMNS / 8; j++) {
#pragma unroll
        for (int k = 0; k < 2; k++) {
          const long long at = start + j * 8 + k;
          const float y_half = at < t ? __ldg(y_halves + at) : FAR;
#pragma unroll
          for (int i = 0; i < 4; i++) {
            sums[i][j][k] = -x_half[i][0] - y_half;
            sums[i][j][2 + k] = -x_half[i][1] - y_half;
          }
        }
      }
    }
    const unsigned int x_panel = x_start + panel * ROWS * 128, y_panel = y_start + (step % STAGES) * TARGETS * 128;
#pragma unroll
    for (int part = 0; part < PANEL / 16; part++) {
      unsigned int x[4][4], y[COLUMNS / 16][4];
#pragma unroll
      for (int i = 0; i < 4; i++) load_matrices(x[i], address_of(x_panel, x_row + i * 16, part * 2 + x_unit));
#pragma unroll
      for (int j = 0; j < COLUMNS / 16; j++) load_matrices(y[j], address_of(y_panel, y_row + j * 16, part * 2 + y_unit));
#pragma unroll
      for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int j = 0; j < COLUMNS / 8; j++) multiply(sums[i][j], x[i], y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1]);
      }
    }
    if (panel != PANELS - 1) continue;
    int signs = -1;
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
      for (int j = 0; j < COLUMNS / 8; j++) {
#pragma unroll
        for (int k = 0; k < 4; k++) signs &= __float_as_int(sums[i][j][k]);
      }
    }
    if (signs < 0) continue;  // all sums are negative
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
      for (int j = 0; j < COLUMNS / 8; j++) {
#pragma unroll
        for (int k = 0; k < 4; k++) {
          if (__float_as_int(sums[i][j][k]) < 0) continue;
          const unsigned long long at = atomicAdd(count, 1ull);
          if (at >= capacity) continue;
          pairs[at] = make_uint2((unsigned int)(first + row + i * 16 + k / 2 * 8 + lane / 4), (unsigned int)(start + j * 8 + k % 2));
        }
      }
    }
  }
}
