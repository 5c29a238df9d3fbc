"""`lacuna simulate`: synthetic environments, the Bayesian oracle, regret."""
