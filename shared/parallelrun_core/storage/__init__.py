"""Users' data, wherever they are: the one way in which our processes list, read and publish them.

    location.py     what may be written where a path may stand
    schemes.py      the schemes of URLs, a row for each
    supported.py    what of that is supported, and the path that stands for it
    url_flaws.py    URLs that no job may have
    path_rule.py    which paths and URLs a job may use
    readable_jobs.py  which jobs have outputs that it can read
    globs.py        the one matcher of glob patterns
    leftovers.py    files that programs leave beside data, and that a job leaves out
    interface.py    what a storage does: `Storage`, and what it hands out
    stores.py       which storage a location belongs to: a new kind is an entry here and in `schemes.py`
    local/          files that this machine reaches by a path; a new kind is a folder beside it
    objects/        objects of stores, and single files of web servers

Checkers, planners and readers ask `storage_of(path)`, and never what kind it is. A call for each file would cost
as much as listing it does, so a listing yields the names of a whole page at once.

Two things are not behind it. The job folder (`core/folder`) stays on the volume that all nodes share. And a worker gets
local paths, because it has neither our libraries nor any credentials: what is elsewhere is staged by the agent before
it hands a mini-batch over (`parallelrun_agent/staging`), of a table only the parts that the mini-batch reads. So the
readers in `parallelrun_worker` open files by themselves; their `tables/elsewhere.py` knows which parts are here.
"""
