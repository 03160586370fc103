"""Which fault modes of a table no rule knows: `python -m tests.bench.fault_modes MODES.tsv [DOC]`.

The table has a header and at least the columns id, fragments (JSON: alternatives, each a list of keywords in their order), generic (0 or 1)
and meaning_en. A mode is known where a rule fires on its keywords, on one line or on several, or holds them in one of its examples. The
others have to be named in the document (docs/fault-modes.md), each with its reason; generic ones need not be. Status 1 where one is missing.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path

from rules import author, pack
from rules.model import RuleSet
from rules.scan import Scanner

DOC = Path(__file__).parents[2] / "docs" / "fault-modes.md"
HEADS = ("", "[ERROR] X(1,python):2025-01-01-10:00:00.000.000 [a.cc:1]1 F:")


def known(fragments: list[list[str]], rules: RuleSet, scanner: Scanner, examples: list[str]) -> bool:
    """Whether a rule knows one of the alternatives."""
    for words in fragments:
        texts = [head + " ".join(words) for head in HEADS] + ["\n".join(words)]
        for text in texts:
            found = author.fires(scanner, rules, text)
            if found.findings or found.noise:
                return True
        if any(all(word.strip() in example for word in words) for example in examples):
            return True
    return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modes", type=Path)
    parser.add_argument("document", type=Path, nargs="?", default=DOC)
    options = parser.parse_args()
    rules = pack.load()
    scanner = Scanner.load(rules)
    examples = [example for rule in rules.rules for example in rule.examples.match]
    named = options.document.read_text(encoding="utf-8")
    with options.modes.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
    left = [row for row in rows if not known(json.loads(row["fragments"]), rules, scanner, examples)]
    missing = [row for row in left if row["generic"] == "0" and f"`{row['id']}`" not in named]
    idle = [row["id"] for row in rows if f"`{row['id']}`" in named and row not in left]
    for row in missing:
        print(f"no rule, and not named: {row['id']}  {row['fragments'][:100]}  {row['meaning_en']}")
    print(
        f"{len(rows)} modes: {len(rows) - len(left)} known to a rule, {len(left)} not, of which {sum(row['generic'] == '1' for row in left)} generic"
    )
    if idle:
        print(f"named although a rule knows them: {', '.join(idle)}")
    sys.exit(bool(missing))


if __name__ == "__main__":
    main()
