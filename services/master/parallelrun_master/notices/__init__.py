"""Webhooks: requests that tell a URL that a job has ended (`notify` in its spec). One of them is a notice.

A notice is in the outbox (`parallelrun_master.outbox`) from the moment before the end of its job is recorded until
somebody has accepted it, or it is given up. What it says is derived from the recorded end (`message`). A process sends
those that are due (`delivery`, `sending`), and can be as slow as it likes.
"""
