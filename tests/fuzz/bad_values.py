r"""Bad values for every public function, class and method: what comes out is a result or an error that tells.

    python tests/fuzz/bad_values.py --time 600 --seed 7
    python tests/fuzz/bad_values.py --endless --only 'tf\.keras'         # every argument once with each endless value
    python tests/fuzz/bad_values.py --case 'tf.pad/0/eager/mode=3'      # one case again, with its traceback

A case is a call that works (`bad_targets.py`) with one or two arguments replaced (`bad_table.py`), made eagerly or in a
`tf.function`. Cases run in children with limits of memory and time. Failures are:

- `raw`: what is raised is no error of the library's, but what some statement inside happened to raise;
- `nameless`, `lineless`: the error does not say the function that was called, or the line that called it;
- `state`: a call that failed has changed a variable, or moved a stream of random numbers;
- `killed`, `hangs`: the child ended, or used more than its time or memory;
- `memory`: what has no end was read until the memory was over;
- `broken`: the fuzzer itself failed.

Told as well, and no failure: `net`, where only the last net under all public functions made an error of the library's
out of what was raised inside; `modes`, where one mode gives a result and the other an error; and `endless`, where a
loop that is the user's to end, by a condition or with the data, goes on, or a queue waits, and Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import dis
import functools
import io
import json
import os
import random
import re
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from fuzz import bad_table
from fuzz.bad_targets import Call, Target, calls, targets

import twofold as tf
from twofold.runtime import random as streams

__all__ = ["main", "run_cases", "judge"]

SECONDS = 20  # of processor time for a case
WALL = 180  # seconds without an answer, on a busy machine
MEMORY = 6 << 30
SLICE = 60  # cases of a target before the next target has its turn
_RAISE = dis.opmap["RAISE_VARARGS"]
_TOLD = ("net", "modes", "endless")
_COPIED = 1 << 26  # bytes of one variable
# Where the user says how long they go on, by a condition or by an iterable of data.
_LOOPS = re.compile(r"\b(while_loop|fori_loop|adapt|fit_on_texts|texts_to_\w+|sequences_to_texts\w*)$")
# Where a call waits for what another thread of the user's does; processor time tells nothing of that.
_WAITS = re.compile(r"\b(en|de)queue(_many|_up_to)?$")
_HERE = os.path.basename(__file__)
_CALLERS = (_HERE, "bad_targets.py")  # of whose lines an error may tell; the second's are those within an example


def invoke(fn: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """The user's lines: every case calls from here, and enters the block that it is given."""
    result = fn(*args, **kwargs)
    if hasattr(type(result), "__enter__") and type(result).__module__.partition(".")[0] in ("twofold", "contextlib"):
        with result:
            pass
    return result


