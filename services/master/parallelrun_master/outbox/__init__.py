"""The outbox of ends of jobs: a webhook to the URL that wants to know, a trace to a collector, and whatever else is in
`parallelrun_master.destinations`.

entries.py    a small file on the volume for each end and destination, in one folder for each destination: written
              before the end is recorded, so that any master finds it, whoever has died and whatever Redis has forgotten
watch.py      a master looks which are due, and starts a process that delivers them, however slow that is
delivery.py   that process takes one: the end that is meant, and when to try again
"""
