"""What random kernels in LLVM IR consist of: types, operations, and intrinsics of the target."""

from __future__ import annotations

INTS = ("i8", "i16", "i32", "i64")
FLOATS = ("half", "float", "double")
VECTORS = ("<2 x i16>", "<2 x half>", "<2 x i32>", "<4 x i8>", "<2 x float>")
TYPES = (*INTS, *FLOATS, *VECTORS)
BITS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "half": 16, "float": 32, "double": 64,
         "<2 x i16>": 32, "<2 x half>": 32, "<2 x i32>": 64, "<4 x i8>": 32,
         "<2 x float>": 64}  # fmt: skip
NAME = {"i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64", "half": "f16", "float": "f32",
         "double": "f64", "<2 x i16>": "v2i16", "<2 x half>": "v2f16", "<2 x i32>": "v2i32",
         "<4 x i8>": "v4i8", "<2 x float>": "v2f32"}  # fmt: skip
BINARY = ("add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr")
DIVIDE = ("udiv", "sdiv", "urem", "srem")
COMPARE = ("eq", "ne", "ult", "ule", "ugt", "uge", "slt", "sle", "sgt", "sge")
FCOMPARE = ("oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule",
             "une", "uno")  # fmt: skip
INT2 = ("umin", "umax", "smin", "smax", "uadd.sat", "usub.sat", "sadd.sat", "ssub.sat")
INT1 = ("ctpop", "bitreverse")
FLOAT1 = ("fabs", "floor", "ceil", "trunc", "rint", "sqrt", "canonicalize", "roundeven", "round")
FLOAT2 = ("minnum", "maxnum", "copysign")
ORDERS = ("monotonic", "acquire", "release", "acq_rel", "seq_cst")
RMW = ("add", "sub", "and", "or", "xor", "xchg", "max", "min", "umax", "umin", "uinc_wrap",
        "udec_wrap", "nand")  # fmt: skip
