"""The command line: `gosprl --help`."""


def main() -> None:
    """Run the `gosprl` command."""
    from gosprl.cli.app import main as run

    run()
