"""Speed and regret against peers, one command: `python -m benchmarks`."""
