"""Passes over plans: each takes a plan to one that means the same and costs less. `squall.planners.rete` lists them."""
