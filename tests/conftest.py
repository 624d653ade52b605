"""Annotations of the whole package are checked at run time, and dtypes are promoted strictly.

The processes that run the tests share compiled programs. Real data is used if it lies beside the project.
"""

import os
import signal
from pathlib import Path

CACHE = Path(__file__).resolve().parents[1] / ".pytest_cache" / "jax"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE))  # JAX reads these when it is imported
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
os.environ["JAX_NUMPY_DTYPE_PROMOTION"] = "strict"  # here and in processes that tests start

import jax  # noqa: E402
import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402
from jaxtyping import install_import_hook  # noqa: E402

install_import_hook("deepwell", "runtime_types.check")  # before anything imports the package

settings.register_profile("same every time", derandomize=True)
settings.load_profile("same every time")

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as in the background of a shell, where Ctrl-C is for others
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="module")
def forget_compiled_programs():
    """Each compiled program maps pieces of memory, and a process may map so many; the cache on disk remembers them."""
    yield
    jax.clear_caches()


BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
if "DEEPWELL_DATA" not in os.environ and BESIDE.is_dir():
    os.environ["DEEPWELL_DATA"] = str(BESIDE)