def invoke_traced(fn: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """The same in a `tf.function`, whose arguments are the tensors among the arguments."""
    held = {**dict(enumerate(args)), **kwargs}
    tensors = {k: v for k, v in held.items() if isinstance(v, tf.Tensor)}

    def traced(*given: Any) -> Any:
        now = {**held, **dict(zip(tensors, given, strict=True))}
        result = invoke(fn, [now[n] for n in range(len(args))], {k: now[k] for k in kwargs})
        return [x for x in tf.nest.flatten(result) if isinstance(x, tf.Tensor)]  # else nothing would be computed
    return tf.function(traced, autograph=False)(*tensors.values())


def variables(call: Call) -> list[Any]:
    """The variables that the call may change: those of the object whose method it is, and of the arguments."""
    owner = getattr(call.fn, "__self__", call.fn)
    held = call.fn.args if isinstance(call.fn, functools.partial) else ()
    things = [owner, *held, *call.args, *call.kwargs.values()]
    with contextlib.suppress(Exception):
        return [v for thing in things for v in
                ([thing] if isinstance(thing, tf.Variable) else list(getattr(thing, "variables", ()) or ()))
                if isinstance(v, tf.Variable) and v.shape.num_elements() < 1 << 24]  # larger ones are not copied
    return []


def contents(watched: list[Any]) -> list[tuple[tuple[int, ...], bytes]]:
    """What variables hold, as shapes and bytes, without the bytes of arrays that are too large to be copied: zeros of
    any size take no memory."""
    arrays = [np.asarray(v) for v in watched]
    return [(a.shape, a.tobytes() if a.nbytes <= _COPIED else b"") for a in arrays]


def judge(target: Target, call: Call, error: BaseException) -> tuple[str, str]:
    """What is wrong with an error, and where it came from: ("", "") where nothing is."""
    if isinstance(error, bad_table.Boom) or isinstance(error.__cause__, bad_table.Boom):
        return "", ""
    complete = getattr(error, "__twofold_traceback__", None) or error.__traceback__
    steps = [step for step in _steps(complete) if os.path.basename(step.tb_frame.f_code.co_filename) != _HERE]
    place = _place(steps)
    if not steps and isinstance(error, (TypeError, ValueError)):  # the call did not fit the signature
        return "", ""
    users = (bad_table.__file__, "<example>", "<bad>")
    if any(step.tb_frame.f_code.co_filename in users for step in [*steps, *_steps(error.__traceback__)]):
        return "", ""  # the user's own function or object failed
    text = f"{error}"
    if isinstance(error, OSError) and not isinstance(error, tf.errors.OpError):
        text += "".join(getattr(error, "__notes__", ()))  # Python's own errors of files have their text already
    raised = steps and steps[-1].tb_frame.f_code.co_code[steps[-1].tb_lasti] == _RAISE
    ours = steps and "site-packages" not in steps[-1].tb_frame.f_code.co_filename
    kind = ""
    told = isinstance(error, tf.errors.OpError) or (raised and ours) or hasattr(error, "__notes__")
    if not told or isinstance(error, tf.errors.InternalError):
        kind = "raw"
    elif isinstance(error, (RuntimeError, AttributeError, KeyError, OSError, ImportError)) and not isinstance(
            error, tf.errors.OpError):
        kind = ""  # what is wrong is a state, a name or what is installed; the traceback has the line
    elif not _names(target, call, text) and not getattr(error, "of_values", False):
        kind = "nameless"
    elif not any(file in text for file in _CALLERS):
        kind = "lineless"
    elif getattr(error, "from_inside", False):
        kind, place = "net", _place(_steps(error.__cause__.__traceback__)) if error.__cause__ else place
    return kind, place


def _steps(trace: Any) -> list[Any]:
    result = []
    while trace is not None:
        result.append(trace)
        trace = trace.tb_next
    return result


def _place(steps: list[Any]) -> str:
    """Where in the library the error came from: its innermost frames."""
    frames = [s.tb_frame.f_code for s in steps if "site-packages" not in s.tb_frame.f_code.co_filename
              and f"{os.sep}lib{os.sep}python" not in s.tb_frame.f_code.co_filename]
    return " < ".join(f"{Path(c.co_filename).parent.name}/{Path(c.co_filename).name}:{c.co_name}"
                      for c in reversed(frames[-3:]))


def _names(target: Target, call: Call, text: str) -> bool:
    """Whether the text says what was called."""
    last = target.name.rpartition(".")[2]
    names = {last, last.strip("_"), target.method, OPERATORS.get(target.method, "")}
    names.add(getattr(target.value, "__name__", last).strip("_"))  # of a setter with a second name
    names |= {"traced"}  # the function that `invoke_traced` calls, where something is wrong only when it runs
    names.add(getattr(call.fn, "__name__", last).strip("_"))
    owner = getattr(call.fn, "__self__", None)
    classes = [target.owner, type(owner), type(call.fn)] if target.owner is not None else []
    if isinstance(target.value, type):  # `Model(...)` makes a `Functional`
        classes += type.__subclasses__(target.value)
    names |= {base.__name__ for cls in filter(None, classes) for base in cls.__mro__ if base is not object}
    return any(re.search(rf"\b{re.escape(name)}\b", text) for name in names if name)


# The ops that operators stand for.
OPERATORS = {"__add__": "add", "__sub__": "subtract", "__mul__": "multiply", "__matmul__": "matmul", "__pow__": "pow",
             "__truediv__": "divide", "__floordiv__": "floordiv", "__mod__": "floormod", "__and__": "logical_and",
             "__or__": "logical_or", "__xor__": "logical_xor", "__lt__": "less", "__ge__": "greater_equal",
             "__eq__": "equal", "__neg__": "negative", "__getitem__": "strided_slice"}

Change = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Plan:
    """What decides the cases of all targets: a seed, the values, and how many seconds of processor time one may take.
    """

    seed: int = 0
    values: tuple[str, ...] = bad_table.BAD
    seconds: float = SECONDS


def spell(target: str, example: int, mode: str, change: Change) -> str:
    """A case as one string, which `--case` takes."""
    return f"{target}/{example}/{mode}/" + " & ".join(f"{p}={v}" for p, v in change)


def understand(case: str) -> tuple[str, int, str, Change]:
    """The parts of a case that `spell` wrote."""
    name, example, mode, rest = case.split("/", 3)
    pairs = [part.split("=", 1) for part in re.split(r" & (?=\w+=)", rest)] if rest else []
    return name, int(example), mode, tuple((p, v) for p, v in pairs)


def run_case(target: Target, call: Call, mode: str, change: Change) -> tuple[str, str, str]:
    """Make one call: `(kind, what was raised, where)`; the kind is "" where all is well, "ok" for a result."""
    args, kwargs = list(call.args), dict(call.kwargs)
    for parameter, text in change:
        value = bad_table.make(text)
        if parameter.isdigit() and int(parameter) < len(args):
            args[int(parameter)] = value
        else:
            kwargs[parameter] = value
    watched = variables(call)
    before, drawn, seeds = contents(watched), dict(streams._taken), streams._op_seeds
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            (invoke if mode == "eager" else invoke_traced)(call.fn, args, kwargs)
        return "ok", "", ""
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001 (whatever it is, it is judged)
        kind, place = judge(target, call, error)
        endless = any(value in bad_table.ENDLESS for _, value in change)
        if endless and type(error.__cause__) is MemoryError:  # NumPy's own error comes before it takes any
            kind = "memory"
        # A compiled function is the user's: what its ops drew before one of them failed stays drawn, as in Python.
        moved = contents(watched) != before or (mode == "eager" and (streams._op_seeds != seeds or any(
            streams._taken[name] != drawn.get(name, 0) for name in streams._taken)))
        kind = "state" if moved and kind in ("", "net") else kind
        return kind, f"{type(error).__name__}: {str(error)[:300]}", place


def changes(call: Call, rng: random.Random, values: tuple[str, ...]) -> Iterator[Change]:
    """Every argument with every value, in an order of its own; where the values are all bad ones, then pairs of
    arguments, for ever."""
    names = [*call.named(), *call.parameters]
    if not names:
        return
    single = [(p, v) for p in names for v in values]
    rng.shuffle(single)
    for pair in single:
        yield (pair,)
    while values is bad_table.BAD:
        first, second = rng.choice(names), rng.choice(names)
        one = ((first, rng.choice(bad_table.BAD)),)
        yield one if first == second else (*one, (second, rng.choice(bad_table.BAD)))


def modes(target: Target) -> tuple[str, ...]:
    """Classes are made, and most methods called, outside of functions."""
    inside = target.owner is None and not isinstance(target.value, type) and not target.name.startswith(
        ("tf.io.", "tf.keras.utils", "tf.config", "tf.compat.v1", "tf.train", "tf.data", "tf.summary", "tf.profiler"))
    inside = inside or target.owner in (tf.Tensor, tf.Variable) or target.method == "__call__"
    return ("eager", "traced") if inside else ("eager",)


def cases(target: Target, actual: list[Call], plan: Plan, start: int) -> Iterator[tuple[int, str, Change]]:
    """`(example, mode, change)` from number `start` on, of a sequence that the seed decides."""
    streams = {n: changes(call, random.Random(f"{plan.seed} {target.name} {n}"), plan.values)
               for n, call in enumerate(actual)}
    number = 0
    while streams:
        for n in list(streams):
            change = next(streams[n], None)
            if change is None:
                del streams[n]
                continue
            if number >= start:
                for mode in modes(target):
                    yield n, mode, change
            number += 1


class Limit:
    """The time of a case: when it is over, the case is interrupted as by Ctrl-C. What does not end then is killed."""

    def __init__(self, seconds: float) -> None:
        self.calls, self.over, self.seconds = 0, False, seconds
        signal.signal(signal.SIGPROF, self._tick)
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
        signal.signal(signal.SIGALRM, signal.default_int_handler)

    def start(self, waits: bool = False) -> None:
        """The time of the next case begins; of one that may wait, a second by the clock."""
        self.calls, self.over = 0, False
        signal.setitimer(signal.ITIMER_REAL, waits)
        signal.setitimer(signal.ITIMER_PROF, self.seconds)
        signal.setitimer(signal.ITIMER_VIRTUAL, 1.25 * self.seconds + 1)

    def _tick(self, *args: Any) -> None:
        if not self.over:  # is it the user's own code that goes on? for a second calls of it are counted
            self.over = True
            sys.setprofile(self._count)
            signal.setitimer(signal.ITIMER_PROF, 1)
            return
        sys.setprofile(None)
        raise KeyboardInterrupt

    def _count(self, frame: Any, event: str, argument: Any) -> None:
        users = (bad_table.__file__, "<example>", "<bad>")
        self.calls += event == "call" and frame.f_code.co_filename in users

    def kind(self, target: Target) -> str:
        """What a case is whose time was over."""
        sys.setprofile(None)
        return "endless" if self.calls > 2 or _LOOPS.search(target.name) or _WAITS.search(
            target.name) else "hangs"


def child(target: Target, plan: Plan, start: int, count: int, only: list[str] | None, out: int) -> None:
    """Run cases of one target; a line goes out before each, and one for what is wrong."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    sys.setrecursionlimit(1000)
    quiet = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(quiet, number)
    os.chdir(tempfile.mkdtemp(dir=os.getcwd()))
    signal.setitimer(signal.ITIMER_PROF, 3 * SECONDS)  # for the examples
    actual = calls(target)
    chosen = [understand(c)[1:] for c in only] if only is not None else _first(
        cases(target, actual, plan, start), count)
    _tell(out, ["ready", "", "", "", len(actual)])
    eager: dict[Any, tuple[str, str, str]] = {}
    limit = Limit(plan.seconds)
    for example, mode, change in chosen:
        case = spell(target.name, example, mode, change)
        if example >= len(actual):
            continue
        _tell(out, ["start", case, "", "", 0])
        limit.start(bool(_WAITS.search(target.name)))
        try:
            kind, raised, place = run_case(target, actual[example], mode, change)
        except KeyboardInterrupt as error:
            kind, raised, place = limit.kind(target), "", _place(_steps(error.__traceback__))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        # A function of the user's, such as a branch, may be one that only tracing runs.
        if mode == "traced" and (example, change) in eager and not any(callable(bad_table.make(v)) for _, v in change):
            other = eager[example, change]
            if kind in ("ok", "", "net") and other[0] in ("ok", "", "net") and (kind == "ok") != (other[0] == "ok"):
                kind, raised = "modes", f"eager {other[1] or 'gives a result'}; traced {raised or 'gives a result'}"
                place = place or other[2]
        eager[example, change] = kind, raised, place
        if kind not in ("", "ok"):
            _tell(out, [kind, case, raised, place, 0])
        if kind == "state":
            break  # what follows would start from another state
    _tell(out, ["end", "", "", "", 0])


def _first(stream: Iterator[Any], count: int) -> list[Any]:
    return [item for item, _ in zip(stream, range(count), strict=False)]


def _tell(out: int, message: list[Any]) -> None:
    os.write(out, (json.dumps(message) + "\n").encode())


class Report:
    """What was seen: how many cases, and each distinct failure with its first case."""

    def __init__(self) -> None:
        self.cases = 0
        self.without: list[str] = []
        self.seen: dict[tuple[str, ...], list[Any]] = {}
        self.counts: collections.Counter[str] = collections.Counter()

    def add(self, kind: str, case: str, raised: str, place: str) -> None:
        """One failure."""
        self.counts[kind] += 1
        words = re.sub(r"0x[0-9a-f]+|\d+", "#", raised.split("\n")[0])[:100]
        name = case.split("/")[0] if kind in (
            "nameless", "lineless", "hangs", "killed", "memory", "state", "modes") else ""
        key = (kind, place or name or words, raised.split(":")[0] if place else words)
        self.seen.setdefault(key, [0, case, raised, place])[0] += 1

    def failures(self) -> int:
        """How many distinct failures there are."""
        return sum(key[0] not in _TOLD for key in self.seen)

    def __str__(self) -> str:
        lines = []
        for (kind, *_), (count, case, raised, place) in sorted(self.seen.items(), key=lambda i: (i[0][0], -i[1][0])):
            lines.append(f"{kind} x{count}: {case}\n    {raised.splitlines()[0] if raised else ''}"
                         + (f"\n    in {place}" if place else ""))
        told = ", ".join(f"{n} {k}" for k, n in sorted(self.counts.items())) or "none"
        return "\n".join([*lines, f"{self.cases} cases, {self.failures()} distinct failures ({told})"])


def run_slice(target: Target, plan: Plan, start: int, count: int, report: Report, only: list[str] | None = None) -> int:
    """A child for one target: how many cases it ran, none where there are no more; what ends the child ends the slice.
    """
    reader, writer = os.pipe()
    process = os.fork()
    if not process:
        os.close(reader)
        try:
            child(target, plan, start, count, only, writer)
        except BaseException:  # noqa: BLE001 (the child must end here)
            _tell(writer, ["broken", target.name, traceback.format_exc()[-600:], "", 0])
        os._exit(0)
    os.close(writer)
    ran, last, ended, late, broken = 0, "", False, False, ""
    for message in _messages(reader):
        if message is None:
            late = True
            os.kill(process, signal.SIGKILL)
            break
        kind, case, raised, place, number = message
        if kind == "start":
            ran, last = ran + 1, case
        elif kind == "ready":
            if not number:
                report.without.append(target.name)
        elif kind == "end":
            ended = True
        elif kind == "broken":
            broken = raised
        else:
            report.add(kind, case, raised, place)
    os.close(reader)
    status = os.waitpid(process, 0)[1]
    if not ended:
        how = signal.Signals(status & 127).name if status & 127 else f"status {status >> 8}"
        hung = late or how in ("SIGPROF", "SIGVTALRM")
        if last or not hung:  # else an example took its time
            report.add("broken" if broken else "hangs" if hung else "killed", last or target.name, broken or how, "")
    report.cases += ran
    return ran


def _messages(reader: int) -> Iterator[list[Any] | None]:
    """The child's messages; None, and no more, where none came in time."""
    rest = b""
    while True:
        if not select.select([reader], [], [], WALL)[0]:
            yield None
            return
        data = os.read(reader, 1 << 16)
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield json.loads(line)


def run_cases(chosen: list[str]) -> Report:
    """These cases, in children."""
    report, everything = Report(), targets()
    grouped: dict[str, list[str]] = {}
    for case in chosen:
        grouped.setdefault(understand(case)[0], []).append(case)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, group in grouped.items():
            run_slice(everything[name], Plan(), 0, 0, report, group)
    return report


def again(case: str) -> int:
    """One case in this process, with its traceback; 1 where it fails."""
    name, example, mode, change = understand(case)
    target = targets()[name]
    call = calls(target)[example]
    print(f"{call.text}\n  with {change} ({mode})")
    judged = run_case(target, call, mode, change)
    print(judged)
    os.environ["TWOFOLD_TRACEBACK"] = "full"
    args, kwargs = list(call.args), dict(call.kwargs)
    for parameter, text in change:
        if parameter.isdigit() and int(parameter) < len(args):
            args[int(parameter)] = bad_table.make(text)
        else:
            kwargs[parameter] = bad_table.make(text)
    try:
        print((invoke if mode == "eager" else invoke_traced)(call.fn, args, kwargs))
    except Exception as error:  # noqa: BLE001
        print(f"{type(error).__name__}: {error}")
        traceback.print_tb(getattr(error, "__twofold_traceback__", None) or error.__traceback__)
    return int(judged[0] not in ("", "ok", *_TOLD))


def main() -> int:
    """Run until the time is over; 1 where anything failed."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--time", type=float, default=600, help="seconds")
    options.add_argument("--seed", type=int, default=None)
    options.add_argument("--only", default="", metavar="PATTERN", help="targets whose name the pattern is found in")
    options.add_argument("--endless", action="store_true", help="only values that have no end, and no pairs")
    options.add_argument("--limit", type=float, default=SECONDS, help="seconds of processor time for a case")
    options.add_argument("--case", default=None, help="one case, as a failure names it")
    args = options.parse_args()
    if args.case is not None:
        return again(args.case)
    seed = random.SystemRandom().randrange(1 << 30) if args.seed is None else args.seed
    plan = Plan(seed, bad_table.ENDLESS if args.endless else bad_table.BAD, args.limit)
    print(f"seed {seed}", flush=True)
    report, end = Report(), time.monotonic() + args.time
    everything = [t for name, t in targets().items() if re.search(args.only, name)]
    random.Random(seed).shuffle(everything)
    starts = dict.fromkeys(range(len(everything)), 0)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        while starts and time.monotonic() < end:
            for number in list(starts):
                if time.monotonic() >= end:
                    break
                ran = run_slice(everything[number], plan, starts[number], SLICE, report)
                starts[number] += -(-ran // len(modes(everything[number])))
                if not ran:
                    del starts[number]
    print(report)
    print(f"{len(everything)} functions, classes and methods; not reached {sum(not n for n in starts.values())}; "
          f"no call known of {len(report.without)}: " + ", ".join(report.without[:20]))
    return 1 if report.failures() else 0


if __name__ == "__main__":
    sys.exit(main())
