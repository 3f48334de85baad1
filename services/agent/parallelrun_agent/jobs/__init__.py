"""The jobs of a node: which ones it works for, and what belongs to each of them.

work_finder.py    finds jobs that have work
slot_sharing.py   gives the node's slots to them
joining.py        puts together what a node has for a job
node_job.py       a job on this node
session.py        what is opened again whenever its lease was lost
job_driver.py     does what the job machine has decided (`policy/job_machine.py`)
at_work.py        tells Redis what the workers do
"""
