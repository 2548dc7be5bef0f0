"""Mutation run: changes the model in one place at a time, and shows which changes no test notices.

Mutants are drawn by seed out of all places in ``MUTATED``. Each is tried in a copy of the repository, by the tests that reach its line
in a run under coverage; a line that runs at import is tried by all of them. Texts are left alone: they are read, not tested.

The tests are those of the model that take seconds. Golden transcripts, random histories and the laboratory notice more, but what only
they notice no test explains.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import difflib
import itertools
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from py_compile import PycInvalidationMode
from queue import SimpleQueue
from typing import NamedTuple

from coverage import CoverageData

ROOT = Path(__file__).parents[1]
MUTATED = ("coordinator_model/groups", "coordinator_model/rules")
NOT_MUTATED = {"coordinator_model/rules/document.py"}  # writes docs/rules.md
TESTS = "tests/coordinator_model"
SLOW = ("wire", "test_histories.py", "test_random_frames.py", "test_lab.py", "rules/test_switched_off.py", "rules/test_timers.py")
NEAREST = 40  #: tests, by how few lines they reach, that are tried before all others
PYTEST = ("pytest", "-x", "-q", "-p", "no:cacheprovider", *(f"--ignore={TESTS}/{name}" for name in SLOW))
COVERAGE = "[run]\ndynamic_context = test_function\nsource = coordinator_model\n"
SWAPPED = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
    ast.And: ("and", "or"), ast.Or: ("or", "and"), ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "//"), ast.FloorDiv: ("//", "*"),
}  # fmt: skip


class Mutant(NamedTuple):
    path: str  #: from the root of the repository
    start: int  #: bytes of the file
    end: int
    text: str  #: what stands there instead
    lines: range  #: of the statement, up to the change

    def applied(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]

    def __str__(self) -> str:
        return f"{self.path}:{self.lines[-1]}"


class Places:
    """Every mutant of a file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.source = (ROOT / path).read_bytes()
        self.line_starts = [0, *itertools.accumulate(len(line) for line in self.source.splitlines(keepends=True))]
        self.statement: ast.stmt = ast.Pass(lineno=1)
        self.mutants: list[Mutant] = []
        self.visit(ast.parse(self.source))

    def change(self, node: ast.AST | tuple[int, int], text: str) -> None:
        start, end = self.span(node) if isinstance(node, ast.AST) else node
        line = self.source.count(b"\n", 0, start) + 1
        self.mutants.append(Mutant(self.path, start, end, text, range(self.statement.lineno, line + 1)))

    def span(self, node: ast.AST) -> tuple[int, int]:
        starts = self.line_starts
        return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset

    def swap(self, left: ast.AST, operator: ast.AST, right: ast.AST) -> None:
        """Swap the operator between two expressions."""
        if type(operator) in SWAPPED:
            old, new = SWAPPED[type(operator)]
            start = self.source.index(old.encode(), self.span(left)[1], self.span(right)[0])
            self.change((start, start + len(old)), new)

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.stmt):
            self.statement = node
        match node:
            case ast.JoinedStr():  # positions within are known from Python 3.12 on
                return
            case ast.Compare():
                for left, operator, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
                    self.swap(left, operator, right)
            case ast.BoolOp():
                for left, right in zip(node.values, node.values[1:], strict=False):
                    self.swap(left, node.op, right)
            case ast.BinOp():
                self.swap(node.left, node.op, node.right)
            case ast.UnaryOp(op=ast.Not()):
                self.change(node, f"({ast.unparse(node.operand)})")
            case ast.Constant(value=bool()):
                self.change(node, str(not node.value))
            case ast.Constant(value=int()):
                for value in (node.value + 1, node.value - 1) if node.value < 10 else (node.value * 2, node.value // 2):
                    self.change(node, f"({value})")
            case ast.If() | ast.IfExp():
                self.change(node.test, f"(not ({ast.unparse(node.test)}))")
            case ast.comprehension():
                for condition in node.ifs:
                    self.change(condition, f"(not ({ast.unparse(condition)}))")
            case ast.Return() if (returned := ast.unparse(node)) not in {"return True", "return False"}:
                self.change(node, "pass" if returned in {"return", "return None"} else "return None")
            case ast.Raise() | ast.Continue() | ast.AugAssign() | ast.Expr(ast.Call()):
                self.change(node, "pass")
            case ast.Assign([ast.Attribute() | ast.Subscript()]):
                self.change(node, "pass")
        for name, value in ast.iter_fields(node):
            if name not in {"annotation", "returns", "decorator_list", "type_params"}:
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST):
                        self.visit(child)


