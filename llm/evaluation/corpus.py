"""The questions that programs pose, as an engine would ask them, for measuring a model.

A **block** is a distinct question of one architecture (regions with one canonical text are one
block), a **program** one architecture of one file.  This module asks nothing: :mod:`.evaluate_run`
asks and proves, :mod:`.figures` counts.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from sassxlate.disasm.containers import Cubin, load
from sassxlate.disasm.rdna3.instruction import Item
from sassxlate.errors import EncodeError, ModelError, SassxlateError, Where
from sassxlate.llm.dataset import shards
from sassxlate.llm.dataset.build import DatasetSettings as Splits
from sassxlate.llm.dataset.build import files_in, program_of, split_of
from sassxlate.llm.dataset.files import read_ids, reports
from sassxlate.llm.dataset.rows import regions_of, row_id
from sassxlate.llm.language import tokenizer
from sassxlate.llm.language.limits import QuestionLimits
from sassxlate.llm.language.prompt import question_words
from sassxlate.lowering.optimize.cost import cost
from sassxlate.lowering.optimize.regions import CutRegion, is_macro
from sassxlate.lowering.optimize.temporaries import room
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.places import VTEMPS
from sassxlate.lowering.region.text import RegionText
from sassxlate.lowering.verify.steps.framing import flat_items

Key = tuple[int, str]  # architecture, hash of the canonical text


@dataclass(slots=True)
class EvaluationBlock:
    """A distinct question of one architecture.  ``rules`` is the rules' code of the region where
    it was first found, ``cost`` its cost, ``tokens`` the question's length, ``vtemps`` the
    vector temporaries of an answer; ``times`` the number of regions that pose it, ``seen`` whether
    training had the question (None: unknown)."""

    arch: int
    key: str
    question: RegionText
    rules: tuple[tuple[Item, ...], ...]
    cost: int
    sass: int
    tokens: int
    vtemps: int
    seen: bool | None = None
    times: int = 0


@dataclass(slots=True)
class Kernel:
    """A kernel's regions.  ``blocks`` are those given to the model, by key and by
    the number of vector temporaries available in the kernel; ``bodies`` those of each block of the
    graph, together; ``others`` those not given to it, by reason
    (``macro``, ``guarded``, ``unsaid``); ``others_cost`` the cost of their code.  ``error``: the
    rules refuse the kernel, so it has no translation."""

    name: str
    blocks: Counter[tuple[str, int]] = field(default_factory=Counter["tuple[str, int]"])
    bodies: Counter[tuple[str, ...]] = field(default_factory=Counter["tuple[str, ...]"])
    others: Counter[str] = field(default_factory=Counter[str])
    others_cost: int = 0
    error: str = ""


@dataclass(slots=True)
class ProgramQuestions:
    """One architecture of one file.  ``family`` is the name that decides the split: all builds of
    one source are one family."""

    name: str
    family: str
    arch: int
    path: str
    kernels: list[Kernel] = field(default_factory=list[Kernel])


@dataclass(slots=True)
class Corpus:
    """All programs, and their blocks.  ``errors`` are of files that cannot be read."""

    programs: list[ProgramQuestions] = field(default_factory=list[ProgramQuestions])
    blocks: dict[Key, EvaluationBlock] = field(default_factory=dict["Key", EvaluationBlock])
    errors: list[SassxlateError] = field(default_factory=list[SassxlateError])
    sampled: bool = False  # the corpus lacks some blocks of the programs

    @property
    def arches(self) -> list[int]:
        return sorted({p.arch for p in self.programs})


class Trained:
    """The questions seen in training: from a dataset's folder, or from tokenised shards."""

    def __init__(self, folder: Path) -> None:
        """Reads ``train/`` of a dataset, the units of an unfinished one, or the shards
        ``train*.tokens`` of a folder.  ModelError SX1044 if there are none."""
        self._ids = set[str]()
        self._tokens = set[bytes]()
        if (folder / "train").is_dir():
            self._ids = _ids(folder / "train")
        elif (folder / "units").is_dir():
            self._ids = read_ids(folder / "units").get("train", set())
        for path in sorted(folder.glob("train*.tokens")):
            shard = shards.read(path)
            for start, length in zip(shard.starts[:-1], shard.questions, strict=True):
                self._tokens.add(_digest(shard.tokens[start : start + length]))
        if not self._ids and not self._tokens:
            message = f"{folder} has no training questions (train/, units/ or train*.tokens)"
            raise ModelError("SX1044", message)

    def __len__(self) -> int:
        return len(self._ids) + len(self._tokens)

    def __call__(self, key: str, tokens: Sequence[int]) -> bool:
        if key in self._ids:
            return True
        return bool(self._tokens) and _digest(np.asarray(tokens, np.uint16)) in self._tokens


