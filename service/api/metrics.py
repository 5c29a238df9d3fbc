from __future__ import annotations


class Metrics:
    def answered(self, endpoint: str, status: int, elapsed_s: float) -> None:
        pass
