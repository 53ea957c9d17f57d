"""The report of a translation or a run as one HTML file: summary, kernels, blocks, instructions.

The summary is JSON in the page.  Each kernel's details are JSON, deflated, in base64, in their own
element, and are decoded when the reader opens the kernel.  The script and style are ``report.js``
and ``report.css`` in this folder; the page loads nothing.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from sassxlate.cfg.pages.drawing import colours

_KEYS = (
    ("j k", "the next, the last kernel or instruction"),
    ("Enter", "open the kernel or block, show the instruction"),
    ("Esc", "close the instruction; back to the summary"),
    ("n p", "the next, the last block"),
    ("a", "open or fold all blocks"),
    ("/", "filter kernels; search a kernel's instructions"),
    ("t", "light or dark"),
    ("?", "these keys"),
)


def pack(details: Mapping[str, Any]) -> str:
    """A kernel's details in the form that the page stores."""
    text = json.dumps(details, ensure_ascii=True, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def unpack(text: str) -> Any:
    """Inverse of :func:`pack`."""
    return json.loads(zlib.decompress(base64.b64decode(text)))


def to_html(report: Mapping[str, Any], details: Sequence[str]) -> str:
    """The whole page, from the data without details and each kernel's packed details."""
    title = f"{report['program'][:200]}: {report['command']} report"
    keys = "".join(f"<tr><td><kbd>{escape(k)}</kbd><td>{escape(said)}" for k, said in _KEYS)
    packed = "\n".join(
        f'<script type="text/plain" id="k{n}">{text}</script>' for n, text in enumerate(details)
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "script-src 'unsafe-inline'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width">'
        f"<title>{plain(title)}</title><style>{colours()}{_file('report.css')}</style></head>"
        '\n<body><header><nav aria-label="where you are"><a href="#" id="top">summary</a>'
        '<span id="crumbs"></span></nav>'
        '<input id="find" type="search" placeholder="filter (/)" aria-label="filter">'
        '<span id="count" role="status" aria-live="polite"></span>'
        '<button data-do="all" title="open or fold all blocks (a)">all</button> '
        '<button data-do="theme" title="light or dark (t)">theme</button> '
        '<button data-do="help" title="keys (?)">?</button></header>\n'
        '<main id="main"></main><aside id="detail" hidden aria-label="instruction"></aside>\n'
        f'<dialog id="help"><table>{keys}</table><form method="dialog">'
        "<button autofocus>close</button></form></dialog>\n"
        f"<noscript>{_plain_summary(report)}</noscript>\n"
        f'<script type="application/json" id="data">{_safe(report)}</script>\n{packed}\n'
        f"<script>{_file('report.js')}</script></body></html>\n"
    )


def plain(text: str) -> str:
    """Text for HTML, without characters that HTML does not allow."""
    return escape("".join(c if c >= " " else "\ufffd" for c in text))


def _plain_summary(report: Mapping[str, Any]) -> str:
    """The summary for a reader without scripts."""
    t = report["totals"]
    refused = "".join(
        f"<li>{plain(row['shown'])}: {plain(row['refused']['message'])}</li>"
        for row in report["kernels"]
        if "refused" in row
    )
    return (
        f"<p>{plain(report['program'])}: {t['kernels']} kernels, {t['translated']} translated, "
        f"{t['refused']} refused. This page shows more with a script; --report-format json has all "
        f"of it as data.</p><ul>{refused}</ul>"
    )


def _file(name: str) -> str:
    return files("sassxlate.cfg.pages").joinpath(name).read_text("utf-8")


def _safe(data: Any) -> str:
    """JSON that is safe inside a script element, whatever names it contains."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


__all__ = ["pack", "to_html", "unpack"]
