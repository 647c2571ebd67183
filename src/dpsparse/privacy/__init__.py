"""Accounting: events, their Renyi curves, calibration, guarantees, the ledger."""
