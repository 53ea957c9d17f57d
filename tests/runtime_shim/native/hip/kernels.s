; Kernels in gfx1100 assembly for the whole way: code object, compiler, host image, library.
; Arguments are four pointers or numbers of eight bytes; the workgroup's id is in s15.
.amdhsa_code_object_version 5

.macro begin name
.text
.globl \name
.p2align 8
.type \name,@function
\name:
.endm

.macro finish name, lds=0, scratch=0
  s_endpgm
.L\name\()_end:
.size \name, .L\name\()_end-\name
.rodata
.p2align 6
.amdhsa_kernel \name
  .amdhsa_kernarg_size 32
  .amdhsa_group_segment_fixed_size \lds
  .amdhsa_private_segment_fixed_size \scratch
  .amdhsa_enable_private_segment (\scratch > 0) & 1
  .amdhsa_user_sgpr_count 15
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_wavefront_size32 1
  .amdhsa_next_free_vgpr 16
  .amdhsa_next_free_sgpr 32
  .amdhsa_float_denorm_mode_32 3
.end_amdhsa_kernel
.endm

; out[i] = 2 x[i] + y[i]
begin saxpy
  s_load_b128 s[4:7], s[0:1], 0x0
  s_load_b64 s[8:9], s[0:1], 0x10
  v_lshl_add_u32 v1, s15, 8, v0
  s_mov_b32 s10, 0x40000000
  v_lshlrev_b32 v1, 2, v1
  s_waitcnt lgkmcnt(0)
  global_load_b32 v2, v1, s[4:5]
  global_load_b32 v3, v1, s[6:7]
  s_waitcnt vmcnt(0)
  v_fmac_f32 v3, s10, v2
  global_store_b32 v1, v3, s[8:9]
finish saxpy

; out[group * 256 + i] = 255 - i, through LDS, over a barrier
begin reverse
  s_load_b64 s[4:5], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  ds_store_b32 v1, v0
  s_waitcnt lgkmcnt(0)
  s_barrier
  v_sub_nc_u32 v2, 0x3fc, v1
  ds_load_b32 v3, v2
  v_lshl_add_u32 v1, s15, 10, v1
  s_waitcnt lgkmcnt(0)
  global_store_b32 v1, v3, s[4:5]
finish reverse, 1024

; out[i] = what lane i kept in scratch: a hundred words, i + k
begin keep
  s_load_b64 s[4:5], s[0:1], 0x0
  s_mov_b32 s6, 0
.Lkeep_store:
  v_add_nc_u32 v1, s6, v0
  scratch_store_b32 off, v1, s6
  s_add_i32 s6, s6, 4
  s_cmp_lt_i32 s6, 400
  s_cbranch_scc1 .Lkeep_store
  s_waitcnt_vscnt null, 0x0
  s_mov_b32 s6, 396
  scratch_load_b32 v2, off, s6
  v_lshlrev_b32 v1, 2, v0
  s_waitcnt vmcnt(0) lgkmcnt(0)
  global_store_b32 v1, v2, s[4:5]
finish keep, 0, 400

; Stores at the address in the second argument, from lane 3 alone.
begin wild
  s_load_b128 s[4:7], s[0:1], 0x0
  v_mov_b32 v1, 0
  s_waitcnt lgkmcnt(0)
  s_mov_b32 exec_lo, 8
  global_store_b32 v1, v0, s[6:7]
finish wild

; out[i] = i, but the thread whose number is argument 2 stores far above
begin wild_at
  s_load_b128 s[4:7], s[0:1], 0x0
  v_lshl_add_u32 v1, s15, 8, v0
  v_mov_b32 v3, 0x80000000
  v_lshlrev_b32 v2, 2, v1
  s_waitcnt lgkmcnt(0)
  v_cmp_eq_u32 vcc_lo, s6, v1
  v_cndmask_b32 v2, v2, v3, vcc_lo
  global_store_b32 v2, v1, s[4:5]
finish wild_at

; Stores in LDS at the offset in the second argument.
begin wild_lds
  s_load_b128 s[4:7], s[0:1], 0x0
  s_waitcnt lgkmcnt(0)
  v_mov_b32 v1, s6
  ds_store_b32 v1, v0
finish wild_lds, 512

; Stores in scratch at the offset in the second argument.
begin wild_scratch
  s_load_b128 s[4:7], s[0:1], 0x0
  s_waitcnt lgkmcnt(0)
  v_mov_b32 v1, s6
  scratch_store_b32 v1, v0, off
finish wild_scratch, 0, 64

begin trap
  s_nop 0
  s_trap 2
finish trap

; out[0] = a constant of the code object's, found through the program counter
begin constant
  s_load_b64 s[4:5], s[0:1], 0x0
  s_getpc_b64 s[8:9]
  s_add_u32 s8, s8, answer@rel32@lo+4
  s_addc_u32 s9, s9, answer@rel32@hi+12
  s_load_b32 s10, s[8:9], 0x0
  s_waitcnt lgkmcnt(0)
  v_mov_b32 v0, 0
  v_mov_b32 v1, s10
  s_mov_b32 exec_lo, 1
  global_store_b32 v0, v1, s[4:5]
finish constant

; A barrier over the grid with one wave a workgroup, spinning: argument 2 counts, argument 3 is the number of groups.
begin meet
  s_load_b128 s[4:7], s[0:1], 0x0
  s_load_b32 s8, s[0:1], 0x10
  s_mov_b32 exec_lo, 1
  v_mov_b32 v1, 0
  v_mov_b32 v2, 1
  s_waitcnt lgkmcnt(0)
  global_atomic_add_u32 v1, v2, s[6:7]
.Lmeet_wait:
  global_load_b32 v3, v1, s[6:7] glc
  s_waitcnt vmcnt(0)
  v_readfirstlane_b32 s9, v3
  s_cmp_lt_u32 s9, s8
  s_cbranch_scc1 .Lmeet_wait
  s_lshl_b32 s10, s15, 2
  v_mov_b32 v1, s10
  global_store_b32 v1, v3, s[4:5]
finish meet

.rodata
.globl answer
.protected answer
.p2align 2
.type answer,@object
.size answer, 4
answer:
  .long 0x2a2b2c2d
