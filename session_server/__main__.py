"""`python -m session_server`: the command where its script is not on the path."""

from session_server.cli import main

if __name__ == "__main__":
    main()
