"""The yardsticks: what a service costs that does nothing.

`bare_fastapi` is what most people would write: a body model, a constant in return. `raw_asgi` is as
little as uvicorn can be asked to do.
"""

from __future__ import annotations

import argparse
import socket
from typing import Any

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

ANSWER = {
    "event_id": "imp-8f2c",
    "learner": "default",
    "arm": "7",
    "index": 7,
    "round": 812,
    "probability": 1.0,
    "model_version": 790,
    "degraded": False,
}


class Arm(BaseModel):
    id: str | None = None
    features: list[float | None]
    mask: list[int] | None = None


class Select(BaseModel):
    learner: str = "default"
    event_id: str | None = None
    arms: list[Arm]
    explain: bool = False


class Reward(BaseModel):
    learner: str = "default"
    event_id: str
    reward: float


def bare_fastapi() -> FastAPI:
    app = FastAPI()

    @app.post("/select")
    async def select(body: Select) -> dict[str, Any]:
        return ANSWER

    @app.post("/reward")
    async def reward(body: Reward) -> dict[str, Any]:
        return {"event_id": "imp-8f2c", "status": "recorded"}

    return app


async def raw_asgi(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body"):
        pass
    body = b'{"event_id":"imp-8f2c","learner":"default","arm":"7","index":7,"round":812}'
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve a yardstick on a free port.")
    parser.add_argument("app", choices=("fastapi", "asgi"))
    app: Any = bare_fastapi() if parser.parse_args().app == "fastapi" else raw_asgi
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(2_048)
    print(f"ready at http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    config = uvicorn.Config(
        app,
        loop="uvloop",
        http="httptools",
        lifespan="off",
        interface="asgi3",
        access_log=False,
        log_level="warning",
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
