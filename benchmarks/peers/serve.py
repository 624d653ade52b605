"""The protocol of the measured systems: a line in is a number of iterations to run, a line out is what they took.

Each system runs in its own process and environment. ``serve`` first reports how long the system took to get ready, then
waits for numbers; an empty line ends it. This file needs only Python and numpy.
"""

import json
import resource
import sys
import time


def serve(run, versions, prepared_in):
    """Answer the lines on standard input; ``run(count)`` runs so many iterations and returns when they are done."""
    started = time.perf_counter()
    run(1)
    say({"versions": versions, "prepared": prepared_in, "first": time.perf_counter() - started})
    for line in sys.stdin:
        if not line.strip():
            break
        count = int(line)
        started = time.perf_counter()
        run(count)
        seconds = (time.perf_counter() - started) / count
        say({"seconds": seconds, "peak_memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024})


def say(message):
    """One line of JSON."""
    print(json.dumps(message), flush=True)


def shape():
    """Depth, rows, columns, width, inducing points and minibatch size, from the first argument."""
    return tuple(int(word) for word in sys.argv[1].split(","))


def table(rows, columns):
    """A smooth function of noisy inputs, in single precision."""
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(rows)
    return X.astype(np.float32), ((y - y.mean()) / y.std()).astype(np.float32)[:, None]
