"""Everything that is measured, in one run: `make bench`."""

from benchmarks import draft
from benchmarks.timing import microseconds, show

HISTORY = 500


def main() -> None:
    short = microseconds(draft.contenders(turns=0))
    long = microseconds(draft.contenders(turns=HISTORY))
    show(
        "One draft: decode, rules, reduce, encode; ten questions open",
        {"no history": short, f"{HISTORY} turns": long},
        baseline="session-server",
    )
    growth = long["session-server"] / short["session-server"]
    print(f"session-server with {HISTORY} turns of history: ×{growth:.2f} the time without")


main()
