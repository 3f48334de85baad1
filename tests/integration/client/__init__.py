"""The client against real sockets, processes and servers."""
