"""Notices: requests that tell a URL that a job has ended (`notify` in its spec).

A notice is *owed* from the moment before the end of its job is recorded until somebody has accepted it, or it is given
up: a small file on the volume says so (`owed`), so that any master finds it, whoever has died and whatever Redis has
forgotten. What it says is derived from the recorded end (`message`). A master only starts a process for those that are
due (`teller`), which sends them (`delivery`, `sending`) and can be as slow as it likes.
"""
