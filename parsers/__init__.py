"""Parsers: bytes of one kind of source in, typed rows out. They know no rules and nothing of the other folders."""
