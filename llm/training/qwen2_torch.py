"""Qwen2 in torch, for training: transformers' names and arithmetic, with sequences packed into
rows.

Several examples share a row; attention is within each (``documents`` numbers them), and places
begin again with each.  Parameters are a dictionary by Hugging Face's names.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, TypeAlias

from sassxlate.llm.inference.qwen2 import Config

Tensor: TypeAlias = Any  # torch's type: type checkers need not have it installed
torch: Any = None  # imported by the first model
nn: Any = None
IGNORED = -100


def _import() -> None:
    global torch, nn
    torch = importlib.import_module("torch")
    nn = importlib.import_module("torch.nn.functional")


class TorchQwen2:
    """The model: its parameters, and the loss of packed rows."""

    def __init__(self, c: Config, device: str, seed: int = 0) -> None:
        _import()
        self.c = c
        self.parameters = _beginning(c, device, seed)
        rates = c.rope_theta ** (-torch.arange(0, c.head, 2, dtype=torch.float64) / c.head)
        turns = torch.arange(c.context, dtype=torch.float64)[:, None] * rates
        self.cos = turns.cos().float().to(device)
        self.sin = turns.sin().float().to(device)

    def take(self, weights: Mapping[str, Any]) -> None:
        """Loads weights, tensors or arrays, into the parameters of the same names."""
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                parameter.copy_(torch.as_tensor(weights[name]))

    def weights(self) -> dict[str, Any]:
        """The weights as NumPy arrays."""
        return {n: p.detach().float().cpu().numpy() for n, p in self.parameters.items()}

    def loss(
        self, tokens: Tensor, places: Tensor, documents: Tensor, targets: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The loss at each place, 0 where ``targets`` is IGNORED, and whether the prediction was
        right."""
        logits = self.logits(tokens, places, documents)
        flat = logits.reshape(-1, logits.shape[-1]).float()
        goal = targets.reshape(-1)
        loss = nn.cross_entropy(flat, goal, ignore_index=IGNORED, reduction="none")
        return loss.view_as(targets), (flat.argmax(-1) == goal).view_as(targets)

    def logits(self, tokens: Tensor, places: Tensor, documents: Tensor) -> Tensor:
        """(rows, length, vocabulary)."""
        p, c = self.parameters, self.c
        length = tokens.shape[1]
        same = documents[:, :, None] == documents[:, None, :]
        causal = torch.ones(length, length, dtype=torch.bool, device=tokens.device).tril()
        mask = (same & causal)[:, None]
        cos, sin = self.cos[places][:, None], self.sin[places][:, None]
        x = nn.embedding(tokens, p["model.embed_tokens.weight"])
        for n in range(c.layers):
            at = f"model.layers.{n}."
            x = x + self._attention(self._norm(x, f"{at}input_layernorm"), at, cos, sin, mask)
            h = self._norm(x, f"{at}post_attention_layernorm")
            wide = nn.silu(self._linear(h, f"{at}mlp.gate_proj"))
            x = x + self._linear(wide * self._linear(h, f"{at}mlp.up_proj"), f"{at}mlp.down_proj")
        x = self._norm(x, "model.norm")
        return nn.linear(x, p["model.embed_tokens.weight" if c.tied else "lm_head.weight"])

    def _linear(self, x: Tensor, name: str) -> Tensor:
        return nn.linear(x, self.parameters[f"{name}.weight"], self.parameters.get(f"{name}.bias"))

    def _norm(self, x: Tensor, name: str) -> Tensor:
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.c.epsilon)
        return (wide * self.parameters[f"{name}.weight"]).to(x.dtype)

    def _attention(self, x: Tensor, at: str, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        c, (rows, length, _) = self.c, x.shape

        def heads(name: str) -> Tensor:
            made = self._linear(x, f"{at}self_attn.{name}_proj")
            return made.view(rows, length, -1, c.head).transpose(1, 2)

        q, k, v = _turned(heads("q"), cos, sin), _turned(heads("k"), cos, sin), heads("v")
        group = c.heads // c.kv_heads
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        out = nn.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        out = out.transpose(1, 2).reshape(rows, length, c.hidden)
        return self._linear(out, f"{at}self_attn.o_proj")


def _turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    low, high = x.chunk(2, -1)
    cos, sin = cos.to(x.dtype), sin.to(x.dtype)
    return torch.cat((low * cos - high * sin, high * cos + low * sin), -1)


def _beginning(c: Config, device: str, seed: int) -> dict[str, Tensor]:
    """Initial parameters; those that add to the residual stream are smaller, as in GPT-2."""
    random = torch.Generator().manual_seed(seed)
    kv = c.kv_heads * c.head
    out: dict[str, Tensor] = {}

    def matrix(name: str, *shape: int, by: float = 1.0) -> None:
        out[f"{name}.weight"] = torch.randn(shape, generator=random) * (0.02 * by)

    small = (2 * c.layers) ** -0.5
    matrix("model.embed_tokens", c.vocab, c.hidden)
    if not c.tied:
        matrix("lm_head", c.vocab, c.hidden)
    out["model.norm.weight"] = torch.ones(c.hidden)
    for n in range(c.layers):
        at = f"model.layers.{n}."
        for x, rows in (("q", c.hidden), ("k", kv), ("v", kv)):
            matrix(f"{at}self_attn.{x}_proj", rows, c.hidden)
            out[f"{at}self_attn.{x}_proj.bias"] = torch.zeros(rows)
        matrix(f"{at}self_attn.o_proj", c.hidden, c.hidden, by=small)
        matrix(f"{at}mlp.gate_proj", c.intermediate, c.hidden)
        matrix(f"{at}mlp.up_proj", c.intermediate, c.hidden)
        matrix(f"{at}mlp.down_proj", c.hidden, c.intermediate, by=small)
        for x in ("input_layernorm", "post_attention_layernorm"):
            out[f"{at}{x}.weight"] = torch.ones(c.hidden)
    return {name: t.to(device).requires_grad_() for name, t in out.items()}
