"""Histories of runs: what users do with runs, one thing after the other, in any order, and what must hold after each.

systems.py      small systems whose law is known, and which write their own diaries
lives.py        one call of the package: with what, what is done to it meanwhile, and what it left
records.py      runs as they have to be, by the diaries alone
invariants.py   what must hold of a run, a result and an answer
machine.py      the rules
defects.py      defects that can be put back, each by a patch
"""
