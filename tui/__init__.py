"""The browser of cases: a Textual application over a case folder.

Nothing here reads a bundle or decides anything: a case is opened by `forensics`, and only what is on the screen is read from it, by short
queries that run beside the event loop and can be interrupted.
"""
