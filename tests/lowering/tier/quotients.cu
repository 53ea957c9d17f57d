// Quotients and roots that nvcc computes in software.
#define LANE long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x

extern "C" __global__ void f_div(const float *a, const float *b, float *o) { LANE; o[i] = a[i] / b[i]; }
extern "C" __global__ void f_rcp(const float *a, const float *b, float *o) { LANE; o[i] = __frcp_rn(a[i]); }
extern "C" __global__ void f_sqrt(const float *a, const float *b, float *o) { LANE; o[i] = sqrtf(a[i]); }
extern "C" __global__ void d_div(const double *a, const double *b, double *o) { LANE; o[i] = a[i] / b[i]; }
extern "C" __global__ void d_rcp(const double *a, const double *b, double *o) { LANE; o[i] = __drcp_rn(a[i]); }
extern "C" __global__ void d_sqrt(const double *a, const double *b, double *o) { LANE; o[i] = sqrt(a[i]); }
// Results that enter others, in a loop, under a condition.
extern "C" __global__ void d_mixed(const double *a, const double *b, double *o) {
    LANE;
    double x = a[i], y = b[i];
    for (int n = 0; n < 2; n++) {
        x = x / (y + n);
        if (x > 1) y = sqrt(x) / y;
    }
    o[i] = x + y;
}
extern "C" __global__ void f_mixed(const float *a, const float *b, float *o) {
    LANE;
    float x = a[i], y = b[i];
    for (int n = 0; n < 2; n++) {
        x = (x + 1) / (y * n - x);
        if (x > 1) y = sqrtf(x) / y;
    }
    o[i] = x + y;
}
