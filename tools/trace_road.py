"""Prints the files of steadyeye that a command enters, and how often it goes from file to file.

::

    python tools/trace_road.py --out /tmp/roads                       # all roads below
    python tools/trace_road.py --out /tmp/roads image report          # some
    python tools/trace_road.py --out /tmp/roads --src other/src       # of another checkout

A file is entered when one of its functions is called, in any thread; imports do not count. A turn
is a step from one file of ours to another: a call or a return after which the innermost function of
ours in that thread is in another file. Roads:

    run       `steadyeye run` on one image with a plain classifier, all of it
    image     of that run, from the record of what is evaluated (cell.json) to the sealed shard
    report    `steadyeye report` of that run
    degrade   `steadyeye degrade` on that image with one operator at two levels
    decision  a reviewer's answer, from the request to the response
    box       boxes of a finished run to pm-k mAP

Only commands, the web pages of a review and `import steadyeye` are used, so the same file traces
commits with other modules. Each road is a separate process.
"""

import argparse
import inspect
import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import golden_inputs  # noqa: E402
from golden_review import Reviewer, find_port, wait_for_links  # noqa: E402


class Tracer:
    """Records calls of functions below `root`, in all threads, while `on` is set."""

    def __init__(self, root: Path) -> None:
        """Nothing is recorded before `start`."""
        self.root = f"{root}{os.sep}"
        self.on = False
        self.functions: set[tuple[str, str, int]] = set()
        self.calls: Counter[str] = Counter()
        self.turns = 0
        self.kinds: dict[CodeType, str] = {}
        self.threads = threading.local()

    def install(self) -> None:
        """Traces this thread, from the functions that it is in, and those that start later."""
        threading.settrace(self.follow)
        sys.settrace(self.follow)
        local = self.threads
        local.stack, local.imports, local.last = [], 0, ""
        frame = inspect.currentframe()
        while frame := frame and frame.f_back:
            if self.find_kind(frame.f_code) == "function":
                local.stack.insert(0, frame.f_code.co_filename)
                frame.f_trace, frame.f_trace_lines = self.leave_function, False
        self.record_turn(local)

    def remove(self) -> None:
        """No function that is called from here on in this thread, or in a new one, is traced."""
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]

    def follow(self, frame: FrameType, event: str, _: Any) -> Callable[..., Any] | None:
        """Handles a call, as given by `sys.settrace`; returns whether its return is traced too."""
        code = frame.f_code
        kind = self.kinds.get(code)
        if kind is None:
            kind = self.kinds.setdefault(code, self.find_kind(code))
        if not kind:
            return None
        local = self.threads
        if not hasattr(local, "stack"):
            local.stack, local.imports, local.last = [], 0, ""
        frame.f_trace_lines = False
        if kind == "import":
            local.imports += 1
            return self.leave_import
        if local.imports:
            return None
        local.stack.append(code.co_filename)
        self.record_call(code)
        self.record_turn(local)
        return self.leave_function

    def leave_import(self, _: FrameType, event: str, __: Any) -> Callable[..., Any]:
        """Takes the end of the body of a module or class."""
        if event == "return":
            self.threads.imports -= 1
        return self.leave_import

    def leave_function(self, _: FrameType, event: str, __: Any) -> Callable[..., Any]:
        """Takes the return of a function."""
        if event == "return":
            self.threads.stack.pop()
            self.record_turn(self.threads)
        return self.leave_function

    def find_kind(self, code: CodeType) -> str:
        """`function` of ours, `import` for the body of a module or class of ours, else empty."""
        name = code.co_filename
        # the body of `__main__` is no import: the whole command runs in it
        if not name.startswith(self.root) or Path(name).stem == "__main__":
            return ""
        return "function" if code.co_flags & inspect.CO_OPTIMIZED else "import"

    def record_call(self, code: CodeType) -> None:
        """Records a called function."""
        if self.on:
            name = code.co_filename.removeprefix(self.root)
            self.functions.add((name, code.co_qualname, code.co_firstlineno))
            self.calls[name] += 1

    def record_turn(self, local: threading.local) -> None:
        """Records a step to another file, if any."""
        current = local.stack[-1] if local.stack else ""
        if current and current != local.last:
            if self.on and local.last:
                self.turns += 1
            local.last = current

    def summarize(self) -> dict[str, Any]:
        """The figures of a road, and its files with the functions and calls of each."""
        modules = [name for name in sys.modules if name.partition(".")[0] == "steadyeye"]
        functions = Counter(file for file, _, _ in self.functions)
        return {
            "files": len(functions),
            "turns": self.turns,
            "functions": len(self.functions),
            "modules imported": len(modules),
            "by file": {
                file: {"functions": count, "calls": self.calls[file]}
                for file, count in sorted(functions.items())
            },
            "modules": sorted(modules),
        }


