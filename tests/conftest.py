"""What every test stands on: hypothesis profiles and the check of `proves` marks."""

import os

from hypothesis import settings

pytest_plugins = ["pytester", "tests.measurements", "tests.requirements_check"]

settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile("ci", max_examples=500, deadline=None, derandomize=False, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "dev")
