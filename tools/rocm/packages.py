"""Which Debian packages make a ROCm userland, and LLVM's tools: files below `pool/main`, sizes in
bytes, SHA-256.

From the lists of Debian sid and experimental, 2026-11-24.  AMD's HIP 6.4 and 7.2 need glibc 2.38 or
newer; both get the one that sid had.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Package:
    """One .deb: its place in a mirror's `pool/main`, its size in bytes, and its SHA-256."""

    path: str
    size: int
    sha256: str

    @property
    def file(self) -> str:
        return self.path.rpartition("/")[2]


# The first has what Debian ships now, the second (a time) what it shipped then.
MIRRORS = (
    "http://deb.debian.org/debian/pool/main/",
    "https://snapshot.debian.org/archive/debian/20261124T000000Z/pool/main/",
)

_COMMON = (
    Package(
        "g/glibc/libc6_2.43-7_amd64.deb",
        1_866_392,
        "5c71715c51103beb4fbba9fe9f8dff604af6610dfa71c70bff342f54a7860803",
    ),
    Package(
        "g/gcc-16/libgcc-s1_16.2.0-4_amd64.deb",
        74_120,
        "d251ea642c3795e8723ac2b9eeebe511467ca04590ba70f3d555a7616787d7e3",
    ),
    Package(
        "g/gcc-16/libstdc++6_16.2.0-4_amd64.deb",
        822_380,
        "cef6654bba1daece0bc0dbe0e3f69fa5a26eb6ba139f3536e6f4806bd787f3e7",
    ),
    Package(
        "z/zlib/zlib1g_1.3.dfsg+really1.3.2-4_amd64.deb",
        92_424,
        "8506ce550a81ac14b047608e0df121037d9cbb10c3cc28446f68cf8c1d9d31ce",
    ),
    Package(
        "libz/libzstd/libzstd1_1.5.7+dfsg-4_amd64.deb",
        304_040,
        "93e7930e4c25b918f1dd980cc1c6d4487654a248f5fa71eacb976ed7bbe954bd",
    ),
    Package(
        "libx/libxml2/libxml2-16_2.15.4+dfsg-1+b1_amd64.deb",
        683_676,
        "f2b4d9acff743ff71f5409ae301452ebbb37d0d8709cf46fc9ec755d7df803ff",
    ),
    Package(
        "z/z3/libz3-4_4.13.3-1.1_amd64.deb",
        8_643_868,
        "17a0b6d5dba8db60732334ae3eb6be5f0c58f72a77304311add514a4d55bc434",
    ),
    Package(
        "libf/libffi/libffi8_3.8.0-2_amd64.deb",
        32_472,
        "8f52979b2f3831088c419aae858f10fd3ad7e42cc6c1d28967bae996a98223a4",
    ),
    Package(
        "n/ncurses/libtinfo6_6.6+20260608-2_amd64.deb",
        352_696,
        "14682d1f6e35df22df0fe1eb2c09418aff0e29e2ea5a7bc0aa1bcd37192ba5a7",
    ),
    Package(
        "libe/libedit/libedit2_3.1-20260512-1_amd64.deb",
        93_600,
        "85133718b6f81f44c88c4d95162e4e39af1521fbbd97d108d36294a37076a4cd",
    ),
    Package(
        "libb/libbsd/libbsd0_0.12.2-3_amd64.deb",
        131_912,
        "0383e47d704a5e58080606cbcafd2f2aa725702767ccf8b877fb224d04ff38c5",
    ),
    Package(
        "libm/libmd/libmd0_1.3.0-1_amd64.deb",
        45_420,
        "b93615e08319799bedd98a68643d607b06a7713365f829fb3cae131f8a3b81b1",
    ),
    Package(
        "e/elfutils/libelf1t64_0.196-1_amd64.deb",
        61_224,
        "dde2ab88aebdc4dfc017c5309cd17917f7230f1684fb82551390089cf0b7ced1",
    ),
    Package(
        "n/numactl/libnuma1_2.0.19-1+b2_amd64.deb",
        22_036,
        "c4175eb2a991806b5f683f7b2a6a9e444f310058763070b30417e1f1021cf04c",
    ),
    Package(
        "libd/libdrm/libdrm2_2.4.134-3_amd64.deb",
        38_528,
        "e1a841ed70c7b7bbd9a03f41c781101d668db0d35b4eee58d7705a6c32b88aaa",
    ),
    Package(
        "libd/libdrm/libdrm-amdgpu1_2.4.134-3_amd64.deb",
        23_300,
        "b7282a3422545c6cb488c3f4f5740844ad06c31030e7b9600700342a807ff519",
    ),
    Package(
        "libd/libdrm/libdrm-common_2.4.134-3_all.deb",
        7_860,
        "89127ee70fd643f0f1c1fe294bfda51315ea4e92234500211f9956351706363f",
    ),
)

_LLVM_22 = Package(
    "l/llvm-toolchain-22/libllvm22_22.1.8-3_amd64.deb",
    29_441_420,
    "4c4a1219e6d3b38024f13d1781f398dc1ebeca759a3bafd2cc9dc9366e6f741e",
)
LLVM_TOOLS = "llvm-22.1.8"  # llc and llvm-mc with all targets
# hipBLAS, its header and rocBLAS, for 6.4.3 and 7.2.4.  Debian's hipBLAS 6.4 has no rocSOLVER.
BLAS_6, BLAS_7 = "blas-6.4.4", "blas-7.2.4"

