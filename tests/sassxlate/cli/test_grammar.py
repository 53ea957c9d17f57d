"""One grammar: every command has the same options, an example, JSON with a schema, and behaves
alike where its output goes to a pipe that closes or a terminal that has only ASCII."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner

from sassxlate import schemas
from sassxlate.cli import cli
from sassxlate.cli.grammar import Command

Validate = Callable[[str, object], None]
ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).resolve().parent
PROGRAMS, KERNELS = ROOT / "fixtures" / "programs", ROOT / "fixtures" / "kernels"
SAXPY, CUBIN = PROGRAMS / "saxpy", KERNELS / "sm_80" / "early_exit.cubin"
BLOCK = ROOT / "tests" / "lowering" / "verify" / "proved" / "carry.toml"
LAUNCH = (*3 * ("--arg", "buf:4k"), "--arg", "u32:5")

# A cheap call of each command that prints JSON, with the schema; the others print their help.
CALLS: dict[str, tuple[str, ...]] = {
    "ls": ("--attributes", "--relocations", str(SAXPY)),
    "extract": (str(CUBIN), "-o", "OUT"),
    "disasm": (str(CUBIN), "--control"),
    "asm": ("TEXT", "--arch", "sm_80"),
    "isa": ("NOP",),
    "cfg": (str(CUBIN), "-k", "*"),
    "diff": (str(CUBIN), str(KERNELS / "sm_90" / "early_exit.cubin")),
    "callgraph": (str(CUBIN),),
    "listing": (str(CUBIN),),
    "translate": (str(CUBIN), "-o", "OUT"),
    "verify blocks": (str(CUBIN), "-j", "1", "--no-cache"),
    "verify kernels": (str(KERNELS / "sm_80" / "half_pairs.cubin"),),
    "verify rules": ("IABS", "--combinations", "0", "--words", "1", "-j", "1"),
    "verify text": (str(BLOCK),),
    "interpret": (str(CUBIN), "-k", "early_exit", *LAUNCH),
    "explain": ("SX0104",),
    "service status": (),
    "service stop": (),
    "cache dir": (),
    "cache stats": (),
    "cache runs": (),
    "cache clean": (),
    "selftest": ("--list",),
    "schema": (),
}
COSTLY = ("translate", "verify")  # with text only their help
STATUS = {"diff": 1, "service status": 1}
SCHEMA = {"selftest": "selftest-list"}
MORE = {
    "callgraph of the host": ("callgraph-host", ("callgraph", str(SAXPY), "--host")),
    "script of a listing": ("listing-script", ("listing", "--script", "ghidra")),
    "opcodes": ("disasm-count", ("disasm", str(CUBIN), "--count")),
    "code of the host": ("disasm-host", ("disasm", str(SAXPY), "--host", "-k", "main")),
    "disasm of RDNA3": ("disasm-rdna3", ("disasm", "CODE")),
    "diff against RDNA3": ("diff-translation", ("diff", str(CUBIN), "--against", "rdna3")),
}
# These print what no schema describes: the application's output, scripts.
WITHOUT_JSON = {"run", "completion"}


def _leaves(group: click.Group, path: str = "") -> Iterator[tuple[str, Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            yield from _leaves(found, f"{path}{name} ")
        else:
            assert isinstance(found, Command), name
            yield path + name, found


LEAVES = dict(_leaves(cli))


def _option(command: click.Command, name: str) -> click.Option | None:
    context = click.Context(command)
    found = [p for p in command.get_params(context) if name in (*p.opts, *p.secondary_opts)]
    return found[0] if found and isinstance(found[0], click.Option) else None


@pytest.mark.parametrize("name", LEAVES)
def test_options_mean_the_same(name: str) -> None:
    command = LEAVES[name]
    for spelling, long in (("-k", "--kernel"), ("-j", "--jobs"), ("-o", "--output"),
                           ("-q", "--quiet"), ("-v", "--verbose")):  # fmt: skip
        for one in (spelling, long):
            option = _option(command, one)
            if option is not None:
                assert {spelling, long} <= set(option.opts), name
    for old in ("--json", "--output-format"):
        assert _option(command, old) is None
    assert (_option(command, "--format") is None) == (name in WITHOUT_JSON)
    arch = _option(command, "--arch")
    assert arch is None or arch.metavar == "SM"


def _table() -> str:
    """Which of the common options each command has, as docs/commands.md shows it."""
    lines = [
        "| command | `--format` | `-o` | `-k` | `--arch` | `-j` |",
        "|---|---|---|---|---|---|",
    ]
    for name, command in LEAVES.items():
        form, output, kernel = (_option(command, o) for o in ("--format", "-o", "-k"))
        cells = [
            ", ".join(form.type.choices) if form and isinstance(form.type, click.Choice) else "",
            "" if output is None else "folder" if output.metavar == "DIR" else "file",
            "" if kernel is None else "several" if kernel.multiple else "one",
            *("yes" if _option(command, o) else "" for o in ("--arch", "-j")),
        ]
        lines.append(f"| `{name}` | " + " | ".join(cell or "-" for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def test_table_of_options(request: pytest.FixtureRequest) -> None:
    """``--bless`` writes it anew."""
    page = ROOT / "docs" / "commands.md"
    before, head, rest = page.read_text("utf-8").partition("| command | ")
    shown, _, after = (head + rest).partition("\n\n")
    if request.config.getoption("--bless", default=False):
        page.write_text(f"{before}{_table()}\n{after}", "utf-8")
    else:
        assert f"{shown}\n" == _table()


def test_every_command_is_quiet_or_verbose() -> None:
    for name, command in LEAVES.items():
        assert all(_option(command, o) for o in ("-q", "-v", "--help")), name


@pytest.mark.parametrize("name", LEAVES)
def test_each_has_one_example_of_its_options(name: str) -> None:
    command = LEAVES[name]
    words = shlex.split(command.example)
    own = name.split()
    assert words[: len(own) + 1] == ["sassxlate", *own]
    for word in words:
        if word.startswith("-") and word != "--":
            assert _option(command, word) is not None, word
    shown = CliRunner().invoke(cli, [*own, "--help"]).output
    assert shown.count("Example:") == 1
    assert f"$ {command.example}\n" in shown


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str, str]]:
    """What each command did: its JSON, its text, and its text to a reader that is gone."""
    work = tmp_path_factory.mktemp("grammar")
    (work / "text").write_text("NOP ;\n")
    code = str(work / "code" / "early_exit.sm_80.hsaco")
    places = {"OUT": str(work / "out"), "TEXT": str(work / "text"), "CODE": code}

    def placed(words: tuple[str, ...]) -> list[str]:
        return [places.get(word, word) for word in words]

    todo: list[tuple[str, list[str], bool]] = [
        ("", ["translate", str(CUBIN), "-o", str(work / "code")], False)
    ]
    for name in LEAVES:
        words = [*name.split(), *(placed(CALLS[name]) if name in CALLS else ["--help"])]
        short = [*name.split(), "--help"] if name.startswith(COSTLY) else words
        todo += [(f"{name}: text", short, False), (f"{name}: gone", short, True)]
        if name in CALLS:
            todo.append((f"{name}: json", [*words, "--format", "json"], False))
    todo += [(n, [*placed(words), "--format", "json"], False) for n, (_, words) in MORE.items()]
    environment = {
        **os.environ,
        **{"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "NO_COLOR": "1", "HOME": str(work)},
        **{"XDG_CACHE_HOME": str(work / "cache"), "XDG_RUNTIME_DIR": str(work / "run")},
    }
    (work / "run").mkdir(mode=0o700)
    done = subprocess.run(
        [sys.executable, "-P", str(HERE / "many_commands.py")], input=json.dumps(todo),
        capture_output=True, text=True, check=False, env=environment, cwd=work,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {name: (status, out, err) for name, status, out, err in json.loads(done.stdout)}


def _skip_without_solver(name: str) -> None:
    if name.startswith("verify"):
        pytest.importorskip("z3", reason="z3-solver is not installed")


@pytest.mark.parametrize("name", LEAVES)
def test_terminals_and_pipes(name: str, results: dict[str, tuple[int, str, str]]) -> None:
    """Where there is only ASCII and no colour, and after `| head -1`."""
    _skip_without_solver(name)
    status, out, err = results[f"{name}: text"]
    assert status == STATUS.get(name, 0), err
    assert (out + err).isascii()
    assert "\x1b" not in out + err
    assert "Traceback" not in err
    gone = results[f"{name}: gone"]
    assert gone[0] == (141 if out else status), gone
    assert "SX08" not in gone[2]
    assert "Traceback" not in gone[2]


@pytest.mark.parametrize("name", [*CALLS, *MORE])
def test_json_has_its_schema(
    name: str, results: dict[str, tuple[int, str, str]], validate: Validate
) -> None:
    _skip_without_solver(name)
    schema, key = (MORE[name][0], name) if name in MORE else (None, f"{name}: json")
    schema = schema or SCHEMA.get(name) or name.replace(" ", "-")
    status, out, err = results[key]
    assert status == STATUS.get(name, 0), err
    lines = (
        out.splitlines()
        if name.startswith(("verify blocks", "verify kernels", "verify rules"))
        else [out]
    )
    for line in lines:
        document = json.loads(line)
        assert document["schema"] == schemas.identifier(schema)
        validate(schema, document)
    assert lines


@pytest.mark.parametrize("name", schemas.VERSIONS)
def test_schemas(name: str) -> None:
    schema = schemas.schema(name)
    assert schema["properties"]["schema"]["const"] == schema["$id"] == schemas.identifier(name)
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(schema)
    words = name.split("-")
    while words and " ".join(words) not in LEAVES:  # bench-codegen-pairs is of `bench codegen`
        words.pop()
    assert words or name in ("bench-figures", "bench-skipped")
    shown = CliRunner().invoke(cli, ["schema", *name.split("-")]).output
    assert json.loads(shown) == schema


def test_verdicts_on_launches_have_their_schema(
    capsys: pytest.CaptureFixture[str], validate: Validate
) -> None:
    from dataclasses import asdict

    from sassxlate.lowering.trace.compare_memory import Different, Same, Unknown
    from sassxlate.output import print_json_line

    for verdict in (Same(("NaN payload",)), Different(1, 2, 3, 4, None, (0, 1, 2)), Unknown("no")):
        head = {"launch": 0, "kernel": "k", "grid": (1, 1, 1), "block": (32, 1, 1)}
        value = {**head, "verdict": type(verdict).__name__, **asdict(verdict)}
        print_json_line("verify-launches", value)
        validate("verify-launches", json.loads(capsys.readouterr().out))


def test_no_such_schema() -> None:
    done = CliRunner().invoke(cli, ["schema", "bench"])
    assert done.exit_code == 2
    assert "SX0878" in done.stderr
    assert "bench-figures" in done.stderr


def test_old_spellings_are_noted() -> None:
    done = CliRunner().invoke(cli, ["cache", "dir", "--json"])
    assert json.loads(done.stdout)["schema"] == "sassxlate.cache-dir/1"
    assert done.stderr == "sassxlate: --json is now --format json\n"
    both = CliRunner().invoke(cli, ["explain", "SX0104", "--output-format=json", "-q"])
    assert json.loads(both.stdout)["codes"][0]["code"] == "SX0104"


def test_quiet_and_verbose(tmp_path: Path) -> None:
    said = CliRunner().invoke(cli, ["ls", str(tmp_path / "none"), "-v"])
    assert said.exit_code == 2
    assert re.search(r"^sassxlate: ls: \d+\.\d\d s, \d+ MiB$", said.stderr, re.M)
    typed = CliRunner().invoke(cli, ["disasm", str(tmp_path / "none"), "--verbose"])
    assert "SX0101 is: " in typed.stderr
    assert CliRunner().invoke(cli, ["ls", str(CUBIN), "-q", "-v"]).exit_code == 2


def test_output_goes_to_the_file(tmp_path: Path) -> None:
    """Its suffix chooses the format, - is standard output, and an error leaves nothing."""
    file = tmp_path / "out.json"
    done = CliRunner().invoke(cli, ["callgraph", str(CUBIN), "-o", str(file)])
    assert (done.exit_code, done.stdout) == (0, "")
    assert json.loads(file.read_text())["schema"] == "sassxlate.callgraph/1"
    shown = CliRunner().invoke(cli, ["callgraph", str(CUBIN), "-o", "-"])
    assert "early_exit" in shown.stdout
    copy = tmp_path / "copy.cubin"
    copy.write_bytes(CUBIN.read_bytes())
    link = tmp_path / "link"
    link.symlink_to(copy)
    for words in (["disasm", str(copy), "-o", str(copy)], ["cfg", str(copy), "-k", "*"],
                  ["diff", str(CUBIN), str(copy)], ["embed", str(copy)]):  # fmt: skip
        more = [] if "-o" in words else ["-o", str(link)]
        done = CliRunner().invoke(cli, [*words, *more])
        assert done.stderr == f"sassxlate: SX0813: {(words + more)[-1]}: it is the input\n"
        assert done.exit_code == 2
    assert copy.read_bytes() == CUBIN.read_bytes()
    picture = tmp_path / "out.svg"
    done = CliRunner().invoke(cli, ["disasm", str(CUBIN), "-o", str(picture)])
    assert done.stderr.endswith("out.svg is text: the formats of this command are text, json\n")
    assert done.exit_code == 0
    for options, why in (
        (["-k", "none"], "no kernel matches none"),
        (["-k", ""], "no kernel matches ''"),
        (["--arch", "sm_75"], "the file holds no kernel for sm_75"),
        (["-k", "none", "--arch", "sm_75"], "no kernel matches none for sm_75"),
    ):
        other = tmp_path / "other"
        done = CliRunner().invoke(cli, ["disasm", str(CUBIN), "-o", str(other), *options])
        assert done.exit_code == 2
        assert done.stderr.endswith(f": {why}\n")
        assert not other.exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str) -> None:
    script = CliRunner().invoke(cli, ["completion", shell]).output
    assert "_SASSXLATE_COMPLETE" in script
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


@pytest.mark.parametrize(
    ("words", "incomplete", "wanted"),
    [
        (("cfg", str(CUBIN), "-k"), "ear", "early_exit"),
        (("disasm", str(CUBIN), "--kernel"), "", "early_exit"),
        (("verify",), "la", "launches"),
        (("cfg", str(CUBIN), "--format"), "ht", "html"),
    ],
)
def test_what_is_completed(words: tuple[str, ...], incomplete: str, wanted: str) -> None:
    complete = BashComplete(cli, {}, "sassxlate", "_SASSXLATE_COMPLETE")
    found = [item.value for item in complete.get_completions([*words], incomplete)]
    assert found == [wanted]
    bad = complete.get_completions(["cfg", str(BLOCK), "-k"], "")
    assert bad == []
