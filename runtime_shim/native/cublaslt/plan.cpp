#include "plan.h"

#include <cstdarg>
#include <cstdio>
#include <string>

#include "../cublas/numbers.h"
#include "device.h"

namespace sx::lt {
namespace {

using cublas::size_of;

bool fp8(int type) { return type == kR8E4M3 || type == kR8E5M2; }

// The kind that types are computed in; false: they do not go together.
bool choose(const Plan &p, Kind &kind) {
  const int a = p.a.type, b = p.b.type, c = p.c.type, d = p.d.type, scale = p.o.scale;
  const bool same = a == b && c == d;
  switch (p.o.compute) {
    case kCompute16F:
    case kCompute16FPedantic:
      kind = Kind::Float;
      return same && a == kR16F && c == kR16F && scale == kR16F;
    case kCompute32F:
    case kCompute32FPedantic:
    case kCompute32FFast16F:
    case kCompute32FFast16BF:
    case kCompute32FFastTf32:
    case kCompute32FEmulated:
      kind = Kind::Float;
      if (fp8(a) && fp8(b)) {
        const bool wide = c == kR16F || c == kR16BF || c == kR32F;
        return scale == kR32F && wide && (d == c || (fp8(d) && c != kR32F));
      }
      if (!same) return false;
      if (scale == kR32F && (a == kR16F || a == kR16BF)) return c == a || c == kR32F;
      if (scale == kR32F && a == kR8I) return kind = Kind::Integers, c == kR32F;
      if (scale == kR32F) return a == kR32F && c == kR32F;
      kind = Kind::Complex;
      return scale == kC32F && a == kC32F && c == kC32F;
    case kCompute64F:
    case kCompute64FPedantic:
      kind = a == kR64F ? Kind::Double : Kind::DoubleComplex;
      return same && a == c && a == scale && (a == kR64F || a == kC64F);
    case kCompute32I:
    case kCompute32IPedantic:
      kind = Kind::Integers;
      return same && a == kR8I && ((scale == kR32I && c == kR32I) || (scale == kR32F && c == kR8I));
    default: return false;
  }
}

bool known_epilogue(unsigned e) {
  for (unsigned known : {kDefault + 0u, kRelu + 0u, kRelu | kAux, kBias + 0u, kRelu | kBias, kRelu | kAux | kBias, kDRelu | kAux,
                         kDRelu | kAux | kBiasGradient, kGelu + 0u, kGelu | kAux, kGelu | kBias, kGelu | kAux | kBias, kDGelu | kAux,
                         kDGelu | kAux | kBiasGradient, kBiasGradientA + 0u, kBiasGradientB + 0u})
    if (e == known) return true;
  return false;
}

// What a vector of biases has where nothing is set.
int default_bias(const Plan &p) {
  if (p.kind == Kind::Integers) return kR32F;
  if (fp8(p.a.type) && (p.d.type == kR32F || fp8(p.d.type))) return p.c.type == kR16F ? kR16F : kR16BF;
  return p.d.type;
}

cublasStatus check_epilogue(Plan &p) {
  const unsigned e = p.o.epilogue;
  if (!known_epilogue(e)) return not_supported("epilogue %u is not implemented", e);
  const bool real = p.kind != Kind::Complex && p.kind != Kind::DoubleComplex;
  if (e != kDefault && (!real || p.o.scale == kR32I)) return not_supported("epilogue %u of data type %d is not implemented", e, p.d.type);
  p.bias_type = p.o.bias_type < 0 ? default_bias(p) : p.o.bias_type;
  p.aux_type = p.o.aux_type < 0 ? p.d.type : p.o.aux_type;
  for (int type : {p.bias_type, p.aux_type})
    if (real && type != kR16F && type != kR16BF && type != kR32F && type != kR64F && !fp8(type) && type != p.d.type)
      return not_supported("a bias or an auxiliary matrix of data type %d is not implemented", type);
  if (e & kAux) {
    const int64_t unit = e & (kRelu | kDRelu) ? 128 : 8;
    if (p.o.aux_ld < p.m || p.o.aux_ld % unit || (p.d.batch > 1 && p.o.aux_step % unit)) return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus check_unsupported(const Plan &p) {
  const Operation &o = p.o;
  for (const Layout *l : {&p.a, &p.b, &p.c, &p.d}) {
    if (l->order != kOrderCol && l->order != kOrderRow)
      return not_supported("memory order %d%s is not implemented", l->order, l->order == 2 ? " (COL32)" : "");
    if (l->plane_offset) return not_supported("planar complex matrices are not implemented");
    if (l->batch_mode != kBatchStrided && l->batch_mode != kBatchPointers)
      return not_supported("batch mode %d is not implemented", l->batch_mode);
  }
  if (o.op_c != 0) return not_supported("a transform of C (%d) is not implemented", o.op_c);
  if (o.fill != kFillFull) return not_supported("fill mode %d is not implemented", o.fill);
  for (int mode : {o.a_scale_mode, o.b_scale_mode})
    if (mode != kScaleWhole && mode != kScaleOuterVector) return not_supported("scales by blocks (mode %d) are not implemented", mode);
  for (int mode : {o.c_scale_mode, o.d_scale_mode, o.aux_scale_mode, o.out_scale_mode})
    if (mode != kScaleWhole) return not_supported("scales by blocks (mode %d) are not implemented", mode);
  if (o.out_scale || o.aux_scale || o.aux_amax) return not_supported("scales that are computed, and those of auxiliary matrices, are not implemented");
  if (o.alpha_step || o.beta_step) return not_supported("a factor for each product of a batch is not implemented");
  const bool scaled = o.a_scale || o.b_scale || o.c_scale || o.d_scale || o.amax;
  if (scaled && p.kind != Kind::Float) return CUBLAS_STATUS_INVALID_VALUE;
  if (o.pointer_mode > kDevice && p.kind != Kind::Float && p.kind != Kind::Double && !(p.kind == Kind::Integers && o.scale == kR32F))
    return not_supported("vectors of factors (pointer mode %d) of scale type %d are not implemented", o.pointer_mode, o.scale);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

cublasStatus not_supported(const char *format, ...) {
  char text[200], line[300];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  snprintf(line, sizeof line, "SX0780: cublasLt: %s; it returns 15 (CUBLAS_STATUS_NOT_SUPPORTED)", text);
  replace::refuse(line, line);
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

bool c_unused(const Plan &p, const void *beta) {
  if (p.o.pointer_mode == kAlphaVectorBetaZero) return true;
  if (p.o.pointer_mode != kHost && p.o.pointer_mode != kAlphaVectorBetaHost) return false;
  switch (p.o.scale) {
    case kR16F: return (*static_cast<const uint16_t *>(beta) & 0x7fff) == 0;
    case kR32I: return *static_cast<const int32_t *>(beta) == 0;
    case kR32F: return *static_cast<const float *>(beta) == 0;
    case kC32F: return *static_cast<const Float2 *>(beta) == Float2();
    case kR64F: return *static_cast<const double *>(beta) == 0;
    default: return *static_cast<const Double2 *>(beta) == Double2();
  }
}

bool valid(const Layout &l) {
  constexpr uint64_t kMost = uint64_t{1} << 48;
  if (l.rows > kMost || l.columns > kMost || l.batch < 0) return false;
  const uint64_t line = l.order == kOrderRow ? l.columns : l.rows;
  return l.ld >= 1 && static_cast<uint64_t>(l.ld) >= line;
}

cublasStatus make_plan(const Operation *o, const Layout *a, const Layout *b, const Layout *c, const Layout *d, Plan &p) {
  if (!o || !a || !b || !c || !d) return CUBLAS_STATUS_INVALID_VALUE;
  p = {*o, *a, *b, *c, *d, 0, 0, 0, Kind::Float, 0, 0};
  if (o->op_a < 0 || o->op_a > 2 || o->op_b < 0 || o->op_b > 2 || o->pointer_mode < kHost || o->pointer_mode > kAlphaVectorBetaHost)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!choose(p, p.kind))
    return not_supported("data types %d, %d, %d and %d with compute type %d and scale type %d are not implemented", a->type, b->type,
                         c->type, d->type, o->compute, o->scale);
  if (cublasStatus status = check_unsupported(p)) return status;
  for (const Layout *l : {a, b, c, d})
    if (!valid(*l) || l->batch != d->batch || l->batch_mode != d->batch_mode) return CUBLAS_STATUS_INVALID_VALUE;
  p.m = static_cast<int64_t>(o->op_a ? a->columns : a->rows);
  p.k = static_cast<int64_t>(o->op_a ? a->rows : a->columns);
  p.n = static_cast<int64_t>(o->op_b ? b->rows : b->columns);
  const auto inner = static_cast<int64_t>(o->op_b ? b->columns : b->rows);
  for (const Layout *l : {c, d})
    if (l->rows != static_cast<uint64_t>(p.m) || l->columns != static_cast<uint64_t>(p.n)) return CUBLAS_STATUS_INVALID_VALUE;
  if (inner != p.k) return CUBLAS_STATUS_INVALID_VALUE;
  return check_epilogue(p);
}

}  // namespace sx::lt
