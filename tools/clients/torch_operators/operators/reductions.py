"""Reductions, scans, sorting, searching, counting."""

from __future__ import annotations

from ..declare import EVERY, EXACT, F32, FAST, FLOATS, INTS, NUMERIC, SUMS, Op, each

_A = ("n 33 77",)
_P = ("p 33 77",)
_D = ("d 33 77",)
_COUNTED = ("i32", "i64", "u8", "b1")
_SMALL = ("p 6 5",)

OPERATORS: tuple[Op, ...] = (
    Op("sum", "a.sum()", _A, FLOATS, SUMS),
    Op("sum_int", "a.sum()", _A, (*_COUNTED, "i8", "i16"), EXACT),
    Op("sum_0", "a.sum(0)", _A, FLOATS, SUMS),
    Op("sum_1", "a.sum(1)", _A, (*FLOATS, "c64"), SUMS),
    Op("sum_int_1", "a.sum(1)", _A, _COUNTED, EXACT),
    Op("sum_middle", "a.sum(1)", ("n 7 33 11",), FLOATS, SUMS),
    Op("sum_wide", "a.sum(1)", ("n 2 20000",), F32, SUMS),
    Op("sum_empty", "a[:0].sum(0)", _A, NUMERIC, EXACT),
    Op("nansum", "a.nansum(1)", _A, F32, SUMS),
    Op("mean", "a.mean(1)", _A, FLOATS, SUMS),
    Op("nanmean", "a.nanmean(1)", _A, F32, SUMS),
    Op("prod", "a.prod(1)", _SMALL, (*FLOATS, "i64"), SUMS),
    Op("var", "a.var(1)", _A, FLOATS, SUMS),
    Op("std", "a.std(0)", _A, FLOATS, SUMS),
    Op("var_mean", "torch.var_mean(a, 1)", _A, F32, SUMS),
    Op("logsumexp", "torch.logsumexp(a, 1)", _A, FLOATS, FAST),
    Op("norm", "torch.linalg.vector_norm(a, dim=1)", _A, F32, SUMS),
    Op("norm_1", "torch.linalg.vector_norm(a, 1, dim=1)", _A, F32, SUMS),
    Op("norm_inf", "torch.linalg.vector_norm(a, float('inf'), dim=1)", _A, F32, EXACT),
    Op("norm_3", "torch.linalg.vector_norm(a, 3, dim=0)", _A, F32, FAST),
    Op("dist", "torch.dist(a, b)", ("n 33 77", "n 33 77"), F32, SUMS),
    Op("cdist", "torch.cdist(a, b, p=1.0)", ("n 9 12", "n 11 12"), F32, SUMS),
    Op("pdist", "F.pdist(a)", ("n 12 9",), F32, SUMS),
    *each("amax amin", "torch.NAME(a, 1)", ("e 33 77",), (*NUMERIC, "b1"), EXACT),
    *each("aminmax", "torch.NAME(a)", _A, NUMERIC, EXACT),
    *each("max min", "torch.NAME(a, 1)", _D, (*F32, "i32", "i64"), EXACT),
    Op("max_all", "a.max()", _A, NUMERIC, EXACT),
    *each("argmax argmin", "torch.NAME(a, 1)", _D, (*F32, "i32", "i64"), EXACT),
    Op("argmax_all", "a.argmax()", _D, (*F32, "i32"), EXACT),
    *each("all any", "torch.NAME(a > 0)", _A, (*NUMERIC, "b1"), EXACT),
    Op("any_1", "torch.any(a > 1, 1)", _A, NUMERIC, EXACT),
    *each("count_nonzero", "torch.NAME(a, 1)", _A, EVERY, EXACT),
    *each("median", "torch.NAME(a, 1)", _D, (*F32, "i32", "i64"), EXACT),
    Op("mode", "torch.mode(a, 1).values", ("i5 9 33",), ("i64",), EXACT),
    Op("kthvalue", "torch.kthvalue(a, 7, 1)", _D, (*F32, "i32", "f16"), EXACT),
    Op("quantile", "torch.quantile(a, 0.3, dim=1)", _A, F32, FAST),
    *each("cumsum", "torch.NAME(a, 1)", ("n 33 77",), FLOATS, SUMS),
    Op("cumsum_int", "torch.cumsum(a, 0)", _A, _COUNTED, EXACT),
    Op("cumprod", "torch.cumprod(a, 1)", _SMALL, (*FLOATS, "i64"), SUMS),
    *each("cummax cummin", "torch.NAME(a, 1)", _D, (*F32, "i32", "i64"), EXACT),
    Op("logcumsumexp", "torch.logcumsumexp(a, 1)", _A, F32, FAST),
    Op("diff", "torch.diff(a, dim=1)", _A, (*NUMERIC, "b1"), EXACT),
    Op("trapezoid", "torch.trapezoid(a, dim=1)", _A, F32, SUMS),
    Op("cumsum_long", "torch.cumsum(a, 0)", ("n 5000",), ("i32", "i64", "u8"), EXACT),
    # order
    Op("sort", "torch.sort(a, dim=1, stable=True)", _D, (*FLOATS[:3], *INTS[:3]), EXACT),
    Op("sort_descending", "torch.sort(a, 1, descending=True).values", _A, NUMERIC, EXACT),
    Op("sort_0", "torch.sort(a, 0).values", _A, (*F32, "i64"), EXACT),
    Op("sort_long", "torch.sort(a).values", ("n 5000",), (*F32, "i32", "i64"), EXACT),
    Op("argsort", "torch.argsort(a, dim=1, stable=True)", _D, (*F32, "i32"), EXACT),
    Op("msort", "torch.msort(a)", _A, (*F32, "i32"), EXACT),
    Op("topk", "torch.topk(a, 9, 1)", _D, (*F32, "i32", "i64"), EXACT),
    Op("topk_smallest", "torch.topk(a, 9, 1, largest=False).values", _A, NUMERIC, EXACT),
    Op("unique", "torch.unique(a)", ("n 300",), ("i32", "i64", "u8", "f32"), EXACT),
    Op(
        "unique_counts",
        "torch.unique(a, return_inverse=True, return_counts=True)",
        ("n 300",),
        ("i32", "i64"),
        EXACT,
    ),
    Op("unique_consecutive", "torch.unique_consecutive(a)", ("n 300",), ("u8", "i64"), EXACT),
    Op("searchsorted", "torch.searchsorted(a.sort().values, b)", ("n 64", "n 99"), NUMERIC, EXACT),
    Op("bucketize", "torch.bucketize(a, b.sort().values)", ("n 99", "n 64"), NUMERIC, EXACT),
    Op("isin", "torch.isin(a, b)", ("n 99", "n 20"), ("i32", "i64", "f32"), EXACT),
    # counting
    Op("bincount", "torch.bincount(a)", ("i40 500",), ("i64",), EXACT),
    Op("bincount_weights", "torch.bincount(a, b)", ("i40 500", "n 500"), ("f64",), SUMS),
    Op("histc", "torch.histc(a, 20, -3, 3)", ("n 500",), F32, EXACT),
    Op("nonzero", "torch.nonzero(a > 0)", _A, (*NUMERIC, "b1"), EXACT),
    Op("nonzero_static", "torch.nonzero_static(a > 0, size=50)", ("n 9 9",), ("f32",), EXACT),
    Op("argwhere", "torch.argwhere(a)", _A, ("b1", "i32"), EXACT),
    Op("equal", "torch.equal(a, a.clone())", _A, EVERY, EXACT),
    Op("allclose", "torch.allclose(a, a + 1e-9)", _A, F32, EXACT),
)  # fmt: skip
