"""One worker process of `lacuna serve`: the application on a socket that its parent opened."""

from __future__ import annotations

import argparse
import os
import socket
import sys

from service.api import logs
from service.api.server import Server
from service.main import create_app
from service.settings import Settings


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--listen-fd", type=int, required=True)
    parser.add_argument("--leash-fd", type=int, required=True)
    args = parser.parse_args()
    settings = Settings.from_environment(os.environ)
    logs.configure(settings)
    listener = socket.socket(fileno=args.listen_fd)
    listener.setblocking(False)
    Server(create_app(settings), settings, args.leash_fd).run([listener])
    return 0


if __name__ == "__main__":
    sys.exit(main())
