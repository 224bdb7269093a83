"""The paths of the real test data, and the packaged models, loaded once per session."""

import gc
import os
import shlex
import shutil
import signal
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = (ROOT / "tests", *sorted(f for f in (ROOT / "tests").rglob("[a-z]*") if f.is_dir()))
TESTS = os.pathsep.join(map(str, FOLDERS))
"""The path of the tests' modules, for other processes."""
CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # what Playwright turns off, whose list this replaces, and the last three: a window that nobody
    # sees would load 400 files for what its address bar unfolds
    "--disable-features=AvoidUnnecessaryBeforeUnloadCheckSync,DestroyProfileOnBrowserClose,"
    "HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,LensOverlay,MediaRouter,PaintHolding,"
    "ThirdPartyStoragePartitioning,AvoidCorsURLLoaderRestartOnRedirect,OptimizationHints,"
    "NetworkTimeServiceQuerying,AimEnabled,PreconnectToSearch,"
    "WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup",
]
PATIENCE = 120_000
"""The longest wait for a page, in milliseconds."""
# what a test leaves to all after it, and to their browsers and servers
SCHEDULING = os.sched_getscheduler(0)
FOLDER = os.getcwd()
# begun in the background of a shell, tests would ignore interrupts, and so would all they begin
signal.signal(signal.SIGINT, signal.default_int_handler)
# tests begin processes by the hundred, and none is to compile every module again
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# what one test leaves behind is not to answer for another; those of the cache name a folder
os.environ["STEADYEYE_CACHE"] = "off"
# sealed files are synced by the thousand: a disk takes a third of a session for what nobody keeps
MEMORY = "/dev/shm"
if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK):
    runs_programs = not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
    if runs_programs and shutil.disk_usage(MEMORY).free > 8 << 30:
        os.environ["TMPDIR"] = tempfile.tempdir = MEMORY
# workers are as many as processors and more: the threads of one would only wait for another's
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(threads, "1")
# before anybody asks for one, Ray would begin a Python process for each processor
os.environ["RAY_prestart_worker_first_driver"] = "0"  # noqa: SIM112 — as Ray has it
# until all tests are collected nothing is garbage, and a search for it goes through every module
gc.disable()
# the same examples in every run, and no limit of time for one: a busy machine is no fault of ours
settings.register_profile(
    "tests",
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tests")
# by the time they take: a worker keeps to a file, and none is to begin with a long one at the end
LONGEST = (
    "test_ray",
    "test_label_pages",
    "test_looks",
    "test_review_pages",
    "test_interrupts",
    "test_boxes_pages",
    "test_detector_label_pages",
    "test_review_server",
    "test_finetune_detection",
    "test_storage",
    "test_integrated_gradients",
    "test_viewer",
    "test_model_libraries",
    "test_seeking",
    "test_review_faults",
    "test_fuzz",
    "test_runs",
    "test_finetune_classifiers",
    "test_outside_plugins",
    "test_view_folders",
    "test_label_free",
    "test_processes",
    "test_explain",
    "test_cli",
    "test_released_sets",
    "test_cache",
    "test_blind_spots",
    "test_average_precision",
    "test_competing_classes",
    "test_review_postgresql",
    "test_review_attacks",
    "test_sweeps",
    "test_gate",
    "test_faults",
    "test_nao_export",
    "test_finetune",
    "test_finetune_loop",
    "test_package",
)
# files most of whose tests are slow
SLOW = frozenset(
    (
        "test_blind_spots",
        "test_cache",
        "test_competing_classes",
        "test_explain",
        "test_finetune_classifiers",
        "test_finetune_detection",
        "test_fuzz",
        "test_gate",
        "test_integrated_gradients",
        "test_label_free",
        "test_memory",
        "test_mistakes",
        "test_model_libraries",
        "test_processes",
        "test_ray",
        "test_real_detectors",
        "test_refusals",
        "test_runs",
        "test_sampled_labels",
        "test_storage",
        "test_terminal",
        "test_view_folders",
        "test_viewer",
    )
)
DATA = Path(os.environ.get("STEADYEYE_TEST_DATA", ROOT.parent / "shared" / "data"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(specs):
    """Workers are forks of one server, which imports the modules of tests and commands once."""
    import forked

    for spec in specs:
        if spec.popen and not spec.python:
            spec.python = shlex.join(forked.list_stub_words())


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """A worker's commands are forked from the same server."""
    import forked

    node.workerinput["commands"] = forked.find_server()


def pytest_configure(config):
    """A worker is told where that server is."""
    if hasattr(config, "workerinput"):
        import forked

        os.environ[forked.SHARED] = config.workerinput["commands"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """The longest files first, the others in their order; tests with a browser are slow."""
    for item in items:
        if item.path.stem in SLOW or "browser" in item.fixturenames:
            item.add_marker(pytest.mark.slow)
    place = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(place)))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish():
    """Modules and tests live until the end: later garbage collections skip them."""
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    gc.enable()


@pytest.fixture(autouse=True)
def check_process():
    """No test changes the priority of its process, as video encoders do, or its folder."""
    yield
    assert os.sched_getscheduler(0) == SCHEDULING
    assert os.getcwd() == FOLDER


@pytest.fixture(scope="session")
def test_data() -> Path:
    """The folder of real frames, videos and metadata; skips where it is absent."""
    if not DATA.is_dir():
        pytest.skip(f"no test data at {DATA}; set STEADYEYE_TEST_DATA")
    return DATA


@pytest.fixture
def ten(tmp_path):
    """A class file of ten classes."""
    path = tmp_path / "ten.txt"
    path.write_text("\n".join(f"class {i}" for i in range(10)))
    return str(path)


@pytest.fixture(scope="module")
def own_cache(tmp_path_factory):
    """A separate cache for exports of models, for the file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def built_lite0():
    """EfficientNet-Lite0 by its options, each built, exported and compared with torch once."""
    from steadyeye.models.backends import efficientnet_lite0

    return cache(efficientnet_lite0.efficientnet_lite0)


@pytest.fixture(scope="module")
def one_lite0(built_lite0):
    """The runs of a file share the network in their specs, because a build takes a second."""
    from steadyeye.models.backends import efficientnet_lite0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(efficientnet_lite0, "efficientnet_lite0", built_lite0)
        yield


@pytest.fixture(scope="session")
def torchvision():
    """torchvision over any torch, for tests that use it or a library that imports it."""
    from torchvision_ops import torchvision

    return torchvision


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium; skips where there is none."""
    playwright = pytest.importorskip("playwright.sync_api")
    if not CHROMIUM.exists():
        pytest.skip(f"no Chromium at {CHROMIUM}; install the package chromium")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def all_windows(browser):
    """Windows that the tests of a file use in turn."""
    from page_checks import Windows

    return Windows(browser)


@pytest.fixture
def windows(all_windows):
    """`windows.open(address)` opens a page in a window that is reused after this test."""
    yield all_windows
    all_windows.clear()
