"""The command line: `gosprl --help`."""


def main() -> None:
    """The `gosprl` command."""
    from gosprl.cli.app import main as run

    run()
