// Fourier sums Σᵢ wᵢ exp(2πi·tᵢ) for many ladders of frequencies: sine and cosine for the first rung, a doubled angle for each
// further one.
//
// A thread computes one ladder over a span of rows, with the sums of its RUNGS in registers. Spans are added in their order
// (`add`). With LATE a second angle rotates every feature, and doubles only after the rung ``release``.

// angles, late: (m, ladders) in turns; weights: (m,); out: (spans, RUNGS, 2, ladders)
extern "C" __global__ void climb(const double* angles, const double* late, const double* weights, long long m, int span, int ladders,
                                 int release, double* out) {
  const int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= ladders) return;
  const long long begin = (long long)blockIdx.y * span, end = min(m, begin + span);
  double real[RUNGS] = {}, imaginary[RUNGS] = {};
  for (long long i = begin; i < end; i++) {
    const double w = weights[i];
    double c, s;
    sincospi(2.0 * angles[i * ladders + k], &s, &c);
#if LATE
    double u, v;
    sincospi(2.0 * late[i * ladders + k], &v, &u);
#endif
#pragma unroll
    for (int j = 0; j < RUNGS; j++) {
#if LATE
      real[j] += w * (c * u - s * v);
      imaginary[j] += w * (c * v + s * u);
      if (j >= release) {
        const double x = u * u - v * v;
        v = 2.0 * u * v;
        u = x;
      }
#else
      real[j] += w * c;
      imaginary[j] += w * s;
#endif
      const double x = c * c - s * s;
      s = 2.0 * c * s;
      c = x;
    }
  }
  double* mine = out + (long long)blockIdx.y * RUNGS * 2 * ladders + k;
#pragma unroll
  for (int j = 0; j < RUNGS; j++) {
    mine[(long long)(2 * j) * ladders] = real[j];
    mine[(long long)(2 * j + 1) * ladders] = imaginary[j];
  }
}
