"""Small servers with known faults, each in a thread of its own."""

import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Answer = Callable[[str, dict], tuple[int, dict] | None]  # None: hang up without a word


class Stub:
    """Speaks as much HTTP as the load generator does; one thread for each connection."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.stall = threading.Lock()  # held: nobody is answered
        self.stalled_s = 0.0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.connections: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        data = b""
        try:
            while True:
                while b"\r\n\r\n" not in data:
                    data += self._more(connection)
                head, _, data = data.partition(b"\r\n\r\n")
                length = int(re.search(rb"Content-Length: (\d+)", head)[1])
                while len(data) < length:
                    data += self._more(connection)
                body, data = data[:length], data[length:]
                with self.stall:
                    pass
                found = self.answer(head.split()[1].decode(), json.loads(body))
                if found is None:
                    connection.close()
                    return
                status, said = found
                text = json.dumps(said).encode()
                connection.sendall(
                    b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s" % (status, len(text), text)
                )
        except OSError:
            connection.close()

    @staticmethod
    def _more(connection: socket.socket) -> bytes:
        part = connection.recv(1 << 16)
        if not part:
            raise ConnectionError
        return part

    def stall_once(self, after_s: float, for_s: float) -> None:
        def hold() -> None:
            time.sleep(after_s)
            with self.stall:
                began = time.perf_counter()
                time.sleep(for_s)
                self.stalled_s = time.perf_counter() - began

        threading.Thread(target=hold, daemon=True).start()

    def close(self) -> None:
        self.listener.close()
        for connection in self.connections:
            connection.close()


@contextmanager
def stub(answer: Answer) -> Iterator[Stub]:
    server = Stub(answer)
    try:
        yield server
    finally:
        server.close()


def chosen(body: dict, index: int = 0) -> dict:
    return {
        "event_id": body["event_id"],
        "arm": f"ad-{index}",
        "index": index,
        "probability": 1.0,
        "round": 1,
    }
