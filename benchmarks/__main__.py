"""Everything that is measured, in one run: `make bench`."""

from benchmarks import draft
from benchmarks.timing import microseconds, show

HISTORY = 500


def main() -> None:
    lengths = (0, HISTORY)
    times = microseconds(
        {(turns, name): work for turns in lengths for name, work in draft.contenders(turns).items()}
    )
    short, long = (
        {name: figure for (turns, name), figure in times.items() if turns == length}
        for length in lengths
    )
    show(
        "One draft: decode, rules, reduce, encode; ten questions open",
        {"no history": short, f"{HISTORY} turns": long},
        baseline="session-server",
    )
    growth = long["session-server"] / short["session-server"]
    print(f"session-server with {HISTORY} turns of history: ×{growth:.2f} the time without")


main()
