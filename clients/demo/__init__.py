"""A simulated ad market in front of a real service: `lacuna demo`."""
