"""Rules: the language, the matcher, the causal graph, the ranking. Packs are data; this package knows no archives and no database."""