VERSIONS: dict[str, tuple[Package, ...]] = {
    "6.4.3": (
        *_COMMON,
        Package(
            "l/llvm-toolchain-21/libllvm21_21.1.8-14_amd64.deb",
            28_254_324,
            "5eaf93b4180c233e20dc537684baa123306d356f2bc9190d39a798bd835a0aec",
        ),
        Package(
            "l/llvm-toolchain-21/libclang-common-21-dev_21.1.8-14_amd64.deb",
            768_652,
            "612ef1c6b40e3b8fa2d3a15bd540bc07f3a501d57450298c592096ed733ca766",
        ),
        Package(
            "r/rocm-llvm/libamd-comgr3_7.0.2+dfsg-3_amd64.deb",
            13_933_592,
            "5e18fa40a84922b5b1ff9815e775ff633b0f7ca6925bea39855ab906c7e08de4",
        ),
        Package(
            "r/rocr-runtime/libhsa-runtime64-1_6.4.3+dfsg-5_amd64.deb",
            678_348,
            "ca6a3f8a844010ee4ccd0165af5ed21192dbfe58a1ce1f2360037fe797bf27d0",
        ),
        Package(
            "r/rocm-hipamd/libamdhip64-6_6.4.3-5_amd64.deb",
            9_385_096,
            "0c90c3f0a1f02ab5525a11c5b1879f1cb05bee9c7a2a79aa36863f57c85f7177",
        ),
    ),
    "7.2.4": (
        *_COMMON,
        _LLVM_22,
        Package(
            "l/llvm-toolchain-22/libclang-common-22-dev_22.1.8-3_amd64.deb",
            775_740,
            "97adf643384de951222f04b3b250e50850e952cb678190689c1ea0d2ec236611",
        ),
        Package(
            "r/rocm-llvm/libamd-comgr3_7.2.4+dfsg-1~exp1_amd64.deb",
            12_468_028,
            "798c4b99a029dfc1c6e7b8eea794723308211d72d4e1364c0635118999eec089",
        ),
        Package(
            "r/rocr-runtime/libhsa-runtime64-1_7.2.4+dfsg-1~exp1_amd64.deb",
            682_428,
            "5298b55763e0f756f154f4fb9e142b0a93cb8584ef57e6f26127d295e9d08641",
        ),
        Package(
            "r/rocm-hipamd/libamdhip64-7_7.2.4-1~exp2_amd64.deb",
            9_958_752,
            "265743c8647c0200b014062d3fdcea617c1b7c87a214f666a86dc1da8dd53192",
        ),
    ),
    LLVM_TOOLS: (
        *_COMMON,
        _LLVM_22,
        Package(
            "l/llvm-toolchain-22/llvm-22_22.1.8-3_amd64.deb",
            19_173_972,
            "a9dbfd339bdd79a3469cb3052ae4d29c9453fa990924e495d0f4bd7a24bdb9ce",
        ),
    ),
    BLAS_6: (
        Package(
            "r/roctracer/libroctx64-4_6.4.1-1_amd64.deb",
            4_992,
            "06fa12acc9eb81428231bc0ff98be4c1f1adab57d4d194da36fe697ea214ddec",
        ),
        Package(
            "r/rocblas/librocblas4_6.4.4-4_amd64.deb",
            280_155_896,
            "05613a07d3fba2feaa8b81a86a22bc142dd4fb6630c44c416883a33bf22a1cdb",
        ),
        Package(
            "h/hipblas/libhipblas2_6.4.4-1_amd64.deb",
            161_008,
            "eacf73ea0ab529df209fe4cdca19675fd5513a656f50d6d9cdcb5438a0d5894c",
        ),
        Package(
            "h/hipblas/libhipblas-dev_6.4.4-1_amd64.deb",
            86_500,
            "1d5cb2208dc7f4f42d88cb056af7d5158261c65ce79228a960a723023e31658c",
        ),
    ),
    BLAS_7: (
        Package(
            "r/roctracer/libroctx64-4_7.2.4-1~exp1_amd64.deb",
            5_628,
            "a5e7dc76192e02a02dd4592762e394acfc800e2c956fb79ef7b0d01569455399",
        ),
        Package(
            "f/fmtlib/libfmt11_11.1.1+ds1-2_amd64.deb",
            92_036,
            "a827d18384f362ccb174024588adcbee283646d82b8f5222a8b8abe60e332e4f",
        ),
        Package(
            "r/rocblas/librocblas5_7.2.4-1~exp1_amd64.deb",
            318_474_840,
            "d7b0bdb3ca744edc42894c0774c0f4d2341acb42190808dc49251c0d1319b685",
        ),
        Package(
            "r/rocsolver/librocsolver0_7.2.4-1~exp1+b1_amd64.deb",
            629_651_044,
            "851981df23b9d2a5f00399b57498ac8efbccd203639283e28eb2a3154bc6b717",
        ),
        Package(
            "h/hipblas/libhipblas3_7.2.4-1~exp1_amd64.deb",
            130_644,
            "531e590e6d8ac4ea42b4840276867beb4c3fb8b06862589e27ea9eef86129fbd",
        ),
        Package(
            "h/hipblas/libhipblas-dev_7.2.4-1~exp1_amd64.deb",
            65_836,
            "3c2f5318a725bcd851856ce1e9a4dacc586a0b342aa0e11d6ff8901882f7706e",
        ),
    ),
}

# What another version is used with, without a loader of its own; fetched only by its name.
ADDITIONS = (BLAS_6, BLAS_7)
