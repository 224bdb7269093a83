"""Known vulnerabilities of the packages beside this Python: `audit_packages.py PIP-AUDIT say|fail`.

Exits with 1 where there are some. Where the advisory service cannot be reached it says so, and
exits with 0, or with 1 after `fail`.
"""

import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path
from tempfile import TemporaryDirectory

OWN = "steadyeye"
SKIPPED = "could not be audited"
UNREACHABLE = ("ConnectionError", "Failed to resolve", "Max retries", "ServiceError", "timed out")


def list_packages() -> list[str]:
    """The installed packages as `name==version`, without the local labels of CPU builds."""
    versions = {item.metadata["Name"]: item.version.partition("+")[0] for item in distributions()}
    return sorted(f"{name}=={version}" for name, version in versions.items() if name != OWN)


def main(program: str, offline: str) -> int:
    """Prints the result of the audit; returns its exit code."""
    packages = list_packages()
    with TemporaryDirectory() as folder:
        requirements = Path(folder) / "requirements.txt"
        requirements.write_text("\n".join(packages))
        words = [program, "--no-deps", "--disable-pip", "--progress-spinner", "off"]
        words += ["--requirement", str(requirements)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603
    sys.stdout.write(done.stdout + done.stderr[-2000:])
    if done.returncode and any(word in done.stderr for word in UNREACHABLE):
        sys.stdout.write("audit: the advisory service cannot be reached; nothing was audited\n")
        return int(offline == "fail")
    # an index without advisories answers as for an unknown package
    skipped = done.stdout.count(SKIPPED)
    if skipped > len(packages) // 2:
        sys.stdout.write(f"audit: {skipped} of {len(packages)} packages could not be audited\n")
        return done.returncode or int(offline == "fail")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
