"""Two queues that wake a master or a concatenator with the id of a job, by RQ.

`wake` puts a job's id into a queue, `workers` runs a function with each id, in a process of its own, and `entries` is
what lies in between: an entry says which queue it is for and which job is meant, and nothing else in it is believed.
What RQ does beyond that is not used. Both steps are idempotent, so an entry may be lost or run twice.
"""
