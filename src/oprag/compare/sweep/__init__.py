"""Sweeps: budgets and orders over one ranking, what can be said of them, and what is worth deploying."""
