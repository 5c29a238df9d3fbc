from hypothesis import settings

# Machines are noisy: no test may fail for being slow.
settings.register_profile("lacuna", deadline=None, print_blob=True)
settings.load_profile("lacuna")
