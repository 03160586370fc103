"""Copies of bundles and of reports that can be sent outside: who and where is replaced by pseudonyms, what happened stays.

    names.py    the key, and the pseudonyms it gives: of the same shape, the same for the same name, not to be turned back
    forms.py    what is looked for, and what of it is a secret
    engine.py   finds and replaces in blocks of lines
    copy.py     a bundle in, an archive out
    report.py   a triage in, the same triage out
"""
