"""``python -m deepwell``: the command line."""

from deepwell.cli.main import main

if __name__ == "__main__":
    main()
