"""Leading one job, from its first stage to its last (`policy/stages.py`).

leader.py            from stage to stage, in one thread
job_context.py       the job, as all stages share it
recovery.py          what earlier terms have decided, and what Redis has forgotten
processing.py        the main stage, round after round
intake.py            outcomes and reports of nodes
watchdog.py          mini-batches that nobody has
node_watch.py        nodes that are lost, and those that may work for the job
compute_watch.py     whether the job has the nodes that it waits for
control_watch.py     whether people have paused it
disk_check.py        whether nodes have room for what is copied there
finishing.py         the last stages: output, result, cleaning up
output_requests.py   concatenations that the leader asks for
leftovers.py         what concatenations have left that never published
"""
