import os

from hypothesis import settings

# Small matrices gain nothing from threads, and on busy cores the threads wait for each other.
# Read when NumPy is first imported, which is after this.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# Machines are noisy: no test may fail for being slow.
settings.register_profile("lacuna", deadline=None, print_blob=True)
settings.load_profile("lacuna")
