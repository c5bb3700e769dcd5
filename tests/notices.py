"""What the library writes to stderr on its own account."""

COMPILING = "gosprl: compiling its kernels"


def without_notice(stderr):
    """The text without the line that says that kernels are compiled, which any test may be the first to need."""
    return "".join(line for line in stderr.splitlines(keepends=True) if not line.startswith(COMPILING))
