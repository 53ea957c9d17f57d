"""What the source of ``opcodes.json`` names otherwise, lacks or has wrong.

The formats and their fields by our names, and the corrections: of fields, of operands, and of what
gfx1100 does not have.
"""

from __future__ import annotations

import re

# Formats: (class in tinygrad's ins.py, dwords, {their field name: (our name, kind)}).
# Kinds: v = VGPR, src = 9-bit source, s = 8-bit scalar source, sd = 7-bit scalar register,
# sb = scalar pair (index / 2), i = plain bits.
Spec = tuple[str, dict[str, tuple[str, str]]]
VALU3 = {
    "vdst": ("vdst", "v"),
    "src0": ("src0", "src"),
    "src1": ("src1", "src"),
    "src2": ("src2", "src"),
    "neg": ("neg", "i"),
    "clmp": ("clamp", "i"),
}
FLAT = {
    "vdst": ("vdst", "v"),
    "addr": ("addr", "v"),
    "data": ("data", "v"),
    "saddr": ("saddr", "sd"),
    "offset": ("offset", "i"),
    "glc": ("glc", "i"),
    "dlc": ("dlc", "i"),
    "slc": ("slc", "i"),
    "sve": ("sve", "i"),
}
FORMATS: dict[str, Spec] = {
    "SOP1": ("SOP1", {"sdst": ("sdst", "sd"), "ssrc0": ("ssrc0", "s")}),
    "SOP2": ("SOP2", {"sdst": ("sdst", "sd"), "ssrc0": ("ssrc0", "s"), "ssrc1": ("ssrc1", "s")}),
    "SOPC": ("SOPC", {"ssrc0": ("ssrc0", "s"), "ssrc1": ("ssrc1", "s")}),
    "SOPK": ("SOPK", {"sdst": ("sdst", "sd"), "simm16": ("imm", "i")}),
    "SOPP": ("SOPP", {"simm16": ("imm", "i")}),
    "SMEM": (
        "SMEM",
        {
            "sdata": ("sdata", "sd"),
            "sbase": ("sbase", "sb"),
            "soffset": ("soffset", "sd"),
            "offset": ("offset", "i"),
            "glc": ("glc", "i"),
            "dlc": ("dlc", "i"),
        },
    ),
    "VOP1": ("VOP1", {"vdst": ("vdst", "v"), "src0": ("src0", "src")}),
    "VOP2": ("VOP2", {"vdst": ("vdst", "v"), "src0": ("src0", "src"), "vsrc1": ("src1", "v")}),
    "VOPC": ("VOPC", {"src0": ("src0", "src"), "vsrc1": ("src1", "v")}),
    "VOP3": (
        "VOP3",
        VALU3 | {"omod": ("omod", "i"), "abs": ("abs", "i"), "opsel": ("op_sel", "i")},
    ),
    "VOP3SD": ("VOP3SD", VALU3 | {"sdst": ("sdst", "sd"), "omod": ("omod", "i")}),
    "VOP3P": (
        "VOP3P",
        VALU3
        | {
            "neg_hi": ("neg_hi", "i"),
            "opsel": ("op_sel", "i"),
            "opsel_hi": ("op_sel_hi", "i"),
            "opsel_hi2": ("op_sel_hi2", "i"),
        },
    ),
    "VOPD": (
        "VOPD",
        {
            "vdstx": ("vdst", "v"),
            "srcx0": ("src0", "src"),
            "vsrcx1": ("src1", "v"),
            "vdsty": ("vdsty", "i"),
            "srcy0": ("srcy0", "src"),
            "vsrcy1": ("srcy1", "v"),
        },
    ),
    "DS": (
        "DS",
        {
            "vdst": ("vdst", "v"),
            "addr": ("addr", "v"),
            "data0": ("data0", "v"),
            "data1": ("data1", "v"),
            "offset0": ("offset0", "i"),
            "offset1": ("offset1", "i"),
            "gds": ("gds", "i"),
        },
    ),
    "FLAT": ("FLAT", FLAT),
    "SCRATCH": ("SCRATCH", FLAT),
    "GLOBAL": ("GLOBAL", FLAT),
    "MUBUF": (
        "MUBUF",
        {
            "vdata": ("vdata", "v"),
            "vaddr": ("vaddr", "v"),
            "srsrc": ("srsrc", "sq"),
            "soffset": ("soffset", "s"),
            "offset": ("offset", "i"),
            "offen": ("offen", "i"),
            "idxen": ("idxen", "i"),
            "glc": ("glc", "i"),
            "dlc": ("dlc", "i"),
            "slc": ("slc", "i"),
            "tfe": ("tfe", "i"),
        },
    ),
    "MTBUF": (
        "MTBUF",
        {
            "vdata": ("vdata", "v"),
            "vaddr": ("vaddr", "v"),
            "srsrc": ("srsrc", "sq"),
            "soffset": ("soffset", "s"),
            "offset": ("offset", "i"),
            "format": ("format", "i"),
            "offen": ("offen", "i"),
            "idxen": ("idxen", "i"),
            "glc": ("glc", "i"),
            "dlc": ("dlc", "i"),
            "slc": ("slc", "i"),
        },
    ),
    "VINTERP": ("VINTERP", VALU3 | {"opsel": ("op_sel", "i"), "waitexp": ("wait_exp", "i")}),
    "LDSDIR": (
        "LDSDIR",
        {
            "vdst": ("vdst", "v"),
            "attr": ("attr", "i"),
            "attr_chan": ("chan", "i"),
            "wait_vdst": ("wait_vdst", "i"),
        },
    ),
    "EXP": (
        "EXP",
        {f"vsrc{i}": (f"vsrc{i}", "v") for i in range(4)}
        | {
            "en": ("en", "i"),
            "target": ("target", "i"),
            "done": ("done", "i"),
            "row": ("row", "i"),
        },
    ),
}
# Fields of the source that gfx1100 does not have.
DROPPED = {("MTBUF", "tfe")}

