"""The ledger: the records of a job's mini-batches.

ledger.py         outcomes go into the decision log, and are counted
journals.py       finished work that only the journals of agents have
retry_log.py      failed tries that were followed by another
cost_log.py       what tries have cost
job_warnings.py   warnings about the job's data
"""
