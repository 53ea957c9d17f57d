// Directed roundings and conversions, in a loop with a branch, so that branches pass over them.
extern "C" __global__ void directed(const float *a, const float *b, const float *c, float *o, int turns) {
    for (int n = 0; n < turns; n++) {
        long long i = (long long)(blockIdx.x * turns + n) * blockDim.x + threadIdx.x;
        float x = a[i], y = b[i], z = c[i];
        float *p = o + 9 * i;
        if (threadIdx.x & 1) {
            p[0] = __fmaf_rd(x, y, z); p[1] = __fmaf_ru(x, y, z); p[2] = __fmaf_rz(x, y, z);
        } else {
            p[0] = __fmaf_rd(y, x, z); p[1] = __fmaf_ru(y, x, z); p[2] = __fmaf_rz(y, x, z);
        }
        p[3] = __fmul_rd(x, y); p[4] = __fmul_ru(x, y); p[5] = __fmul_rz(x, y);
        p[6] = __fadd_rd(x, y); p[7] = __fadd_ru(x, y); p[8] = __fadd_rz(x, y);
    }
}
extern "C" __global__ void integers(const float *a, const double *b, unsigned *o, int turns) {
    for (int n = 0; n < turns; n++) {
        long long i = (long long)(blockIdx.x * turns + n) * blockDim.x + threadIdx.x;
        unsigned *p = o + 6 * i;
        p[0] = __float2int_rz(a[i]); p[1] = __float2uint_rz(a[i]); p[2] = __float2int_rd(a[i]);
        p[3] = __double2int_rz(b[i]); p[4] = __double2uint_rz(b[i]); p[5] = __double2int_ru(b[i]);
    }
}
extern "C" __global__ void long_integers(const float *a, const double *b, unsigned long long *o, int turns) {
    for (int n = 0; n < turns; n++) {
        long long i = (long long)(blockIdx.x * turns + n) * blockDim.x + threadIdx.x;
        unsigned long long *p = o + 6 * i;
        p[0] = __float2ll_rz(a[i]); p[1] = __float2ull_rz(a[i]); p[2] = __float2ll_rd(a[i]);
        p[3] = __double2ll_rz(b[i]); p[4] = __double2ull_rz(b[i]); p[5] = __double2ll_ru(b[i]);
    }
}
extern "C" __global__ void from_integers(const int *a, const unsigned *b, float *o, int turns) {
    for (int n = 0; n < turns; n++) {
        long long i = (long long)(blockIdx.x * turns + n) * blockDim.x + threadIdx.x;
        float *p = o + 9 * i;
        p[0] = __int2float_ru(a[i]); p[1] = __int2float_rd(a[i]); p[2] = __int2float_rz(a[i]);
        p[3] = __uint2float_ru(b[i]); p[4] = __uint2float_rd(b[i]); p[5] = __uint2float_rz(b[i]);
        p[6] = __int_as_float(a[i] / (int)(b[i] >> 9 | 1)); p[7] = __uint_as_float(a[i] % (b[i] | 1));
        p[8] = __int_as_float(a[i] / turns);  // the same divisor in all lanes
    }
}
// The reciprocal of a number that is the same in all lanes, and computed.
extern "C" __global__ void clipped(const float *a, const float *length, float *o, int) {
    float factor = 1, one = length[0], most = length[1];
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(one) : "f"(one));
    if (one > most) {
        asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(factor) : "f"(one));
        factor *= most;
    }
    o[threadIdx.x] = a[threadIdx.x] * factor;
}
