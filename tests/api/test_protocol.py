"""Requests as they come over the wire: the short way and the long way give the same answers."""

import json
import socket

BODY = b'{"arms": [{"features": [1.0, null]}], "dry_run": true, "learner": "on-the-wire"}'
HEAD = b"POST /select HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
PLAIN = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
LIVE = b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n"


def connected(running) -> socket.socket:
    host, port = running.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=10.0)


def answers(connection: socket.socket, count: int) -> list[tuple[bytes, bytes]]:
    """Heads and bodies of so many answers."""
    found = []
    data = b""
    while len(found) < count:
        head, end, rest = data.partition(b"\r\n\r\n")
        length = 0
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        if end and len(rest) >= length:
            found.append((head, rest[:length]))
            data = rest[length:]
            continue
        part = connection.recv(65_536)
        assert part, "the connection was closed"
        data += part
    return found


def test_plain_and_chunked_bodies_get_the_same_answer(running):
    with connected(running) as one:
        for message in (PLAIN, CHUNKED, PLAIN):
            one.sendall(message)
            [(head, body)] = answers(one, 1)
            assert head.startswith(b"HTTP/1.1 200 OK\r\n")
            assert b"\r\ndate: " in head
            assert b"\r\ncontent-type: application/json\r\n" in head
            assert b"\r\nx-request-id: " in head
            assert json.loads(body)["round"] == 1


def test_pipelined_requests_are_answered_in_order(running):
    with connected(running) as one:
        one.sendall(PLAIN + LIVE + PLAIN + PLAIN + CHUNKED + LIVE)
        found = [json.loads(body) for _, body in answers(one, 6)]
    assert ["status" in body for body in found] == [False, True, False, False, False, True]


def test_a_request_may_come_in_small_pieces(running):
    with connected(running) as one:
        for start in range(0, len(PLAIN), 7):
            one.sendall(PLAIN[start : start + 7])
        [(head, _)] = answers(one, 1)
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")


def test_a_caller_may_ask_for_leave_to_continue(running):
    with connected(running) as one:
        one.sendall(HEAD + b"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n" % len(BODY))
        assert one.recv(1_000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        one.sendall(BODY)
        [(head, _)] = answers(one, 1)
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")


def test_a_connection_is_closed_for_those_who_want_it(running):
    for message in (
        PLAIN.replace(b"Host: x\r\n", b"Host: x\r\nConnection: close\r\n"),
        PLAIN.replace(b"HTTP/1.1", b"HTTP/1.0"),
    ):
        with connected(running) as one:
            one.sendall(message)
            [(head, _)] = answers(one, 1)
            assert b"\r\nconnection: close" in head
            assert one.recv(100) == b""


def test_an_answer_without_a_body_comes_at_once(running):
    with connected(running) as one:
        one.sendall(b"HEAD /select HTTP/1.1\r\nHost: x\r\n\r\n")
        assert one.recv(1_000).startswith(b"HTTP/1.1 405 ")


def test_a_caller_that_hangs_up_harms_nobody(running):
    for cut in (len(HEAD), len(PLAIN) - 5, len(PLAIN)):
        with connected(running) as one:
            one.sendall(PLAIN[:cut])
    with connected(running) as one:
        one.sendall(PLAIN)
        assert answers(one, 1)
    assert "Traceback" not in "".join(running.logged)


def test_a_caller_that_offers_http_2_is_served_all_the_same(running):
    """As Java's HttpClient and `curl --http2` do by default, with every request."""
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAA\r\n"
    head = HEAD + offer + b"Content-Length: %d\r\n\r\n" % len(BODY)
    get = b"GET /health/live HTTP/1.1\r\nHost: x\r\n" + offer + b"\r\n"
    with connected(running) as one:
        one.sendall(head + BODY)
        [(answer, body)] = answers(one, 1)
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
        assert json.loads(body)["round"] == 1
        one.sendall(head)
        one.sendall(BODY[:10])  # the rest comes later
        one.sendall(BODY[10:] + get + head + BODY + PLAIN)
        found = [json.loads(body) for _, body in answers(one, 4)]
        assert ["status" in body for body in found] == [False, True, False, False]
    put = b"PUT /learners/offered HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    with connected(running) as one:
        message = put + offer + b"Content-Length: 16\r\n\r\n" + b'{"dimension": 2}'
        for start in range(0, len(message), 23):
            one.sendall(message[start : start + 23])
        [(answer, _)] = answers(one, 1)
        assert answer.startswith(b"HTTP/1.1 201 ")
        one.sendall(b"DELETE /learners/offered HTTP/1.1\r\nHost: x\r\n\r\n")
        assert answers(one, 1)[0][0].startswith(b"HTTP/1.1 204 ")


def test_a_tunnel_is_refused(running):
    with connected(running) as one:
        one.sendall(b"CONNECT elsewhere:443 HTTP/1.1\r\nHost: elsewhere:443\r\n\r\n")
        [(answer, body)] = answers(one, 1)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["status"] == 400
