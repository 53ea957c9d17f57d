"""Trains a model of the block language from tokenised shards, on a GPU or a CPU.

It needs only torch and NumPy, so that it runs where nothing else of this project is installed::

    python -m sassxlate.llm.training.train SHARD... -o DIR --size base

Examples are packed into rows (attention within each example); the loss counts the answers.  Some
examples, by a hash of their question, are held out.  Evaluation measures their loss, the share of
right tokens, and the share of entirely right answers, as greedy decoding would write them.
``DIR/last`` is the newest checkpoint (config.json, model.safetensors, and state.pt to continue
from), ``DIR/best`` the one with most answers right, ``DIR/log.jsonl`` the figures,
``DIR/curves.svg`` their plot.  Restarted with the same DIR, it continues.

``sassxlate train`` starts a process for each GPU of the machine (:mod:`.launch`); so does
``torchrun``::

    torchrun --standalone --nproc-per-node 4 -m sassxlate.llm.training.train SHARD... -o DIR --size
    base
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import sys
import time
import zlib
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from sassxlate.errors import ModelError, SassxlateError, Where
from sassxlate.llm.dataset import shards
from sassxlate.llm.dataset.shards import Shard
from sassxlate.llm.inference.qwen2 import SIZES, read_config, save
from sassxlate.llm.language import tokenizer
from sassxlate.llm.language.limits import read_limits
from sassxlate.llm.training.batches import Batch, ahead, batch_of, batches, pack, split
from sassxlate.llm.training.curves import curves
from sassxlate.llm.training.distributed import joined
from sassxlate.llm.training.settings import TrainingSettings
from sassxlate.processes import idle_threads_sleep

EPOCHS = 2.0  # if nothing else sets the length
SHOWN_S = 5.0  # seconds between two lines of progress, longer in a long run


class Trainer:
    """One training run in a directory."""

    def __init__(
        self,
        shard: Shard,
        held: Shard | None,
        output: Path,
        s: TrainingSettings,
        device: str = "auto",
    ) -> None:
        torch = _torch()
        from sassxlate.llm.training.qwen2_torch import TorchQwen2

        self.torch, self.shard, self.output, self.s = torch, shard, output, s
        if len(shard) == 0:
            raise ModelError("SX1009", "no examples")
        if held is None:
            self.chosen, aside = split(shard)
            self.held, self.aside = shard, aside
        else:
            self.chosen, self.held, self.aside = (
                np.arange(len(shard)), held, np.arange(len(held)),
            )  # fmt: skip
        self.ranks, self.device = joined(torch, device)
        self.cuda = self.device.startswith("cuda")
        if min(s.batch, len(self.chosen)) < self.ranks.world:
            text = f"{s.batch} rows per step, {len(self.chosen)} examples"
            raise ModelError("SX1010", f"{text} for {self.ranks.world} processes")
        torch.manual_seed(s.seed)
        if self.cuda:
            torch.backends.cuda.matmul.allow_tf32 = True
        words = s.vocabulary or int(shard.tokens.max()) + 1
        self.config = replace(SIZES[s.size], vocab=words)
        begin = Path(s.start) if s.start else None
        if begin is not None:
            self.config = read_config(begin)
        if int(shard.tokens.max()) >= self.config.vocab:
            raise ModelError("SX1005", f"tokens beyond the {self.config.vocab} of the vocabulary")
        # A model of an earlier vocabulary keeps it.
        ours = tokenizer.size_of(shard.vocabulary) is not None
        known = ours and self.config.vocab in tokenizer.VERSIONS
        self.vocabulary = tokenizer.digest_of_size(self.config.vocab) if known else shard.vocabulary
        asked = shards.questions(shard)
        if len(asked) > 1:
            raise ModelError("SX1005", "shards of different questions: other lengths, or macros")
        self.questions = read_limits(asked[0]).to_json() if asked[0] else {}
        if s.row > self.config.context:
            raise ModelError("SX1006", f"rows of {s.row} tokens; {self.config.context} at most")
        self.model = TorchQwen2(self.config, self.device, s.seed)
        if begin is not None:
            self._take(begin)
        self.optimizer = self._optimizer()
        self.step = 0
        self.best = -1.0
        self.spent = 0.0  # seconds, including former runs
        self.total = s.steps or self._steps()
        self.run: Any = torch.compile(self.model.loss) if s.compile else self.model.loss

    def _take(self, folder: Path) -> None:
        from sassxlate.llm.inference import safetensors

        found: dict[str, Any] = {}
        for file in sorted(folder.glob("*.safetensors")):
            found |= safetensors.read(file)
        self.model.take({k: np.array(v) for k, v in found.items()})

    def _optimizer(self) -> Any:
        every = self.model.parameters.values()
        matrices = [p for p in every if p.dim() > 1]
        others = [p for p in every if p.dim() <= 1]
        groups: list[dict[str, Any]] = [
            {"params": matrices, "weight_decay": self.s.decay},
            {"params": others, "weight_decay": 0.0},
        ]
        fused = self.cuda
        return self.torch.optim.AdamW(groups, lr=self.s.rate, betas=(0.9, 0.95), fused=fused)

    def _steps_an_epoch(self) -> int:
        lengths = np.diff(self.shard.starts)[self.chosen]
        tokens = float(lengths[lengths <= self.s.row].sum())
        return max(1, round(tokens / self.s.row / self.s.batch))

    def _steps(self) -> int:
        """The number of steps by the epochs; 0 if only the clock decides."""
        epochs = self.s.epochs or (0.0 if self.s.minutes else EPOCHS)
        return max(1, math.ceil(epochs * self._steps_an_epoch())) if epochs else 0

    def _progress(self, started: float) -> float:
        """The progress of the schedule, 0 to 1: by steps, or by the clock if that is further."""
        by_steps = self.step / self.total if self.total else 0.0
        if not self.s.minutes:
            return by_steps
        return max(by_steps, (self.spent + time.monotonic() - started) / (60 * self.s.minutes))

    def _rate(self, progress: float) -> float:
        if progress < self.s.warmup:
            return self.s.rate * max(progress, 1e-3) / self.s.warmup
        rest = (progress - self.s.warmup) / (1 - self.s.warmup)
        return self.s.rate * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * min(rest, 1.0))))

    def _arrays(self, b: Batch) -> tuple[Any, ...]:
        arrays = (b.tokens, b.places, b.documents, b.targets, b.weights)
        made = [self.torch.from_numpy(a) for a in arrays]
        if self.cuda:
            made = [a.pin_memory().to(self.device, non_blocking=True) for a in made]
        return tuple(made)

    def _mixed(self) -> Any:
        if self.cuda:
            return self.torch.autocast("cuda", self.torch.bfloat16)
        return nullcontext()

    def evaluate(self) -> dict[str, float]:
        """Loss and right tokens of held-out answers, and the share of entirely right answers."""
        torch, s = self.torch, self.s
        chosen = [int(i) for i in self.aside[: s.held_out]]
        rows = pack(self.held, chosen, s.row)
        loss = right = count = whole = answers = 0.0
        with torch.no_grad():
            for at in range(0, len(rows), s.batch):
                b = batch_of(self.held, rows[at : at + s.batch], s.row, s.question)
                tokens, places, documents, targets, _ = self._arrays(b)
                with self._mixed():
                    losses, hits = self.model.loss(tokens, places, documents, targets)
                answer = b.weights == 1.0
                found, ok = losses.float().cpu().numpy(), hits.cpu().numpy()
                loss += float(found[answer].sum())
                right += float(ok[answer].sum())
                count += int(answer.sum())
                bad = answer & ~ok
                for r in range(len(b.documents)):
                    n = int(b.documents[r].max()) + 1
                    wrong = set(b.documents[r][bad[r]].tolist())
                    answers += n
                    whole += n - len(wrong)
        count, answers = max(count, 1), max(answers, 1)
        return {"held_loss": loss / count, "right": right / count, "whole": whole / answers}

    def train(self) -> dict[str, Any]:
        """Trains to the end, from where a former run ended; returns the last evaluation's figures
        (empty for a process that is not the first)."""
        torch, s, ranks = self.torch, self.s, self.ranks
        self.output.mkdir(parents=True, exist_ok=True)
        self._resume()
        if ranks.said(self.step) != self.step:
            text = f"process {ranks.rank} goes on from step {self.step}, the first from another"
            raise ModelError("SX1010", f"{text}: {self.output} must be one folder for all")
        started = time.monotonic()
        last = shown = time.monotonic()
        tokens = loss_sum = loss_count = 0.0
        result: dict[str, Any] = {}
        mine = (ranks.rank, ranks.world)
        for b in ahead(batches(self.shard, self.chosen, s, self.step, mine)):
            progress = ranks.said(self._progress(started))
            if (self.total and self.step >= self.total) or progress >= 1:
                break
            for group in self.optimizer.param_groups:
                group["lr"] = self._rate(progress)
            arrays = self._arrays(b)
            with self._mixed():
                losses, _ = self.run(*arrays[:4])
            weight = arrays[4]
            loss = (losses * weight).sum() / weight.sum().clamp(min=1)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            ranks.averaged(self.model.parameters.values())
            torch.nn.utils.clip_grad_norm_(self.model.parameters.values(), s.clip)
            self.optimizer.step()
            self.step += 1
            tokens += b.count
            if self.step % 10 == 0 or self.step == self.total:
                value = float(loss.detach())
                if not math.isfinite(value):
                    raise ModelError("SX1010", f"the loss is {value} at step {self.step}")
                loss_sum, loss_count = loss_sum + value, loss_count + 1
            now = time.monotonic()
            if ranks.first and now - shown > max(SHOWN_S, (now - started) / 100):
                shown = now
                self._show(self._progress(started), float(loss.detach()), now - started)
            due = self.step % s.every == 0 or self.step == self.total
            if due and ranks.first:
                now = time.monotonic()
                mean = loss_sum / loss_count if loss_count else float(loss.detach())
                row = {
                    "step": self.step, "of": self.total or round(self.step / progress),
                    "loss": mean,
                    "rate": self._rate(progress), "tokens_s": tokens * ranks.world / (now - last),
                    "seconds": round(self.spent + now - started, 1),
                }  # fmt: skip
                result = {**row, **self.evaluate()}
                self._note(result)
                self._checkpoint(result, started)
                tokens = loss_sum = loss_count = 0.0
                last = time.monotonic()
        if ranks.first and (not result or result["step"] != self.step):
            result = {"step": self.step, "of": self.total or self.step, **self.evaluate()}
            result["seconds"] = round(self.spent + time.monotonic() - started, 1)
            self._note(result)
            self._checkpoint(result, started)
        ranks.end()
        if result and not self.total:  # the actual number: until now it was an estimate
            result["of"] = self.step
        return result

    def _show(self, progress: float, loss: float, seconds: float) -> None:
        """One line on how far it is."""
        left = (self.spent + seconds) * (1 - progress) / max(progress, 1e-9)
        of = f" of {self.total}" if self.total else ""
        text = f"step {self.step}{of}, loss {loss:.3f}, {seconds:.0f} s, about {left:.0f} s left"
        print(text, file=sys.stderr, flush=True)

    def _note(self, row: Mapping[str, Any]) -> None:
        with open(self.output / "log.jsonl", "a", encoding="utf-8") as log:
            log.write(json.dumps(row) + "\n")
        shown = " ".join(f"{k} {v:.4g}" for k, v in row.items() if isinstance(v, int | float))
        print(shown, file=sys.stderr, flush=True)
        (self.output / "curves.svg").write_text(curves(read_log(self.output)), encoding="utf-8")

    def _checkpoint(self, row: Mapping[str, Any], started: float) -> None:
        found = self.model.weights()
        places = [self.output / "last"]
        if float(row["whole"]) >= self.best:
            self.best = float(row["whole"])
            places.append(self.output / "best")
        about = {
            "settings": asdict(self.s), "parameters": self.config.parameters,
            "vocabulary": self.vocabulary, "figures": dict(row),
            "datasets": shards.datasets(self.shard), "questions": self.questions,
        }  # fmt: skip
        for folder in places:
            save(folder, self.config, found)
            (folder / "training.json").write_text(json.dumps(about, indent=1) + "\n")
        state = {
            "model": self.model.parameters, "optimizer": self.optimizer.state_dict(),
            "step": self.step, "best": self.best, "total": self.total, "held": self._held_out(),
            "spent": self.spent + time.monotonic() - started,
        }  # fmt: skip
        temporary = self.output / "last" / "state.tmp"
        self.torch.save(state, temporary)
        temporary.replace(self.output / "last" / "state.pt")

    def _held_out(self) -> int:
        """A digest of the examples that evaluations use."""
        return zlib.crc32(self.held.tokens.tobytes(), len(self.aside))

    def _resume(self) -> None:
        path = self.output / "last" / "state.pt"
        if not path.is_file():
            return
        try:
            state = self.torch.load(path, map_location=self.device, weights_only=True)
            self.model.take(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.step, self.spent = int(state["step"]), float(state["spent"])
            # The best figures on other held-out answers are not comparable.
            same = state.get("held") == self._held_out()
            self.best = float(state["best"]) if same else -1.0
        except Exception as error:
            text = f"a checkpoint of other settings, or damaged: {str(error)[:200]}"
            raise ModelError("SX1003", " ".join(text.split()), Where(str(path))) from None


def read_log(output: Path) -> list[dict[str, Any]]:
    """The figures so far; a line that was cut off is left out."""
    rows: list[dict[str, Any]] = []
    try:
        lines = (output / "log.jsonl").read_text(encoding="utf-8").splitlines()
    except OSError:
        return rows
    for line in lines:
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue
    return rows


def _torch() -> Any:
    idle_threads_sleep()
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise ModelError("SX1002", f"training needs torch: {error}") from None


def train(
    paths: Sequence[Path],
    output: Path,
    settings: TrainingSettings,
    held: Sequence[Path] = (),
    device: str = "auto",
) -> dict[str, Any]:
    """Trains on shards; the last figures.  Raises ModelError (SX1001 to SX1010)."""
    shard = shards.joined([shards.read(p) for p in paths])
    aside = shards.joined([shards.read(p) for p in held]) if held else None
    if aside is not None and aside.vocabulary != shard.vocabulary:
        raise ModelError("SX1005", "the held out shards are of another vocabulary")
    if not settings.vocabulary:
        known = tokenizer.size_of(shard.vocabulary) or len(tokenizer.vocabulary())
        settings = replace(settings, vocabulary=max(known, int(shard.tokens.max()) + 1))
    return Trainer(shard, aside, output, settings, device).train()


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line of ``python -m sassxlate.llm.training.train``."""
    d = TrainingSettings()
    parser = argparse.ArgumentParser(
        prog="python -m sassxlate.llm.training.train", description=__doc__
    )
    parser.add_argument("shards", nargs="+", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--held", nargs="*", type=Path, default=[])
    parser.add_argument("--size", choices=sorted(SIZES), default=d.size)
    parser.add_argument("--device", default="auto")
    # torchrun takes options that are prefixes of its own, such as --start-method, for these.
    parser.add_argument(
        "--weights",
        "--start",
        dest="start",
        default="",
        help="those of this checkpoint to begin with",
    )
    for field in fields(d):
        name, value = f"--{field.name.replace('_', '-')}", field.default
        if isinstance(value, bool):
            parser.add_argument(name, action="store_true")
        elif isinstance(value, int | float):
            parser.add_argument(name, type=type(value), default=value)
    a = parser.parse_args(arguments)
    names = [f.name for f in fields(TrainingSettings) if hasattr(a, f.name)]
    try:
        figures = train(
            a.shards, a.output, replace(d, **{n: getattr(a, n) for n in names}), a.held, a.device
        )
    except SassxlateError as error:
        print(f"sassxlate: {error}", file=sys.stderr)
        return 2
    if figures:
        print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