def run_steadyeye(*words: str) -> None:
    """A command in this process; raises `SystemExit` where it fails."""
    sys.argv = ["steadyeye", *words]
    try:
        runpy.run_module("steadyeye", run_name="__main__", alter_sys=True)
    except SystemExit as error:
        if error.code:
            raise


DATA = "image_folder(root='one', classes='imagenet1k')"
RUN = (
    *("run", "--model", "efficientnet_lite0", "--data", DATA),
    *("--out", "runs/one", "--overwrite", "--no-cache", "--workers", "1", "--quiet"),
)


def trace_run(tracer: Tracer) -> None:
    """All of a run of one image."""
    tracer.install()
    tracer.on = True
    run_steadyeye(*RUN)


def trace_image(tracer: Tracer) -> None:
    """From the moment that cell.json is in place to the moment that the shard's seal is."""

    def watch(event: str, words: tuple[Any, ...]) -> None:
        if event != "os.rename":
            return
        name = Path(os.fsdecode(words[1])).name
        if name == "cell.json":
            tracer.install()
            tracer.on = True
        elif name.endswith(".seal"):
            tracer.on = False
            tracer.remove()

    sys.addaudithook(watch)
    run_steadyeye(*RUN)


def trace_report(tracer: Tracer) -> None:
    """A report of the run of one image."""
    run_steadyeye_apart(*RUN)
    tracer.install()
    tracer.on = True
    run_steadyeye("report", "runs/one", "--out", "report.html")


def trace_degrade(tracer: Tracer) -> None:
    """A sweep of one image."""
    tracer.install()
    tracer.on = True
    run_steadyeye(
        *("degrade", *RUN[1:6], "runs/sweep", *RUN[7:]),
        *("--operators", "jpeg", "--levels", "0,20", "--images", "all"),
    )


def trace_decision(tracer: Tracer) -> None:
    """One answer to one item of a review."""
    if not Path("drawn").exists():
        words = ("--anchors", "1", "--k", "1", "--labels", "clip.json", "--out", "drawn", "--quiet")
        run_steadyeye_apart("sample", "clip.mp4", *words)
    shutil.rmtree("set", ignore_errors=True)
    shutil.copytree("drawn", "set")
    log = Path("server.log")
    log.write_text("")
    port = find_port()
    client = threading.Thread(target=decide_once, args=(tracer, log))
    client.start()
    # after the start of the reviewer's thread, which is not the server's
    tracer.install()
    with log.open("w", buffering=1) as stream:
        sys.stdout = stream
        try:
            run_steadyeye("review", "set", "--reviewer", "Ann", "--port", str(port))
        except KeyboardInterrupt:
            pass
        finally:
            sys.stdout = sys.__stdout__
    client.join()


def decide_once(tracer: Tracer, log: Path) -> None:
    """A reviewer: answers the second item of the first stage, and stops the server."""
    try:
        reviewer = Reviewer("Ann", wait_for_links(log)["Ann"])
        # the first answer of a process also loads modules
        reviewer.decide("anchors", reviewer.ask("anchors")[0])
        item = reviewer.ask("pairs")[0]
        tracer.on = True
        reviewer.decide("pairs", item)
        # the server may still be closing resources of the answer
        time.sleep(0.2)
        tracer.on = False
    finally:
        os.kill(os.getpid(), signal.SIGINT)


