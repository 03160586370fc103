"""`python -m forensics` is `dsforensics`."""

from forensics.cli import main

main()
