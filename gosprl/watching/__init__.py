"""Watch a run that another process is making, from its files alone."""

from gosprl.watching.looking import Look, watch

__all__ = ["Look", "watch"]
