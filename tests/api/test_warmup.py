import subprocess
import sys
from pathlib import Path

# Run apart: in this process other tests have compiled everything already.
PLAY = """
import asyncio, sys
import numpy as np
from service.api.warmup import warm_up
from service.engine.registry import Engines
from service.learner import Arms
from service.store.connect import connect

warm_up()


def compiled():
    kernels = [
        kernel
        for name, module in list(sys.modules.items()) if name.startswith("service")
        for kernel in vars(module).values() if hasattr(kernel, "nopython_signatures")
    ]
    return {(kernel.__name__, signature) for kernel in kernels for signature in kernel.signatures}


before = compiled()


async def play(url):
    client = connect(url)
    engines = Engines(client)
    await engines.start()
    random = np.random.default_rng(0)
    for policy in ("clbbf", "thompson", "oful"):
        for preset in ("practical", "paper"):
            name = f"{policy}-{preset}"
            given = {"dimension": 7, "policy": policy, "preset": preset}
            await engines.put(name, given)
            for number in range(10):
                x = random.normal(size=(6, 7))
                x[random.random(x.shape) < (0.1, 0.5, 0.9)[number % 3]] = np.nan
                arms = [Arms.of(x), Arms.of(x[:2])]
                chosen = await asyncio.gather(*(
                    engines.use(name, lambda engine: engine.select(one, list("abcdef"), None))
                    for one in arms
                ))
                for one in chosen:
                    await engines.use(name, lambda engine: engine.reward(one.event_id, 1.0))
    await engines.stop()
    await client.aclose()


asyncio.run(play(sys.argv[1]))
for late in sorted(map(str, compiled() - before)):
    print(late)
"""


def test_no_request_waits_for_a_compiler(running_store):
    done = subprocess.run(
        [sys.executable, "-c", PLAY, running_store.url],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
