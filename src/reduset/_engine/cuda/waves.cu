// Waves Σᵢ wᵢ exp(2πi·tᵢ) of many ladders of frequencies, the first rung by sine and cosine, each further one by doubling the angle.
//
// A thread has a ladder, with the sums of its RUNGS in registers, and goes through a span of rows; spans are added in their order
// (`add`). With LATE a second angle turns every wave, and doubles only after the rung ``release``.

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
