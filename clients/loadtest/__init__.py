"""Load on a running service, and proof that nothing was lost: `lacuna loadtest`."""
