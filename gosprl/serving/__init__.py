"""A server of actions: for programs that own the loop and ask what to do, in the words of the line protocol."""

from gosprl.serving.doors import serve_pipe, serve_socket
from gosprl.serving.server import Server

__all__ = ["Server", "serve_pipe", "serve_socket"]
