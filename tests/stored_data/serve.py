"""The server under another wall clock: `python -m tests.stored_data.serve MILLISECONDS serve …`

Stored data must look as young as it was when it was written: clients, outcomes and history expire.
"""

import sys
import time
import types

from session_server.cli.program import main
from session_server.log.sqlite import claim

real = time.time_ns

if __name__ == "__main__":
    offset = int(sys.argv.pop(1)) * 1_000_000
    time.time_ns = lambda: real() + offset
    # Compared with the times of files, which stay real.
    claim.time = types.SimpleNamespace(time_ns=real)  # type: ignore[assignment]
    main()
