"""logs/readme.txt: what is where, for whoever opens the folder."""

README = """What is where in this folder. Times are UTC. A line of the engine's logs is
time|LEVEL|process id|thread|message.

Open these in this order; a file exists once there is something in it:

job_result.txt                            how the job ended, and why: first cause, most common errors, what to open next
job_error.txt                             why the job failed, in short; only if it did
job_progress_overview.<yyyymmddhh>.txt    progress over time: scheduling, processing, concatenation
warnings.txt                              what a user should know of the data: values that were read in another way than
                                          they stand in the file, files that were skipped; with what to write in the job
failed_items.csv                          each item that has failed for good, and why; up to 100,000 of them
user/error.txt                            the errors of the entry script by kind, the most common ones first
user/error/<node>/<process>.txt           every error of the entry script, with its traceback

From the entry script:

user/stdout/<node>/<process>.stdout.txt   what it printed, and its logging
user/stderr/<node>/<process>.stderr.txt   the same for stderr; where a worker hung that was killed for a timeout
user/entry_script_log/<node>/<process>.log.txt    what EntryScript().logger wrote
user/metrics/<node>/<process>.jsonl       what it logged as metrics: a line of JSON each
user/files/<node>/<process>/              files that it wrote below logs/ in its working folder

How the time was spent:

sys/job_report/processed_mini-batches.csv a row for each try of a mini-batch and each of its phases. Mini-batches:
                                          distinct ids; done: ids with a row RUN_DONE; retried: Picked Count above 1
sys/job_report/process_summary.csv        the same summed up by process
sys/job_report/node_summary.csv           the same summed up by node
sys/metrics/<timestamp>/progress.csv      the progress as a table, one for each term of a leader

How the nodes were used (resource_monitor_interval; 0: not at all):

sys/perf/<node>/node_resource_usage.csv       CPU, memory, disk and network of the node
sys/perf/<node>/node_disk_usage.csv           how full its disks were
sys/perf/<node>/processes_resource_usage.csv  CPU, memory and disk of each worker
sys/perf/<node>/processes_cpu_memory_usage/<yyyymmddhh>/processes_<minute>    all processes of the node, once a
                                              minute, by CPU and by memory; those of the last hours are kept

What was read, of object stores and of the disks and NFS of folders:

sys/storage/<node>.<process>.csv          requests, bytes, latencies and failures by store; by the master, by each node
                                          and by the concatenator

The engine itself:

sys/master_role.<term>.txt                scheduling and leading; one file for each term of a leader
sys/node/<node>/<process>.txt             one worker: each mini-batch picked, loaded, run, done
sys/node/<node>/<process>.stdout.txt      what was printed past Python: by libraries in other languages, and by
sys/node/<node>/<process>.stderr.txt      processes that the script started without redirecting their output
sys/node/<node>/<process>.stdout.marks    when the script has printed what, and for which mini-batch
sys/node/<node>/<process>.profile         with profiling_module: for pstats and its viewers
sys/node/<node>/<process>.profile.json    the same as data: parallelrun job profile
sys/stacks/<node>.json                    where its workers were when somebody last asked: parallelrun job stacks
sys/image.txt                             how the image of the nodes was built, if the job brings a Dockerfile
sys/node/<node>/environment.txt           how the Python of the workers was built, if the job asks for one
sys/error/, sys/warning/                  copies of the errors and warnings in the engine's logs

No file grows without limit: one that was cut off says so in its last line.
"""
