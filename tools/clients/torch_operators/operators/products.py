"""Products, linear algebra, Fourier transforms, sparse matrices."""

from __future__ import annotations

from ..declare import COMPLEX, EXACT, F32, FLOATS, PRODUCTS, SOLVED, Op, each

_AB = ("n 17 23", "w 23 19")
_BATCH = ("n 3 17 23", "w 3 23 19")
_TYPES = (*FLOATS, "c64")
_SQUARE = ("s 7 7",)
_SIGNAL = ("n 4 24",)

OPERATORS: tuple[Op, ...] = (
    Op("mm", "torch.mm(a, b)", _AB, (*_TYPES, "c128"), PRODUCTS),
    Op("mm_t", "a @ b.t()", ("n 17 23", "w 19 23"), FLOATS, PRODUCTS),
    Op("mm_large", "a @ b", ("n 130 70", "w 70 65"), ("f32", "f16", "bf16"), PRODUCTS),
    Op("bmm", "torch.bmm(a, b)", _BATCH, _TYPES, PRODUCTS),
    Op("matmul_broadcast", "a @ b", ("n 3 17 23", "w 23 19"), F32, PRODUCTS),
    Op("addmm", "torch.addmm(c, a, b, beta=0.5, alpha=2)", (*_AB, "n 19"), FLOATS, PRODUCTS),
    Op("addmm_bias_relu", "F.relu(F.linear(a, b, c))",
       ("n 17 24", "w 16 24", "n 16"), FLOATS, PRODUCTS),
    Op("baddbmm", "torch.baddbmm(c, a, b)", (*_BATCH, "n 3 17 19"), F32, PRODUCTS),
    Op("linear", "F.linear(a, b, c)", ("n 17 23", "w 19 23", "n 19"), FLOATS, PRODUCTS),
    Op("bilinear", "F.bilinear(a, b, c)", ("n 5 7", "n 5 6", "w 4 7 6"), F32, PRODUCTS),
    Op("mv", "torch.mv(a, b)", ("n 17 23", "n 23"), FLOATS, PRODUCTS),
    Op("dot", "torch.dot(a, b)", ("n 300", "n 300"), _TYPES, PRODUCTS),
    Op("vdot", "torch.vdot(a, b)", ("n 300", "n 300"), COMPLEX, PRODUCTS),
    Op("addmv", "torch.addmv(c, a, b)", ("n 17 23", "n 23", "n 17"), F32, PRODUCTS),
    Op("addr", "torch.addr(c, a, b)", ("n 17", "n 23", "n 17 23"), F32, PRODUCTS),
    Op("outer", "torch.outer(a, b)", ("n 17", "n 23"), (*FLOATS, "i64"), EXACT),
    Op("einsum", "torch.einsum('bij,bjk->bik', a, b)", _BATCH, F32, PRODUCTS),
    Op("einsum_trace", "torch.einsum('ii->', a)", ("n 9 9",), F32, PRODUCTS),
    Op("tensordot", "torch.tensordot(a, b, 1)", _AB, F32, PRODUCTS),
    Op("chain_matmul", "torch.linalg.multi_dot((a, b, b.t()))",
       _AB, F32, PRODUCTS),
    Op("matrix_power", "torch.matrix_power(a / 10, 3)", _SQUARE, F32, SOLVED),
    Op("int_mm", "torch._int_mm(a, b)", ("n 32 16", "n 16 24"), ("i8",), EXACT),
    Op("cross", "torch.linalg.cross(a, b)", ("n 9 3", "n 9 3"), (*F32, "i64"), PRODUCTS),
    Op("trace", "torch.trace(a)", ("n 9 9",), (*F32, "i64"), PRODUCTS),
    Op("cov", "torch.cov(a)", ("n 5 30",), F32, PRODUCTS),
    Op("corrcoef", "torch.corrcoef(a)", ("n 5 30",), F32, PRODUCTS),
    Op("cdist_2", "torch.cdist(a, b)", ("n 30 8", "n 31 8"), F32, SOLVED),
    # factorisations; what is unique of them
    Op("cholesky", "torch.linalg.cholesky(a)", _SQUARE, F32, SOLVED),
    Op("cholesky_solve", "torch.cholesky_solve(b, torch.linalg.cholesky(a))",
       ("s 7 7", "n 7 3"), F32, SOLVED),
    Op("solve", "torch.linalg.solve(a, b)", ("s 7 7", "n 7 3"), F32, SOLVED),
    Op("solve_triangular", "torch.linalg.solve_triangular(a.triu(), b, upper=True)",
       ("s 7 7", "n 7 3"), F32, SOLVED),
    Op("inv", "torch.linalg.inv(a)", _SQUARE, F32, SOLVED),
    Op("det", "torch.linalg.det(a)", _SQUARE, F32, SOLVED),
    Op("slogdet", "torch.linalg.slogdet(a)", _SQUARE, F32, SOLVED),
    Op("lu", "torch.linalg.lu(a)", _SQUARE, F32, SOLVED),
    Op("qr_r", "torch.linalg.qr(a).R.abs()", ("n 9 7",), F32, SOLVED),
    Op("svdvals", "torch.linalg.svdvals(a)", ("n 9 7",), F32, SOLVED),
    Op("eigvalsh", "torch.linalg.eigvalsh(a)", _SQUARE, F32, SOLVED),
    Op("pinv", "torch.linalg.pinv(a)", ("n 9 7",), F32, SOLVED),
    Op("lstsq", "torch.linalg.lstsq(a, b).solution", ("n 9 7", "n 9 2"), F32, SOLVED),
    Op("matrix_exp", "torch.matrix_exp(a / 10)", _SQUARE, F32, SOLVED),
    # Fourier transforms
    *each("fft ifft", "torch.fft.NAME(a)", _SIGNAL, (*F32, *COMPLEX), PRODUCTS),
    *each("rfft ihfft", "torch.fft.NAME(a)", _SIGNAL, F32, PRODUCTS),
    *each("irfft hfft", "torch.fft.NAME(a)", _SIGNAL, COMPLEX, PRODUCTS),
    *each("fft2 ifft2 fftn ifftn", "torch.fft.NAME(a)", ("n 6 10",), COMPLEX, PRODUCTS),
    Op("rfft2", "torch.fft.rfft2(a)", ("n 6 10",), F32, PRODUCTS),
    Op("fft_length", "torch.fft.fft(a, 31)", _SIGNAL, COMPLEX, PRODUCTS),
    Op("fftshift", "torch.fft.fftshift(a)", _SIGNAL, F32, EXACT),
    Op("stft", "torch.stft(a, 16, window=torch.ones(16, dtype=dt, device=dev), "
       "return_complex=True)", ("n 2 64",), F32, PRODUCTS),
    # sparse
    Op("to_sparse", "(a * (a > 0)).to_sparse().to_dense()", ("n 9 11",), F32, EXACT),
    Op("coalesce", "torch.sparse_coo_tensor(a.view(1, 20), b, (9,)).coalesce().values()",
       ("i9 20", "n 20"), F32, PRODUCTS),
    Op("sparse_mm", "torch.sparse.mm((a * (a > 0)).to_sparse(), b)", _AB, F32, PRODUCTS),
    Op("csr_mm", "(a * (a > 0)).to_sparse_csr() @ b", _AB, F32, PRODUCTS),
)  # fmt: skip
