"""Random kernels in LLVM IR, and their code by LLVM's AMDGPU backend: what a translator that writes
LLVM IR may hand to the emulated device."""

from __future__ import annotations

import functools
import random
from typing import Any

import llvmlite.binding as llvm

from sassxlate.disasm.containers.elf import Elf

from .llvm_words import (
    BINARY,
    BITS,
    COMPARE,
    DIVIDE,
    DPP,
    FCOMPARE,
    FLOAT1,
    FLOAT2,
    FLOATS,
    INT1,
    INT2,
    INTS,
    NAME,
    ORDERS,
    RMW,
    SCOPES,
    TARGETS,
    TYPES,
)

TRIPLE = "amdgcn-amd-amdhsa"
CPU = "gfx1100"


class _Kernel:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.declared: set[str] = set()
        self.pools: dict[str, list[str]] = {t: [] for t in (*TYPES, "i1")}
        self.number = 0

    def emit(self, type_: str, text: str) -> str:
        name = f"%r{self.number}"
        self.number += 1
        self.lines.append(f"  {name} = {text}")
        if type_ in self.pools:
            self.pools[type_].append(name)
        return name

    def call(self, name: str, result: str, args: list[tuple[str, str]]) -> str:
        types = ", ".join(t for t, _ in args)
        self.declared.add(f"declare {result} @llvm.{name}({types})")
        operands = ", ".join(f"{t} {v}" for t, v in args)
        return self.emit(result, f"call {result} @llvm.{name}({operands})")

    def value(self, type_: str) -> str:
        rng = self.rng
        if type_ in INTS and rng.random() < 0.15:
            bits = BITS[type_]
            some = (1, 2, 3, 4, 7, 8, 16, 31, 0xFF, 0xFFFF, -1, rng.getrandbits(bits - 1))
            return str(rng.choice([n for n in some if n < 1 << (bits - 1)]))
        if type_ in FLOATS and rng.random() < 0.1:
            return rng.choice(("0.0", "1.0", "-2.0", "0.5", "4.0"))
        pool = self.pools[type_]
        recent = pool[-6:] if rng.random() < 0.7 else pool
        return rng.choice(recent)

    # --- one operation -----------------------------------------------------------------------

    def _integer(self) -> None:
        rng = self.rng
        t = rng.choice((*INTS, "i32", "i32", "<2 x i16>", "<4 x i8>", "<2 x i32>"))
        roll = rng.random()
        if roll < 0.5:
            self.emit(t, f"{rng.choice(BINARY)} {t} {self.value(t)}, {self.value(t)}")
        elif roll < 0.75:
            name = f"{rng.choice(INT2)}.{NAME[t]}"
            self.call(name, t, [(t, self.value(t)), (t, self.value(t))])
        elif roll < 0.85:
            self.call(f"{rng.choice(INT1)}.{NAME[t]}", t, [(t, self.value(t))])
        elif roll < 0.93 and t in INTS:
            zero = ("i1", rng.choice(("true", "false")))
            self.call(f"{rng.choice(('ctlz', 'cttz', 'abs'))}.{NAME[t]}", t,
                      [(t, self.value(t)), zero])  # fmt: skip
        elif t in ("i32", "i16"):
            self.emit(t, f"{rng.choice(DIVIDE)} {t} {self.value(t)}, {self.value(t)}")
        else:
            a = self.emit(t, f"xor {t} {self.value(t)}, {self.value(t)}")
            self.emit(t, f"and {t} {a}, {self.value(t)}")

    def _wide(self) -> None:
        """Products and carries of 64 bits."""
        rng = self.rng
        how = rng.choice(("zext", "sext"))
        a = self.emit("i64", f"{how} i32 {self.value('i32')} to i64")
        b = self.emit("i64", f"{how} i32 {self.value('i32')} to i64")
        p = self.emit("i64", f"mul i64 {a}, {b}")
        if rng.random() < 0.6:
            p = self.emit("i64", f"add i64 {p}, {self.value('i64')}")
        if rng.random() < 0.4:
            h = self.emit("i64", f"lshr i64 {p}, 32")
            self.emit("i32", f"trunc i64 {h} to i32")
        if rng.random() < 0.3:
            t = rng.choice(("i32", "i64"))
            name = rng.choice(("uadd", "usub", "sadd", "ssub", "umul", "smul"))
            pair = f"{{{t}, i1}}"
            n = f"{name}.with.overflow.{t}"
            r = self.call(n, pair, [(t, self.value(t)), (t, self.value(t))])
            self.emit(t, f"extractvalue {pair} {r}, 0")
            self.emit("i1", f"extractvalue {pair} {r}, 1")

    def _floating(self) -> None:
        rng = self.rng
        t = rng.choice((*FLOATS, "<2 x half>", "<2 x float>"))
        roll = rng.random()
        if roll < 0.35:
            op = rng.choice(("fadd", "fsub", "fmul"))
            self.emit(t, f"{op} {t} {self.value(t)}, {self.value(t)}")
        elif roll < 0.5:
            self.call(f"fma.{NAME[t]}", t, [(t, self.value(t)) for _ in range(3)])
        elif roll < 0.62:
            self.call(f"{rng.choice(FLOAT2)}.{NAME[t]}", t, [(t, self.value(t)) for _ in "ab"])
        elif roll < 0.8:
            self.call(f"{rng.choice(FLOAT1)}.{NAME[t]}", t, [(t, self.value(t))])
        elif roll < 0.84:
            self.emit(t, f"fdiv {t} {self.value(t)}, {self.value(t)}")
        elif roll < 0.92:
            self.emit(t, f"fneg {t} {self.value(t)}")
        else:  # mixed precision
            parts = [self.emit("float", f"fpext half {self.value('half')} to float") for _ in "ab"]
            both = [("float", p) for p in parts]
            r = self.call("fma.f32", "float", [*both, ("float", self.value("float"))])
            if rng.random() < 0.5:
                self.emit("half", f"fptrunc float {r} to half")

    def _choice(self) -> None:
        rng = self.rng
        t = rng.choice((*INTS, *FLOATS))
        kind, how = ("fcmp", FCOMPARE) if t in FLOATS else ("icmp", COMPARE)
        c = self.emit("i1", f"{kind} {rng.choice(how)} {t} {self.value(t)}, {self.value(t)}")
        if rng.random() < 0.3:
            op = rng.choice(("and", "or", "xor"))
            c = self.emit("i1", f"{op} i1 {c}, {self.value('i1')}")
        t = rng.choice(TYPES)
        a, b = self.value(t), self.value(t)
        if t in FLOATS and rng.random() < 0.5:
            a = self.emit(t, f"fneg {t} {a}")
        if t in FLOATS and rng.random() < 0.3:
            b = self.call(f"fabs.{NAME[t]}", t, [(t, b)])
        self.emit(t, f"select i1 {c}, {t} {a}, {t} {b}")
        if rng.random() < 0.2:
            self.emit("i32", f"{rng.choice(('zext', 'sext'))} i1 {c} to i32")

    def _convert(self) -> None:
        rng = self.rng
        a, b = rng.choice(TYPES), rng.choice(TYPES)
        v = self.value(a)
        if a == b:
            return
        if BITS[a] == BITS[b] and rng.random() < 0.7:
            self.emit(b, f"bitcast {a} {v} to {b}")
        elif a in INTS and b in INTS:
            how = "trunc" if BITS[a] > BITS[b] else rng.choice(("zext", "sext"))
            if BITS[a] != BITS[b]:
                self.emit(b, f"{how} {a} {v} to {b}")
        elif a in INTS and b in FLOATS:
            self.emit(b, f"{rng.choice(('uitofp', 'sitofp'))} {a} {v} to {b}")
        elif a in FLOATS and b in INTS:
            if rng.random() < 0.5:
                self.emit(b, f"{rng.choice(('fptoui', 'fptosi'))} {a} {v} to {b}")
            else:
                how = rng.choice(("fptoui", "fptosi"))
                self.call(f"{how}.sat.{NAME[b]}.{NAME[a]}", b, [(a, v)])
        elif a in FLOATS and b in FLOATS and BITS[a] != BITS[b]:
            how = "fptrunc" if BITS[a] > BITS[b] else "fpext"
            self.emit(b, f"{how} {a} {v} to {b}")

    def _vector(self) -> None:
        rng = self.rng
        t, e, n = rng.choice((("<2 x i16>", "i16", 2), ("<2 x half>", "half", 2),
                              ("<4 x i8>", "i8", 4), ("<2 x i32>", "i32", 2)))  # fmt: skip
        roll = rng.random()
        if roll < 0.4:
            self.emit(e, f"extractelement {t} {self.value(t)}, i32 {rng.randrange(n)}")
        elif roll < 0.8:
            v, x = self.value(t), self.value(e)
            self.emit(t, f"insertelement {t} {v}, {e} {x}, i32 {rng.randrange(n)}")
        else:
            index = ", ".join(f"i32 {rng.randrange(2 * n)}" for _ in range(n))
            a, b = self.value(t), self.value(t)
            self.emit(t, f"shufflevector {t} {a}, {t} {b}, <{n} x i32> <{index}>")

    def _indexed(self) -> None:
        """Elements of a vector whose index is the same for all lanes, or not."""
        rng = self.rng
        n = rng.choice((4, 8, 16))
        vector = f"<{n} x i32>"
        base = rng.choice(("%input", "%uniform", "%global"))
        v = self.emit("", f"load {vector}, ptr addrspace(1) {base}, align 16")
        index = rng.choice(("%a", "%b", self.value("i32")))
        at = self.emit("", f"and i32 {index}, {n - 1}")
        w = self.emit("", f"insertelement {vector} {v}, i32 {self.value('i32')}, i32 {at}")
        at = self.emit("", f"and i32 {self.value('i32') if rng.random() < 0.3 else '%b'}, {n - 1}")
        self.emit("i32", f"extractelement {vector} {w}, i32 {at}")
        self.emit("i32", f"extractelement {vector} {w}, i32 {rng.randrange(n)}")

    def _target(self) -> None:
        rng = self.rng
        if rng.random() < 0.12:
            control = rng.choice(DPP)
            self.call("amdgcn.update.dpp.i32", "i32", [
                ("i32", self.value("i32")), ("i32", self.value("i32")), ("i32", str(control)),
                ("i32", str(rng.choice((15, 15, 5)))), ("i32", str(rng.choice((15, 15, 3)))),
                ("i1", rng.choice(("true", "false"))),
            ])  # fmt: skip
            return
        name, result, kinds = rng.choice(TARGETS)
        args: list[tuple[str, str]] = []
        for kind in kinds:
            if kind == "#b":
                args.append(("i1", rng.choice(("true", "false"))))
            elif kind[0] == "#":
                args.append(("i32", str(rng.randrange(int(kind[1:])))))
            else:
                args.append((kind, self.value(kind)))
        self.call(name, result, args)

    def _memory(self) -> None:
        rng = self.rng
        space, base, size = rng.choice((
            (1, "%global", 1 << 16), (1, "%uniform", 1 << 12), (3, "@lds", 4096),
            (5, "%stack", 64), (0, "%flat", 1 << 12), (4, "%constant", 256),
        ))  # fmt: skip
        where = f"ptr addrspace({space})" if space else "ptr"
        t = rng.choice((*TYPES, "<4 x i32>", "<3 x i32>", "<4 x float>"))
        if rng.random() < 0.5:
            offset = self.emit("", f"and i32 {self.value('i32')}, {size // 2 - 16}")
            wide = self.emit("", f"zext i32 {offset} to i64")
            p = self.emit("", f"getelementptr i8, {where} {base}, i64 {wide}")
        else:
            p = self.emit("", f"getelementptr i8, {where} {base}, i64 {rng.randrange(0, size, 4)}")
        align = rng.choice((1, 2, 4, 4, 8, 16))
        volatile = "volatile " if rng.random() < 0.1 else ""
        if rng.random() < 0.5 or space == 4:
            v = self.emit(t, f"load {volatile}{t}, {where} {p}, align {align}")
            if t == "<4 x i32>":
                for i in range(4):
                    self.emit("i32", f"extractelement {t} {v}, i32 {i}")
        elif t in TYPES:
            self.lines.append(f"  store {volatile}{t} {self.value(t)}, {where} {p}, align {align}")
        else:
            self.lines.append(f"  store {t} zeroinitializer, {where} {p}, align {align}")

    def _atomic(self) -> None:
        rng = self.rng
        space, base = rng.choice(((1, "%global"), (1, "%uniform"), (3, "@lds"), (0, "%flat")))
        where = f"ptr addrspace({space})" if space else "ptr"
        t = rng.choice(("i32", "i32", "i64", "float"))
        offset = self.emit("", f"and i32 {self.value('i32')}, 2040")
        wide = self.emit("", f"zext i32 {offset} to i64")
        p = self.emit("", f"getelementptr i8, {where} {base}, i64 {wide}")
        if rng.random() < 0.3:
            p = base
        scope, order = rng.choice(SCOPES), rng.choice(ORDERS)
        roll = rng.random()
        if t == "float":
            op = rng.choice(("fadd", "fmin", "fmax"))
            self.emit(t, f"atomicrmw {op} {where} {p}, float {self.value(t)} {scope}{order}")
        elif roll < 0.6:
            op = rng.choice(RMW)
            self.emit(t, f"atomicrmw {op} {where} {p}, {t} {self.value(t)} {scope}{order}")
        elif roll < 0.8:
            second = order if order in ("monotonic", "acquire", "seq_cst") else "monotonic"
            both = f"{t} {self.value(t)}, {t} {self.value(t)}"
            r = self.emit("", f"cmpxchg {where} {p}, {both} {scope}{order} {second}")
            self.emit(t, f"extractvalue {{{t}, i1}} {r}, 0")
        elif roll < 0.9:
            order = rng.choice(("monotonic", "acquire", "seq_cst"))
            self.emit(t, f"load atomic {t}, {where} {p} {scope}{order}, align {BITS[t] // 8}")
        else:
            order = rng.choice(("monotonic", "release", "seq_cst"))
            v = self.value(t)
            self.lines.append(
                f"  store atomic {t} {v}, {where} {p} {scope}{order}, align {BITS[t] // 8}"
            )

    def _barrier(self) -> None:
        how = self.rng.choice((*ORDERS[1:],))
        if self.rng.random() < 0.5:
            self.lines.append(f"  fence {self.rng.choice(SCOPES)}{how}")
        else:
            self.declared.add("declare void @llvm.amdgcn.s.barrier()")
            self.lines.append("  call void @llvm.amdgcn.s.barrier()")

    def operations(self, n: int) -> None:
        kinds = (
            [self._integer] * 8 + [self._wide] * 2 + [self._floating] * 6 + [self._choice] * 4
            + [self._convert] * 4 + [self._vector] * 3 + [self._target] * 4 + [self._memory] * 4
            + [self._atomic] + [self._barrier] + [self._indexed]
        )  # fmt: skip
        for _ in range(n):
            self.rng.choice(kinds)()

    # --- the whole ---------------------------------------------------------------------------

    def _inputs(self) -> None:
        self.declared.add("declare i32 @llvm.amdgcn.workitem.id.x()")
        self.declared.add("declare i32 @llvm.amdgcn.workgroup.id.x()")
        self.emit("i32", "call i32 @llvm.amdgcn.workitem.id.x()")
        self.emit("i32", "call i32 @llvm.amdgcn.workgroup.id.x()")
        self.lines += [
            "  %stack = alloca [128 x i8], align 16, addrspace(5)",
            "  %t = call i32 @llvm.amdgcn.workitem.id.x()",
            "  %t4 = shl i32 %t, 7",
            "  %t8 = zext i32 %t4 to i64",
            "  %global = getelementptr i8, ptr addrspace(1) %uniform, i64 %t8",
            "  %constant = addrspacecast ptr addrspace(1) %input to ptr addrspace(4)",
        ]
        for i, t in enumerate((*TYPES, *INTS, *FLOATS)):
            near = "%global" if i % 2 else "%input"
            p = self.emit("", f"getelementptr i8, ptr addrspace(1) {near}, i64 {16 * i}")
            self.emit(t, f"load {t}, ptr addrspace(1) {p}, align 16")
        self.pools["i32"] += ["%a", "%b"]
        self.pools["i64"].append("%c")
        self.pools["float"].append("%f")
        a, b = self.value("i32"), self.value("i32")
        self.emit("i1", f"icmp slt i32 {a}, {b}")

    def _branches(self, n: int) -> None:
        """An `if`, a loop or a `switch`, whose values stay inside."""
        rng, number = self.rng, self.number
        self.number += 1
        kept = {t: list(p) for t, p in self.pools.items()}

        def body(label: str, to: str) -> None:
            self.lines.append(f"{label}:")
            self.operations(n)
            self.lines.append(f"  br label %{to}")
            self.pools = {t: list(p) for t, p in kept.items()}

        kind = rng.choice(("if", "loop", "switch"))
        if kind == "if":
            self.lines.append(
                f"  br i1 {self.value('i1')}, label %then{number}, label %else{number}"
            )
            body(f"then{number}", f"end{number}")
            body(f"else{number}", f"end{number}")
        elif kind == "loop":
            bound = self.value("i32")
            self.lines += [
                f"  br label %pre{number}", f"pre{number}:", f"  br label %loop{number}",
                f"loop{number}:",
                f"  %i{number} = phi i32 [ 0, %pre{number} ], [ %j{number}, %loop{number} ]",
            ]  # fmt: skip
            self.pools["i32"].append(f"%i{number}")
            self.operations(n)
            self.lines += [
                f"  %j{number} = add i32 %i{number}, 1",
                f"  %c{number} = icmp slt i32 %j{number}, {bound}",
                f"  br i1 %c{number}, label %loop{number}, label %end{number}",
            ]
            self.pools = {t: list(p) for t, p in kept.items()}
        else:
            v = self.value("i32")
            cases = " ".join(f"i32 {k}, label %case{number}.{k}" for k in range(4))
            self.lines.append(f"  switch i32 {v}, label %end{number} [ {cases} ]")
            for k in range(4):
                body(f"case{number}.{k}", f"end{number}")
        self.lines.append(f"end{number}:")

    def _outputs(self) -> None:
        at = 0
        for t in TYPES:
            for v in self.pools[t][-4:]:
                p = self.emit("", f"getelementptr i8, ptr addrspace(1) %global, i64 {at}")
                self.lines.append(f"  store {t} {v}, ptr addrspace(1) {p}, align 8")
                at += 16

    def text(self, size: int) -> str:
        rng = self.rng
        self._inputs()
        left = size
        while left > 0:
            if rng.random() < 0.15:
                self._branches(max(2, size // 8))
                left -= size // 4
            else:
                self.operations(min(left, 8))
                left -= 8
        self._outputs()
        noinline = rng.random() < 0.15
        helper = (
            "define internal i32 @helper(i32 %x, i32 %y) noinline {\n  %p = mul i32 %x, %y\n"
            "  %q = xor i32 %p, %x\n  ret i32 %q\n}\n"
        )
        if noinline:
            a, b = self.value("i32"), self.value("i32")
            r = self.emit("i32", f"call i32 @helper(i32 {a}, i32 {b})")
            self.lines.append(f"  store i32 {r}, ptr addrspace(1) %global, align 4")
        # As the tier asks LLVM; with real-true16, v_alignbyte_b32 would take a half (op_sel).
        features = f"{rng.choice(('+cumode', '-cumode'))},+wavefrontsize32,-real-true16"
        return (
            f'target triple = "{TRIPLE}"\n'
            "@lds = internal addrspace(3) global [4096 x i8] poison, align 16\n"
            + "".join(f"{d}\n" for d in sorted(self.declared))
            + (helper if noinline else "")
            + "define amdgpu_kernel void @kernel(ptr addrspace(1) noalias %uniform, "
            "ptr addrspace(1) noalias %input, ptr %flat, i32 %a, i32 %b, i64 %c, float %f) #0 {\n"
            + "\n".join(self.lines)
            + "\n  ret void\n}\nattributes #0 = { nounwind "
            f'"target-cpu"="{CPU}" "target-features"="{features}" "amdgpu-ieee"="false" }}\n'
        )


def kernel_text(seed: int, size: int = 40) -> str:
    """The LLVM IR of a random kernel of about `size` operations."""
    return _Kernel(random.Random(seed)).text(size)


@functools.cache
def _machine(level: int) -> Any:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(TRIPLE)
    return target.create_target_machine(cpu=CPU, opt=level)


def code_of(text: str, level: int) -> tuple[bytes, int]:
    """The machine code of a module, not linked, and the kernel's offset in it."""
    machine = _machine(level)
    module = llvm.parse_assembly(text)
    module.data_layout = str(machine.target_data)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    elf = Elf(bytes(machine.emit_object(module)))
    found = next(
        s for t in elf.sections if t.name == ".symtab" for s in elf.symbols(t) if s.name == "kernel"
    )
    code = next(s for s in elf.sections if s.name == ".text")
    return bytes(code.data), found.value


__all__ = ["code_of", "kernel_text"]