def _ids(folder: Path) -> set[str]:
    """The ids of a finished split."""
    from importlib import import_module

    try:
        parquet = import_module("pyarrow.parquet")
    except ImportError:
        raise ModelError("SX1043", "pyarrow is missing: pip install 'sassxlate[llm]'") from None
    out: set[str] = set()
    for path in sorted(folder.glob("*.parquet")):
        for name in ("id", "said"):  # the second in units of later versions
            if name in parquet.read_schema(path).names:
                out.update(parquet.read_table(path, columns=[name])[name].to_pylist())
    out.discard("")
    return out


def _digest(tokens: np.ndarray[tuple[int], np.dtype[np.uint16]]) -> bytes:
    return hashlib.blake2b(tokens.astype("<u2").tobytes(), digest_size=8).digest()


def splits_of(folder: Path) -> Splits:
    """The settings that a dataset was begun with; the default ones if none are stored.

    ModelError SX1044 for settings that cannot be read.
    """
    import json

    path = folder / "settings.json"
    if not path.exists():
        return Splits()
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        return Splits(int(told["seed"]), float(told["valid"]), float(told["test"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError("SX1044", f"{path}: {error!r}") from None


def sources_of(folder: Path, split: str) -> list[Path]:
    """The files of a dataset's split, as its units name them."""
    found = {str(r["unit"]["path"]) for r in reports(folder) if split in ("all", r["split"])}
    return [Path(name) for name in sorted(found)]


@dataclass(frozen=True, slots=True)
class Choice:
    """The selection of programs and blocks: a split, architectures, a seeded sample of so many
    families of programs, of so many blocks per architecture; which questions are posed."""

    split: str = "all"
    splits: Splits = field(default_factory=Splits)
    arches: frozenset[int] | None = None
    programs: int | None = None
    blocks: int | None = None
    seed: int = 0
    limits: QuestionLimits = field(default_factory=QuestionLimits)


def collect(
    sources: Iterable[Path],
    choice: Choice,
    trained: Trained | None = None,
    told: Callable[[int, int, Corpus], None] = lambda _, __, ___: None,
) -> Corpus:
    """The programs and blocks of files and folders; ``told`` is called with (files done, files,
    corpus so far).

    Files that cannot be read, and kernels that the rules refuse, are counted and skipped.
    Raises ModelError SX1050 if no block is left.
    """
    corpus = Corpus()
    paths = list(dict.fromkeys(files_in(sources)))
    if choice.split != "all":
        paths = [p for p in paths if split_of(program_of(p), choice.splits) == choice.split]
    if choice.programs is not None:
        families = sorted({program_of(p) for p in paths})
        count = min(choice.programs, len(families))
        chosen = frozenset(random.Random(choice.seed).sample(families, count))
        paths = [p for p in paths if program_of(p) in chosen]
    for n, path in enumerate(paths):
        told(n, len(paths), corpus)
        try:
            cubins = [cubin for _, cubin in load(path).cubins()]
        except SassxlateError as error:
            corpus.errors.append(error.at(file=str(path)))
            continue
        except OSError as error:
            corpus.errors.append(ModelError("SX1042", f"{path}: {error.strerror or error}"))
            continue
        programs: dict[int, ProgramQuestions] = {}
        for cubin in cubins:
            arch = cubin.arch
            if cubin.relocatable or (choice.arches is not None and arch not in choice.arches):
                continue
            program = programs.setdefault(
                arch, ProgramQuestions(path.name, program_of(path), arch, str(path))
            )
            for kernel in cubin.kernels:
                program.kernels.append(_kernel(corpus, cubin, kernel.name, trained, choice.limits))
        corpus.programs += programs.values()
    told(len(paths), len(paths), corpus)
    if not corpus.blocks:
        raise ModelError("SX1050", f"no block of {len(paths)} files can be asked")
    if choice.blocks is not None:
        _sample(corpus, choice.blocks, choice.seed)
    return corpus


def _sample(corpus: Corpus, count: int, seed: int) -> None:
    """Reduces the corpus to so many blocks per architecture."""
    kept: dict[Key, EvaluationBlock] = {}
    for arch in corpus.arches:
        keys = sorted(key for key in corpus.blocks if key[0] == arch)
        corpus.sampled |= len(keys) > count
        for key in random.Random(seed).sample(keys, min(count, len(keys))):
            kept[key] = corpus.blocks[key]
    corpus.blocks = kept


def _kernel(
    corpus: Corpus, cubin: Cubin, name: str, trained: Trained | None, limits: QuestionLimits
) -> Kernel:
    kernel = Kernel(name)
    try:
        selected = translate_kernel(cubin, name).selected
        regs = selected.regs
        space = room(selected)
        bodies: dict[int, list[str]] = {}
        for piece in selected.pieces:
            at = 0
            for region in regions_of(piece, selected, limits):
                end = at + len(region.block.instructions)
                spanned = piece.starts[at] is None or piece.starts[end] is None
                at = end
                price = cost(flat_items(region.block, region.code))
                why, question = _asked(region, regs, spanned)
                if question is None:
                    kernel.others[why] += 1
                    kernel.others_cost += price
                    continue
                block = _block(corpus, question, region, cubin.arch, price, trained)
                block.times += 1
                kernel.blocks[block.key, space] += 1
                bodies.setdefault(piece.block.index, []).append(block.key)
        kernel.bodies.update(map(tuple, bodies.values()))
    except SassxlateError as error:
        return Kernel(name, error=error.code)
    except (RecursionError, MemoryError):
        return Kernel(name, error="SX1041")
    return kernel


def _asked(region: CutRegion, regs: RegisterMap, spanned: bool) -> tuple[str, RegionText | None]:
    """The question for a region, or the reason why there is none."""
    if region.macro:
        both = zip(region.block.instructions, region.code, strict=True)
        return ("macro" if any(is_macro(i, c, regs) for i, c in both) else "unsaid"), None
    if spanned:
        return "guarded", None
    try:
        return "", question_words(region.block, regs, region.live_out, region.asked)
    except EncodeError:
        return "unsaid", None


def block_key(question: RegionText) -> str:
    """The key of blocks with the same question and proof: by the question, and by the real forms if
    it has others, because forms of two architectures may be stated in the same lines."""
    if not question.parts:
        return row_id(question.text)
    forms = (".".join((i.mnemonic, *i.modifiers)) for i in question.block.instructions)
    return row_id("\n".join((question.text, *forms)))


def _block(
    corpus: Corpus,
    question: RegionText,
    region: CutRegion,
    arch: int,
    price: int,
    trained: Trained | None,
) -> EvaluationBlock:
    key = block_key(question)
    found = corpus.blocks.get((arch, key))
    if found is None:
        found = corpus.blocks[arch, key] = block_of(question, region.code, arch, price)
        if trained is not None:
            tokens = [tokenizer.BOS, *tokenizer.encode(question.words), tokenizer.ANSWER]
            found.seen = trained(row_id(question.text), tokens)
    return found


def block_of(
    question: RegionText, code: tuple[tuple[Item, ...], ...], arch: int, price: int | None = None
) -> EvaluationBlock:
    """The block of a question, with the rules' code for it and its cost."""
    return EvaluationBlock(
        arch, block_key(question), question, code,
        cost(flat_items(question.block, code)) if price is None else price,
        len(question.block.instructions), 2 + len(tokenizer.encode(question.words)),
        min(VTEMPS, question.regs.target.vgprs - question.regs.vtemp_base),
    )  # fmt: skip


def families(corpus: Corpus) -> int:
    """The number of sources that the programs are builds of."""
    return len({p.family for p in corpus.programs})


def nothing(folder: Path, split: str) -> ModelError:
    """The error for a dataset's split without files."""
    return ModelError("SX1050", f"no files of the split {split}", Where(str(folder)))


__all__ = [
    "Choice",
    "Corpus",
    "EvaluationBlock",
    "Kernel",
    "Key",
    "ProgramQuestions",
    "Trained",
    "block_key",
    "block_of",
    "collect",
    "families",
    "nothing",
    "sources_of",
    "splits_of",
]  # fmt: skip
