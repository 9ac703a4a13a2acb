"""What every test stands on: hypothesis profiles and the check of `proves` marks."""

import os
import signal

from hypothesis import settings

pytest_plugins = ["pytester", "tests.measurements", "tests.requirements_check"]

settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile("ci", max_examples=500, deadline=None, derandomize=False, print_blob=True)
# A run in the background may have been started with interrupts ignored, and would hand that on to
# the programs that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "dev")