def copied(folder: Path) -> Path:
    """A copy of the repository whose changed modules are compiled anew, however soon after one another they changed."""
    ignore = shutil.ignore_patterns(".git", ".venv", "checkpoints", "__pycache__", ".*_cache", ".hypothesis")
    shutil.copytree(ROOT, folder, ignore=ignore, symlinks=True)
    compileall.compile_dir(folder / "coordinator_model", quiet=2, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
    return folder


def run(folder: Path, *command: str, timeout_s: float | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    arguments = [sys.executable, "-m", *command]
    return subprocess.run(arguments, cwd=folder, env=environment, timeout=timeout_s, check=False, capture_output=True, text=True)


def tests_by_line(folder: Path) -> dict[tuple[str, int], set[str]]:
    """The tests that reach each line of each file; ``TESTS`` where it runs at import."""
    (folder / "contexts.ini").write_text(COVERAGE, encoding="utf-8")
    done = run(folder, "coverage", "run", "--rcfile=contexts.ini", "--data-file=contexts", "-m", *PYTEST, TESTS)
    if done.returncode:
        sys.exit(f"The tests fail without any mutant:\n{done.stdout}")
    listed = run(folder, *PYTEST, "--collect-only", TESTS).stdout.splitlines()
    collected = {line.partition("[")[0] for line in listed if "::" in line}  # a blank line would stand for all tests there are
    tests = {"": TESTS} | {test.replace("/", ".").replace(".py::", "."): test for test in collected}
    data = CoverageData(str(folder / "contexts"))
    data.read()
    return {
        (Path(file).relative_to(folder).as_posix(), line): {tests[context] for context in contexts if context in tests}
        for file in data.measured_files()
        for line, contexts in data.contexts_by_lineno(file).items()
    }


def outcome(mutant: Mutant, tests: list[str], folders: SimpleQueue[Path], timeout_s: float) -> str:
    """Try a mutant with tests, the nearest first."""
    if not tests:
        return "not reached"
    folder = folders.get()
    file = folder / mutant.path
    source = file.read_bytes()
    file.write_bytes(mutant.applied(source))
    try:
        tried = (batch for batch in (tests[:NEAREST], tests[NEAREST:]) if batch)
        return "killed" if any(run(folder, *PYTEST, *batch, timeout_s=timeout_s).returncode for batch in tried) else "survived"
    except subprocess.TimeoutExpired:
        return "timed out"
    finally:
        file.write_bytes(source)
        folders.put(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=100, help="how many mutants to try")
    parser.add_argument("--seed", type=int, default=1, help="which ones are drawn")
    parser.add_argument("--workers", type=int, default=2, help="how many are tried at a time")
    options = parser.parse_args()
    files = sorted(path.relative_to(ROOT).as_posix() for folder in MUTATED for path in (ROOT / folder).rglob("*.py"))
    every = [mutant for path in files if path not in NOT_MUTATED for mutant in Places(path).mutants]
    sample = random.Random(options.seed).sample(every, min(options.sample, len(every)))
    print(f"{len(sample)} of {len(every)} mutants, seed {options.seed}; looking which tests reach them …", flush=True)
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch, ThreadPoolExecutor(options.workers) as pool:
        folders: SimpleQueue[Path] = SimpleQueue()
        copies = [copied(Path(scratch).resolve() / str(number)) for number in range(options.workers)]
        began_s = time.monotonic()
        reached = tests_by_line(copies[0])
        reaches = Counter(itertools.chain.from_iterable(reached.values()))
        timeout_s = 60 + 10 * (time.monotonic() - began_s)  # the machine may be busier by then
        tried = {}
        for mutant in sample:
            found = {test for line in mutant.lines for test in reached.get((mutant.path, line), ())}
            tests = sorted(found - {TESTS}, key=lambda test: (reaches[test], test)) or sorted(found)
            tried[pool.submit(outcome, mutant, tests, folders, timeout_s)] = mutant
        for folder in copies:
            folders.put(folder)
        ended: dict[Mutant, str] = {}
        try:
            for future in as_completed(tried):
                ended[tried[future]] = future.result()
                print(f"{len(ended):4}/{len(sample)}  {future.result():11}  {tried[future]}", flush=True)
        finally:
            pool.shutdown(cancel_futures=True)
    alive = sorted(mutant for mutant, end in ended.items() if end in {"survived", "not reached"})
    for mutant in alive:
        source = (ROOT / mutant.path).read_bytes()
        before, after = (text.decode().splitlines() for text in (source, mutant.applied(source)))
        print(f"\n{mutant}  {ended[mutant]}", *list(difflib.unified_diff(before, after, lineterm="", n=0))[3:], sep="\n    ")
    killed, late = len(ended) - len(alive), list(ended.values()).count("timed out")
    print(f"\n{killed} of {len(ended)} mutants killed: {killed / len(ended):.0%} ({late} by taking too long)")


if __name__ == "__main__":
    main()
