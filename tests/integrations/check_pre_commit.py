"""pre-commit itself: it installs the hook from a clone, and lets a push through as the gate says.

Run by `make integrations` in an environment with pre-commit. The hook is that of the last commit of
this checkout; pre-commit makes the environment of the hook in a temporary folder.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "fixtures"))

from two_class_pictures import DATA, name_model, write_pictures

PUSHES = (
    (("--require", "accuracy >= 50%"), ["Passed"]),
    (
        ("--require", "accuracy >= 50%", "--require", "accuracy >= 99%"),
        ["exit code: 1", "accuracy >= 99% does not hold", "1 of 2 hold"],
    ),
    (("--require", "acuracy >= 50%"), ["exit code: 2", "did you mean 'accuracy'?"]),
    ((), ["exit code: 2", "steadyeye: no requirement given; give --require"]),
)
"""Arguments of the hook after the run, and what a push prints; only the first goes out."""


def main():
    """Pushes from a repository with the hook; raises AssertionError where it is not as said."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ |= {"PRE_COMMIT_HOME": str(folder / "home"), "PRE_COMMIT_COLOR": "never"}
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        run("git", "clone", "--quiet", ROOT, folder / "steadyeye")
        commit = run("git", "-C", folder / "steadyeye", "rev-parse", "HEAD").strip()
        (folder / "user").mkdir()
        os.chdir(folder / "user")
        make_repository()
        for arguments, texts in PUSHES:
            configure(folder / "steadyeye", commit, arguments)
            check_push(passes=texts == ["Passed"], texts=texts)
        # nothing is judged at a commit, which the hook is not of
        assert "No hook with id" in run("pre-commit", "run", "steadyeye-gate", code=1)
    print(f"pre-commit {run('pre-commit', '--version').split()[1]}: the hook of {commit[:8]} gates")


def make_repository():
    """A user's repository in the present folder, with a finished run and a place to push to."""
    write_pictures(Path())
    words = ("--model", name_model("by_brightness"), "--data", DATA, "--out", "run")
    run(sys.executable, "-m", "steadyeye", "run", *words, "--quiet")
    run("git", "init", "--quiet", "--initial-branch", "main")
    run("git", "init", "--quiet", "--bare", "../remote")
    run("git", "remote", "add", "origin", "../remote")
    run("git", "config", "user.name", "user")
    run("git", "config", "user.email", "user@localhost")
    run("pre-commit", "install", "--hook-type", "pre-push")


def configure(clone, commit, arguments):
    """Commits a configuration whose gate has the arguments."""
    hook = {"id": "steadyeye-gate", "args": ["run", *arguments]}
    repository = {"repo": str(clone), "rev": commit, "hooks": [hook]}
    Path(".pre-commit-config.yaml").write_text(yaml.safe_dump({"repos": [repository]}))
    run("git", "add", ".pre-commit-config.yaml")
    run("git", "commit", "--quiet", "--message", "Require something of the run")


def check_push(*, passes, texts):
    """Pushes; what is printed has the texts, and the commit is there if the hook passes."""
    printed = run("git", "push", "origin", "main", code=0 if passes else 1)
    assert all(text in printed for text in texts), printed
    local_head, pushed_head = (
        run("git", "ls-remote", place, "refs/heads/main") for place in (".", "origin")
    )
    assert (local_head == pushed_head) == passes, printed


def run(*words, code=0):
    """What a command prints; raises AssertionError where it ends with another code."""
    done = subprocess.run(
        list(map(str, words)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout
    return done.stdout


if __name__ == "__main__":
    main()