# RDNA3.5 only (gfx1150): floating point on the scalar unit.
GFX1150_SALU = re.compile(
    r"S_(CEIL|FLOOR|TRUNC|RNDNE|ADD|SUB|MIN|MAX|MUL|FMAC|FMAAK|FMAMK)_(F16|F32)$"
    r"|S_CVT_.*|S_CMP_.*_F(16|32)$"
)
# In the source, but in the wrong format, or not accepted by gfx1100.
ABSENT = re.compile(
    r"GLOBAL_LOAD_LDS_.*|SCRATCH_LOAD_LDS_.*|BUFFER_LOAD_LDS_.*|FLAT_ATOMIC_CSUB_U32"
    r"|S_ENDPGM_ORDERED_PS_DONE_"
)
SUFFIX = re.compile(r"_E(32|64)$")

TRANS = re.compile(r"v_(exp|log|rcp|rcp_iflag|rsq|sqrt|sin|cos)_f(16|32|64)$")

MIX = "vdst:w:v:1:{} src0:r:src:1:mix src1:r:src:1:mix src2:r:src:1:mix"
# Operands that the source lacks or has wrong: mnemonic -> the list in print order.
ARGS: dict[str, str] = {
    "v_nop": "",
    "v_pipeflush": "",
    "s_atc_probe": "sbase:r:sd:2:b64",
    "s_atc_probe_buffer": "sbase:r:sd:4:b128",
    "exp": " ".join(f"vsrc{i}:r:v:1:b32" for i in range(4)),
    "lds_param_load": "vdst:w:v:1:b32",
    "lds_direct_load": "vdst:w:v:1:b32",
    "ds_consume": "vdst:w:v:1:b32",
    "ds_append": "vdst:w:v:1:b32",
    "ds_bvh_stack_rtn_b32": "vdst:w:v:1:b32 addr:rw:v:1:b32 data0:r:v:1:b32 data1:r:v:4:b128",
    "s_setreg_b32": "sdst:r:sd:1:b32",
    "s_setreg_imm32_b32": "lit:r:i:1:b32",
    "s_version": "",
    "s_subvector_loop_begin": "sdst:rw:sd:1:b32",
    "s_subvector_loop_end": "sdst:rw:sd:1:b32",
    "s_waitcnt_vscnt": "sdst:r:sd:1:b32",
    "s_waitcnt_vmcnt": "sdst:r:sd:1:b32",
    "s_waitcnt_expcnt": "sdst:r:sd:1:b32",
    "s_waitcnt_lgkmcnt": "sdst:r:sd:1:b32",
    "v_fma_mix_f32": MIX.format("f32"),
    "v_fma_mixlo_f16": MIX.format("b32"),
    "v_fma_mixhi_f16": MIX.format("b32"),
    "s_gl1_inv": "",
    "s_dcache_inv": "",
    "v_cndmask_b32": "vdst:w:v:1:b32 src0:r:src:1:f32 src1:r:src:1:f32 src2:r:sd:1:mask",
    "v_ldexp_f16": "vdst:w:v:1:f16 src0:r:src:1:f16 src1:r:src:1:i16",
    # Its floating-point inline constants fill both halves, unlike those of VOP3P.
    "v_pk_fmac_f16": "vdst:rw:v:1:pk_f16 src0:r:src:1:pk_f16x2 src1:r:v:1:pk_f16",
    "v_cndmask_b16": "vdst:w:v:1:b16 src0:r:src:1:f16 src1:r:src:1:f16 src2:r:sd:1:mask",
    "v_swap_b32": "vdst:rw:v:1:b32 src0:rw:v:1:b32",
    "v_swap_b16": "vdst:rw:v:1:b16 src0:rw:v:1:b16",
    "v_swaprel_b32": "vdst:rw:v:1:b32 src0:rw:v:1:b32",
    "v_readfirstlane_b32": "sdst:w:sx:1:b32 src0:r:v:1:b32",
    "v_readlane_b32": "sdst:w:sx:1:b32 src0:r:v:1:b32 src1:r:s:1:lane",
    "v_writelane_b32": "vdst:rw:v:1:b32 src0:r:s:1:b32 src1:r:s:1:lane",
    "v_permlane16_b32": "vdst:rw:v:1:b32 src0:r:v:1:b32 src1:r:s:1:b32 src2:r:s:1:b32",
    "v_permlanex16_b32": "vdst:rw:v:1:b32 src0:r:v:1:b32 src1:r:s:1:b32 src2:r:s:1:b32",
    "v_permlane64_b32": "vdst:w:v:1:b32 src0:r:v:1:b32",
    "s_movrels_b32": "sdst:w:sd:1:b32 ssrc0:r:sd:1:b32",
    "s_movrels_b64": "sdst:w:sd:2:b64 ssrc0:r:sd:2:b64",
    "s_movrelsd_2_b32": "sdst:w:sd:1:b32 ssrc0:r:s:1:b32",
    "s_setpc_b64": "ssrc0:r:sd:2:b64",
    "s_swappc_b64": "sdst:w:sd:2:b64 ssrc0:r:s:2:b64",
    "s_rfe_b64": "ssrc0:r:sd:2:b64",
    "s_sendmsg_rtn_b32": "sdst:w:sd:1:b32",
    "s_sendmsg_rtn_b64": "sdst:w:sd:2:b64",
}
READ_WRITE = re.compile(
    r"v_fmac_|v_pk_fmac_|v_dot2acc_|v_dot2c_|v_dual_fmac_|v_dual_dot2acc_"
    r"|s_addk_|s_mulk_|s_cmovk_|s_cmov_|s_bitset[01]_|v_movreld_|v_movrelsd|s_movreld_"
)
PARTIAL = re.compile(r"_d16|_d16_hi|v_fma_mix(lo|hi)_f16|v_cvt_pk_u8_f32")
