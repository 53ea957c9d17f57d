"""AMD's ROCm userland in a folder of its own, for tests without a card: fetched, never installed.

python -m tools.rocm fetch [6.4.3|7.2.4]   some 65 MB each, verified by SHA-256
python -m tools.rocm fetch blas-6.4.4      hipBLAS and rocBLAS for 6.4.3: 280 MB, 1.3 GB unpacked
python -m tools.rocm fetch blas-7.2.4      the same for 7.2.4, with rocSOLVER: 950 MB, 0.9 GB
python -m tools.rocm run 6.4.3 -- PROGRAM  with its loader and libraries
python -m tools.rocm list
"""
