"""Programs that use Lacuna: a Python client, simulation, replay and load test."""
