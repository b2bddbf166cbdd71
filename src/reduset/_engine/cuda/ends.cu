// The minimum and maximum of each column, in one pass. The number of threads is a multiple of the number of columns, so
// that each thread reads one column. NaN if a thread found a number that is not finite.

#include "number.cuh"

// values: (n, d), count = n·d numbers; low, high: (threads,)
extern "C" __global__ void ends(const TYPE* values, long long count, int threads, double* low, double* high) {
  const int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= threads) return;
  REAL least = (REAL)__longlong_as_double(0x7ff0000000000000LL), most = -least;
  const REAL beyond = least;
  bool finite = true;
#pragma unroll 8
  for (long long i = k; i < count; i += threads) {
    const REAL x = (REAL)number(values[i]);
    least = x < least ? x : least;
    most = x > most ? x : most;
    finite = finite && x < beyond && x > -beyond;
  }
  low[k] = finite ? (double)least : __longlong_as_double(0x7ff8000000000000LL);
  high[k] = finite ? (double)most : __longlong_as_double(0x7ff8000000000000LL);
}