SCOPES = ("", 'syncscope("agent") ', 'syncscope("workgroup") ')
# Intrinsics of the target: name, result, operands ("#n" is an immediate below n).
TARGETS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("amdgcn.perm", "i32", ("i32", "i32", "i32")),
    ("amdgcn.sad.u8", "i32", ("i32", "i32", "i32")),
    ("amdgcn.sad.u16", "i32", ("i32", "i32", "i32")),
    ("amdgcn.sad.hi.u8", "i32", ("i32", "i32", "i32")),
    ("amdgcn.msad.u8", "i32", ("i32", "i32", "i32")),
    ("amdgcn.lerp", "i32", ("i32", "i32", "i32")),
    ("amdgcn.ubfe.i32", "i32", ("i32", "i32", "i32")),
    ("amdgcn.sbfe.i32", "i32", ("i32", "i32", "i32")),
    ("amdgcn.alignbyte", "i32", ("i32", "i32", "i32")),
    ("amdgcn.mul.i24", "i32", ("i32", "i32")),
    ("amdgcn.mul.u24", "i32", ("i32", "i32")),
    ("amdgcn.mulhi.u24", "i32", ("i32", "i32")),
    ("amdgcn.mulhi.i24", "i32", ("i32", "i32")),
    ("amdgcn.mbcnt.lo", "i32", ("i32", "i32")),
    ("amdgcn.mbcnt.hi", "i32", ("i32", "i32")),
    ("amdgcn.sffbh.i32", "i32", ("i32",)),
    ("amdgcn.rcp.f32", "float", ("float",)), ("amdgcn.rcp.f64", "double", ("double",)),
    ("amdgcn.rcp.f16", "half", ("half",)), ("amdgcn.rsq.f32", "float", ("float",)),
    ("amdgcn.rsq.f64", "double", ("double",)), ("amdgcn.rsq.f16", "half", ("half",)),
    ("amdgcn.sqrt.f32", "float", ("float",)), ("amdgcn.sqrt.f16", "half", ("half",)),
    ("amdgcn.exp2.f32", "float", ("float",)), ("amdgcn.log.f32", "float", ("float",)),
    ("amdgcn.sin.f32", "float", ("float",)), ("amdgcn.cos.f32", "float", ("float",)),
    ("amdgcn.fract.f32", "float", ("float",)), ("amdgcn.fract.f64", "double", ("double",)),
    ("amdgcn.fract.f16", "half", ("half",)),
    ("amdgcn.frexp.mant.f32", "float", ("float",)),
    ("amdgcn.frexp.mant.f64", "double", ("double",)),
    ("amdgcn.frexp.exp.i32.f32", "i32", ("float",)),
    ("amdgcn.frexp.exp.i32.f64", "i32", ("double",)),
    ("amdgcn.frexp.exp.i16.f16", "i16", ("half",)),
    ("amdgcn.fmed3.f32", "float", ("float", "float", "float")),
    ("amdgcn.fmed3.f16", "half", ("half", "half", "half")),
    ("amdgcn.fmul.legacy", "float", ("float", "float")),
    ("amdgcn.fma.legacy", "float", ("float", "float", "float")),
    ("amdgcn.div.fixup.f32", "float", ("float", "float", "float")),
    ("amdgcn.div.fixup.f64", "double", ("double", "double", "double")),
    ("amdgcn.div.fixup.f16", "half", ("half", "half", "half")),
    ("amdgcn.div.fmas.f32", "float", ("float", "float", "float", "i1")),
    ("amdgcn.div.fmas.f64", "double", ("double", "double", "double", "i1")),
    ("amdgcn.trig.preop.f64", "double", ("double", "i32")),
    ("amdgcn.cvt.pkrtz", "<2 x half>", ("float", "float")),
    ("amdgcn.cvt.pknorm.i16", "<2 x i16>", ("float", "float")),
    ("amdgcn.cvt.pknorm.u16", "<2 x i16>", ("float", "float")),
    ("amdgcn.cvt.pk.i16", "<2 x i16>", ("i32", "i32")),
    ("amdgcn.cvt.pk.u16", "<2 x i16>", ("i32", "i32")),
    ("amdgcn.cvt.pk.u8.f32", "i32", ("float", "i32", "i32")),
    ("amdgcn.udot4", "i32", ("i32", "i32", "i32", "#b")),
    ("amdgcn.udot8", "i32", ("i32", "i32", "i32", "#b")),
    ("amdgcn.sudot4", "i32", ("#b", "i32", "#b", "i32", "i32", "#b")),
    ("amdgcn.sudot8", "i32", ("#b", "i32", "#b", "i32", "i32", "#b")),
    ("amdgcn.fdot2", "float", ("<2 x half>", "<2 x half>", "float", "#b")),
    ("amdgcn.class.f32", "i1", ("float", "i32")), ("amdgcn.class.f64", "i1", ("double", "i32")),
    ("amdgcn.class.f16", "i1", ("half", "i32")),
    ("amdgcn.readfirstlane.i32", "i32", ("i32",)), ("amdgcn.readlane.i32", "i32", ("i32", "i32")),
    ("amdgcn.ds.bpermute", "i32", ("i32", "i32")), ("amdgcn.ds.permute", "i32", ("i32", "i32")),
    ("amdgcn.ds.swizzle", "i32", ("i32", "#49152")),
    ("amdgcn.mov.dpp8.i32", "i32", ("i32", "#16777216")),
    ("amdgcn.permlane16.i32", "i32", ("i32", "i32", "i32", "i32", "#b", "#b")),
    ("amdgcn.permlanex16.i32", "i32", ("i32", "i32", "i32", "i32", "#b", "#b")),
    ("amdgcn.ballot.i32", "i32", ("i1",)),
    ("amdgcn.writelane.i32", "i32", ("i32", "i32", "i32")),
    ("fshl.i32", "i32", ("i32", "i32", "i32")), ("fshr.i32", "i32", ("i32", "i32", "i32")),
    ("fshl.i64", "i64", ("i64", "i64", "i64")), ("fshr.i16", "i16", ("i16", "i16", "i16")),
    ("bswap.i32", "i32", ("i32",)), ("bswap.i64", "i64", ("i64",)), ("bswap.i16", "i16", ("i16",)),
    ("ldexp.f32.i32", "float", ("float", "i32")), ("ldexp.f64.i32", "double", ("double", "i32")),
    ("ldexp.f16.i16", "half", ("half", "i16")),
    ("exp2.f32", "float", ("float",)), ("log2.f32", "float", ("float",)),
    ("sin.f32", "float", ("float",)), ("cos.f32", "float", ("float",)),
    ("exp2.f16", "half", ("half",)), ("log2.f16", "half", ("half",)),
    ("sin.f16", "half", ("half",)), ("pow.f32", "float", ("float", "float")),
)  # fmt: skip
DPP = (*range(0x100), *range(0x101, 0x110), *range(0x111, 0x120), *range(0x121, 0x130), 0x140,
        0x141, *range(0x150, 0x170))  # fmt: skip
