"""Renderings of forensics.result.Triage, each in a file of its own."""
