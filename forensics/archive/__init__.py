"""Readers of archives and compressed data: each is fed a `Stream`, runs front to back, and names in the ledger what it could not give."""
