"""The PTX instructions of shape ``ptx``: operation, result and operands.

A line is ``OPERATION RESULTS OPERANDS...``; ``{a,b}`` stands for each of a and b.  Letters: ``r`` 32
bits, ``l`` 64, ``h`` 16, ``f`` a float, ``d`` a double, ``e`` a half, ``E`` two, ``b`` a bf16, ``B`` two,
``p`` a predicate, ``s`` a number below 40, ``#N`` an immediate below N.  ``@N`` is the first
architecture; ``~BOUND`` says how far an approximation may be off (``a`` and ``p`` are its operands:
floats from -8, or 0, to 8); ``M`` is the mask of all lanes.
"""

from __future__ import annotations

FORMS = """
add.{u32,s32,s32.sat} r r r
sub.{u32,s32,s32.sat} r r r
add.{u64,s64} l l l
sub.{u64,s64} l l l
add.{u16,s16} h h h
sub.{u16,s16} h h h
add.{u16x2,s16x2} r r r @90
mul.lo.{u32,s32} r r r
mul.hi.{u32,s32} r r r
mul.wide.{u32,s32} l r r
mul.lo.{u64,s64} l l l
mul.hi.{u64,s64} l l l
mul.{lo,hi}.{u16,s16} h h h
mul.wide.{u16,s16} r h h
mad.lo.{u32,s32} r r r r
mad.hi.{u32,s32} r r r r
mad.hi.sat.s32 r r r r
mad.wide.{u32,s32} l r r l
mad.lo.{u64,s64} l l l l
mad.hi.{u64,s64} l l l l
mad.{lo,hi}.{u16,s16} h h h h
mad.wide.{u16,s16} r h h r
mul24.{lo,hi}.{u32,s32} r r r
mad24.{lo,hi}.{u32,s32} r r r r
mad24.hi.sat.s32 r r r r
sad.{u32,s32} r r r r
sad.{u16,s16} h h h h
sad.{u64,s64} l l l l
div.{u32,s32} r r q
rem.{u32,s32} r r q
div.{u64,s64} l l Q
rem.{u64,s64} l l Q
abs.s32 r r
abs.s64 l l
abs.s16 h h
neg.s32 r r
neg.s64 l l
neg.s16 h h
min.{u32,s32} r r r
max.{u32,s32} r r r
min.{u64,s64} l l l
max.{u64,s64} l l l
min.{u16,s16} h h h
max.{u16,s16} h h h
min.{u16x2,s16x2} r r r @90
max.{u16x2,s16x2} r r r @90
min.s32.relu r r r @90
max.s32.relu r r r @90
popc.b32 r r
popc.b64 r l
clz.b32 r r
clz.b64 r l
brev.b32 r r
brev.b64 l l
bfind.{u32,s32} r r
bfind.shiftamt.{u32,s32} r r
bfind.{u64,s64} r l
bfind.shiftamt.{u64,s64} r l
fns.b32 r r s s
bfe.{u32,s32} r r r r
bfe.{u32,s32} r r s s
bfe.{u64,s64} l l s s
bfi.b32 r r r s s
bfi.b32 r r r r r
bfi.b64 l l l s s
bmsk.{clamp,wrap}.b32 r s s
bmsk.{clamp,wrap}.b32 r r r
szext.{clamp,wrap}.{u32,s32} r r s
szext.{clamp,wrap}.{u32,s32} r r r
dp4a.{u32,s32}.{u32,s32} r r r r
dp2a.{lo,hi}.{u32,s32}.{u32,s32} r r r r
and.b32 r r r
or.b32 r r r
xor.b64 l l l
not.b64 l l
cnot.b32 r r
cnot.b64 l l
cnot.b16 h h
lop3.b32 r r r r #256
lop3.b32 r r r r #256
lop3.b32 r r r r #256
shf.{l,r}.{clamp,wrap}.b32 r r r r
shf.{l,r}.{clamp,wrap}.b32 r r r s
shf.{l,r}.{clamp,wrap}.b32 r r r #32
shl.b32 r r r
shl.b32 r r s
shl.b64 l l s
shl.b64 l l r
shl.b16 h h s
shr.{u32,s32} r r r
shr.{u32,s32} r r s
shr.{u64,s64} l l s
shr.{u64,s64} l l r
shr.{u16,s16} h h s
prmt.b32 r r r r
prmt.b32 r r r #65536
prmt.b32.{f4e,b4e,rc8,ecl,ecr,rc16} r r r r
set.{eq,ne,lt,le,gt,ge}.u32.s32 r r r
set.{lo,ls,hi,hs}.s32.u32 r r r
set.{eq,lt,gt}.f32.s32 f r r
set.{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}.u32.f32 r f f
set.{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}.ftz.u32.f32 r f f
set.{eq,ne,lt,ltu,num,nan}.u32.f64 r d d
set.{lt,gtu}.f32.f64 f d d
setp.{eq,ne,lt,le,gt,ge}.{s32,u32} p r r
setp.{eq,ne,lt,le,gt,ge}.{s64,u64} p l l
setp.{eq,ne,lt,le,gt,ge}.{s16,u16} p h h
setp.{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}.f64 p d d
setp.{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}.f16 p e e
setp.{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}.bf16 p b b @90
setp.{lt,ge}.{and,or,xor}.s32 p r r p
setp.{lt,neu}.{and,or,xor}.f32 p f f p
selp.{b32,s32} r r r p
selp.b64 l l l p
selp.b16 h h h p
slct.{u32,b32}.s32 r r r r
slct.b32.f32 r r r f
slct.ftz.b32.f32 r r r f
slct.b64.{s32,f32} l l l r
add.{rn,rz,rm,rp}{,.ftz}{,.sat}.f32 f f f
sub.{rn,rz,rm,rp}{,.ftz}{,.sat}.f32 f f f
mul.{rn,rz,rm,rp}{,.ftz}{,.sat}.f32 f f f
fma.{rn,rz,rm,rp}{,.ftz}{,.sat}.f32 f f f f
add.{rn,rz,rm,rp}.f64 d d d
mul.{rn,rz,rm,rp}.f64 d d d
fma.{rn,rz,rm,rp}.f64 d d d d
div.{rn,rz,rm,rp}{,.ftz}.f32 f f f
rcp.{rn,rz,rm,rp}{,.ftz}.f32 f f
sqrt.{rn,rz,rm,rp}{,.ftz}.f32 f f
div.{rn,rz,rm,rp}.f64 d d d
rcp.{rn,rz,rm,rp}.f64 d d
sqrt.{rn,rz,rm,rp}.f64 d d
abs{,.ftz}.f32 f f
neg{,.ftz}.f32 f f
abs.f64 d d
neg.f64 d d
min{,.ftz}.f32 f f f
max{,.ftz}.f32 f f f
min{,.ftz}.NaN.f32 f f f @80
max{,.ftz}.NaN.f32 f f f @80
min{,.ftz}{,.NaN}.xorsign.abs.f32 f f f @86
max{,.ftz}{,.NaN}.xorsign.abs.f32 f f f @86
min.f64 d d d
max.f64 d d d
copysign.f32 f f f
copysign.f64 d d d
testp.{finite,infinite,number,notanumber,normal,subnormal}.f32 p f
testp.{finite,infinite,number,notanumber,normal,subnormal}.f64 p d
add{,.rn}{,.ftz}{,.sat}.f16 e e e
sub{,.rn}{,.ftz}{,.sat}.f16 e e e
mul{,.rn}{,.ftz}{,.sat}.f16 e e e
fma.rn{,.ftz}{,.sat}.f16 e e e e
add{,.rn}{,.ftz}{,.sat}.f16x2 E E E
sub{,.rn}{,.ftz}{,.sat}.f16x2 E E E
mul{,.rn}{,.ftz}{,.sat}.f16x2 E E E
fma.rn{,.ftz}{,.sat}.f16x2 E E E E
fma.rn{,.ftz}.relu.f16 e e e e @80
fma.rn{,.ftz}.relu.f16x2 E E E E @80
fma.rn{,.relu}.bf16 b b b b @80
fma.rn{,.relu}.bf16x2 B B B B @80
add{,.rn}.{bf16} b b b @90
sub{,.rn}.{bf16} b b b @90
mul{,.rn}.{bf16} b b b @90
add{,.rn}.bf16x2 B B B @90
sub{,.rn}.bf16x2 B B B @90
mul{,.rn}.bf16x2 B B B @90
neg{,.ftz}.f16 e e
neg{,.ftz}.f16x2 E E
neg.bf16x2 B B @80
abs{,.ftz}.f16 e e
abs{,.ftz}.f16x2 E E
abs.bf16 b b @80
abs.bf16x2 B B @80
min{,.ftz}{,.NaN}.f16 e e e @80
max{,.ftz}{,.NaN}.f16 e e e @80
min{,.ftz}{,.NaN}.f16x2 E E E @80
max{,.ftz}{,.NaN}.f16x2 E E E @80
min{,.ftz}{,.NaN}.xorsign.abs.f16x2 E E E @86
max{,.ftz}{,.NaN}.xorsign.abs.f16x2 E E E @86
min{,.NaN}.bf16 b b b @80
max{,.NaN}.bf16 b b b @80
min{,.NaN}{,.xorsign.abs}.bf16x2 B B B @86
max{,.NaN}{,.xorsign.abs}.bf16x2 B B B @86
set.{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}.u32.f16 r e e
set.{eq,lt,gtu,num,nan}.f16x2.f16x2 E E E
set.{eq,lt,gtu,num,nan}.ftz.f16x2.f16x2 E E E
set.{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu}.bf16x2.bf16x2 B B B @90
cvt.{rni,rzi,rmi,rpi}{,.ftz}.s32.f32 r f
cvt.{rni,rzi,rmi,rpi}{,.ftz}.u32.f32 r f
cvt.{rni,rzi,rmi,rpi}{,.ftz}.s64.f32 l f
cvt.{rni,rzi,rmi,rpi}{,.ftz}.u64.f32 l f
cvt.{rni,rzi,rmi,rpi}{,.ftz}.s16.f32 h f
cvt.{rni,rzi,rmi,rpi}{,.ftz}.u16.f32 h f
cvt.{rni,rzi,rmi,rpi}.s32.f64 r d
cvt.{rni,rzi,rmi,rpi}.u32.f64 r d
cvt.{rni,rzi,rmi,rpi}.s64.f64 l d
cvt.{rni,rzi,rmi,rpi}.u64.f64 l d
cvt.{rni,rzi,rmi,rpi}.s16.f64 h d
cvt.{rni,rzi,rmi,rpi}.{s32,u32}.f16 r e
cvt.{rni,rzi,rmi,rpi}.{s64,u64}.f16 l e
cvt.{rni,rzi,rmi,rpi}.{s16,u16}.f16 h e
cvt.{rn,rz,rm,rp}.f32.{s32,u32} f r
cvt.{rn,rz,rm,rp}.f32.{s64,u64} f l
cvt.{rn,rz,rm,rp}.f32.{s16,u16} f h
cvt.{rn,rz,rm,rp}.f64.{s32,u32} d r
cvt.{rn,rz,rm,rp}.f64.{s64,u64} d l
cvt.{rn,rz,rm,rp}.f64.{s16,u16} d h
cvt.{rn,rz,rm,rp}.f16.{s32,u32} e r
cvt.{rn,rz,rm,rp}.f16.{s64,u64} e l
cvt.{rn,rz,rm,rp}.f16.{s16,u16} e h
cvt.{rn,rz,rm,rp}{,.ftz}.f32.f64 f d
cvt{,.ftz}.f64.f32 d f
cvt{,.ftz}{,.sat}.f32.f16 f e
cvt.{rn,rz}{,.ftz}{,.sat}.f16.f32 e f
cvt.{rm,rp}.f16.f32 e f
cvt.{rn,rz,rm,rp}.f16.f64 e d
cvt.f64.f16 d e
cvt.{rni,rzi,rmi,rpi}{,.ftz}{,.sat}.f32.f32 f f
cvt.{rni,rzi,rmi,rpi}{,.sat}.f64.f64 d d
cvt.{rni,rzi,rmi,rpi}{,.sat}.f16.f16 e e
cvt.{ftz.sat,sat}.f32.f32 f f
cvt.{rn,rz}{,.relu}.bf16.f32 b f @80
cvt.f32.bf16 f b @80
cvt.{rn,rz}{,.relu}.f16x2.f32 E f f @80
cvt.{rn,rz}{,.relu}.bf16x2.f32 B f f @80
cvt.rna.tf32.f32 r f @80
cvt.{rn,rz}.tf32.f32 r f @90
cvt{,.sat}.{s8,u8,s16,u16}.s32 H r
cvt{,.sat}.{s8,u8,s16,u16}.u32 H r
cvt{,.sat}.{s32,u32}.s64 r l
cvt{,.sat}.{s32,u32}.u64 r l
cvt.sat.u32.s32 r r
cvt.sat.s32.u32 r r
cvt.{s64,u64}.{s32,u32} l r
cvt.{s32,u32}.{s16,u16,s8,u8} r H
cvt.pack.sat.{u16,s16}.s32 r r r
cvt.pack.sat.{u8,s8}.s32.b32 r r r r
vadd{,.sat} VIDEO
vsub{,.sat} VIDEO
vabsdiff{,.sat} VIDEO
vmin{,.sat} VIDEO
vmax{,.sat} VIDEO
vadd4{,.sat} SIMD4
vsub4{,.sat} SIMD4
vabsdiff4{,.sat} SIMD4
vavrg4{,.sat} SIMD4
vmin4{,.sat} SIMD4
vmax4{,.sat} SIMD4
vadd2{,.sat} SIMD2
vsub2{,.sat} SIMD2
vabsdiff2{,.sat} SIMD2
vavrg2{,.sat} SIMD2
vmin2{,.sat} SIMD2
vmax2{,.sat} SIMD2
vset2 VSET2
vset4 VSET4
vset VSET
vshl{,.sat} VSHIFT
vshr{,.sat} VSHIFT
vmad VMAD
ex2.approx{,.ftz}.f32 f a ~ulp2
lg2.approx{,.ftz}.f32 f p ~mix2e-21
sin.approx{,.ftz}.f32 f a ~abs2e-18
cos.approx{,.ftz}.f32 f a ~abs2e-18
rcp.approx{,.ftz}.f32 f a ~ulp1
rsqrt.approx{,.ftz}.f32 f p ~ulp2
sqrt.approx{,.ftz}.f32 f p ~ulp3
div.approx{,.ftz}.f32 f a a ~ulp2
div.full{,.ftz}.f32 f a a ~ulp2
tanh.approx.f32 f a ~rel2e-10
ex2.approx{,.ftz}.f32 f f ~ulp2
lg2.approx{,.ftz}.f32 f f ~mix2e-21
rcp.approx{,.ftz}.f32 f f ~ulp1
rsqrt.approx{,.ftz}.f32 f f ~ulp2
sqrt.approx{,.ftz}.f32 f f ~ulp3
rcp.approx.ftz.f64 d d ~rel2e-19
rsqrt.approx.ftz.f64 d d ~rel2e-19
atom.global.{add,min,max}.{u32,s32} ATOM r
atom.global.{and,or,xor,exch}.b32 ATOM r
atom.global.{add,min,max}.u64 ATOM l
atom.global.{min,max}.s64 ATOM l
atom.global.{and,or,xor,exch}.b64 ATOM l
atom.global.{inc,dec}.u32 ATOM r
atom.shared.{add,min,max}.{u32,s32} ATOMS r
atom.shared.{and,or,xor,exch}.b32 ATOMS r
atom.shared.{inc,dec}.u32 ATOMS r
atom.shared.{add,min,max}.u64 ATOMS l
atom.shared.{and,or,xor,exch}.b64 ATOMS l
atom.global.cas.b32 CAS r
atom.global.cas.b64 CAS l
atom.global.cas.b16 CAS h
atom.shared.cas.b32 CASS r
atom.shared.cas.b64 CASS l
atom.global.add.f32 ATOM f
atom.global.add.f64 ATOM d
atom.global.add.noftz.f16x2 ATOM E
atom.global.add.noftz.f16 ATOM e
atom.global.add.noftz.bf16x2 ATOM B @90
atom.shared.add.f32 ATOMS f
atom.shared.add.f64 ATOMS d
red.global.{add,min,max}.{u32,s32} RED r
red.global.{and,or,xor}.b32 RED r
red.global.{inc,dec}.u32 RED r
red.global.add.{u64} RED l
red.global.add.f32 RED f
add.cc CARRY
sub.cc BORROW
mad.cc MADC
shfl.sync.{up,down,bfly,idx}.b32 SHFL
shfl.sync.{up,down,bfly,idx}.b32 SHFL
redux.sync.{add,min,max}.{s32,u32} r r M @80
redux.sync.{and,or,xor}.b32 r r M @80
vote.sync.ballot.b32 r p M
vote.sync.{any,all,uni}.pred p p M
match.any.sync.b32 r s M
match.any.sync.b64 r l M
cvt.rn.satfinite{,.relu}.{e4m3x2,e5m2x2}.f32 h f f @89
cvt.rn.satfinite{,.relu}.{e4m3x2,e5m2x2}.f16x2 h E @89
cvt.rn{,.relu}.f16x2.{e4m3x2,e5m2x2} E h @89
"""
