"""Advice on what would make a job faster, from the records that it writes anyway: `advise` and `curve_of`
(docs/advice.md).

A job is one parallel phase, so its time under other settings is computed, not guessed: `replay` schedules the measured
times of its mini-batches on other numbers of workers. `reading/` makes the evidence of what is in a job's folder; all
else here is pure: records in, findings out.
"""