def trace_box(tracer: Tracer) -> None:
    """From the sealed boxes of a small run of pm-sets to their pm-k mAP."""
    if not Path("runs/boxes").exists():
        model = "callable_detector(path='golden_inputs:find_squares', classes='film/classes.json')"
        data = "davis(root='film', labels='film/labels.csv', anchors=1, k=1)"
        run_steadyeye_apart("run", "--model", model, "--data", data, "--out", "runs/boxes")
    import steadyeye as se

    tracer.install()
    tracer.on = True
    print(se.open_run("runs/boxes").pm_k_map(k=1))


ROADS: dict[str, Callable[[Tracer], None]] = {
    "run": trace_run,
    "image": trace_image,
    "report": trace_report,
    "degrade": trace_degrade,
    "decision": trace_decision,
    "box": trace_box,
}


def run_steadyeye_apart(*words: str) -> None:
    """A command in a separate process, which is not traced."""
    command = [sys.executable, "-m", "steadyeye", *words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603


def write_inputs(out: Path) -> None:
    """One image, the packaged video with labels, and a film of three frames with boxes."""
    golden_inputs.write_footage(out, HERE.parent / "examples" / "bikes.json")
    (out / "one" / "jinrikisha").mkdir(parents=True)
    os.link(out / "photo.png", out / "one" / "jinrikisha" / "photo.png")
    golden_inputs.write_film(out / "film")


def main() -> int:
    """Traces the requested roads, each in a process, and prints and writes their figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="a folder outside the repository")
    parser.add_argument("--src", type=Path, default=HERE.parent / "src", help="a checkout's src/")
    parser.add_argument("--files", action="store_true", help="print the files of each road, too")
    parser.add_argument("--here", help=argparse.SUPPRESS)
    parser.add_argument("roads", nargs="*", choices=[*ROADS, []], help="which; all if left out")
    arguments = parser.parse_args()
    out, source = arguments.out.resolve(), arguments.src.resolve()
    if arguments.here:
        trace_here(arguments.here, source, out / f"{arguments.here}.json")
        return 0
    if not (out / "film").exists():
        out.mkdir(parents=True, exist_ok=True)
        write_inputs(out)
    path = os.pathsep.join([str(source), str(HERE)])
    surroundings = {**os.environ, "PYTHONPATH": path, "STEADYEYE_CACHE": "off"}
    print("road       files  turns  functions  modules imported")
    for road in arguments.roads or ROADS:
        words = [__file__, "--out", out, "--src", source, "--here", road]
        command = [sys.executable, *map(str, words)]
        done = subprocess.run(  # noqa: S603
            command, cwd=out, env=surroundings, capture_output=True, text=True, check=False
        )
        if done.returncode:
            print(f"{road}: failed\n{done.stdout}{done.stderr}")
            return 1
        print_road(road, json.loads((out / f"{road}.json").read_text()), arguments.files)
    return 0


def trace_here(road: str, source: Path, file: Path) -> None:
    """Traces a road in this process and writes the result to `file`."""
    tracer = Tracer(source / "steadyeye")
    try:
        ROADS[road](tracer)
        if not tracer.functions:
            raise RuntimeError(f"nothing was traced on the road '{road}'")
    finally:
        tracer.on = False
        tracer.remove()
    file.write_text(json.dumps(tracer.summarize(), indent=1))


def print_road(road: str, trace: dict[str, Any], files: bool) -> None:
    """A line of figures, and the files on request."""
    numbers = (trace[key] for key in ("files", "turns", "functions", "modules imported"))
    print("{:9}  {:5}  {:5}  {:9}  {:16}".format(road, *numbers), flush=True)
    for file, counts in trace["by file"].items() if files else ():
        print(f"    {file}: {counts['functions']} functions, {counts['calls']} calls")


if __name__ == "__main__":
    sys.exit(main())
