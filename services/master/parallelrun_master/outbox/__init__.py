"""The outbox of ends of jobs: a webhook to the URL that wants to know (`parallelrun_master.notices`), and its trace to
a collector (`parallelrun_master.traces`).

entries.py    who gets the end of a job, and a small file on the volume for each, in one folder for each kind: written
              before the end is recorded, so that any master finds it, whoever has died and whatever Redis has forgotten
watch.py      a master looks which are due, and starts a process that delivers them, however slow that is
delivery.py   that process takes one: the end that is meant, and when to try again
"""
