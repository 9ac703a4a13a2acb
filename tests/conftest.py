"""What every test stands on: hypothesis profiles, checks of marks, and shares of the work."""

import signal

from hypothesis import settings

from tests.effort import IS_CI

pytest_plugins = ["pytester", "tests.measurements", "tests.requirements_check", "tests.sharing_out"]

settings.register_profile("dev", max_examples=20, deadline=None)
settings.register_profile("ci", max_examples=500, deadline=None, derandomize=False, print_blob=True)
# A run in the background may have been started with interrupts ignored, and would hand that on to
# the programs that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
settings.load_profile("ci" if IS_CI else "dev")
