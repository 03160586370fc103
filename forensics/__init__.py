"""The case: bundle -> ingest -> DuckDB case file -> triage -> report; and the command line."""
