"""Waiting: why a job, or one of its mini-batches, doesn't run now, and how long that will take.

| module | what |
|---|---|
| `situation` | reads what bears on a job: its state, its nodes, other jobs there |
| `conditions` | checks, one for each thing that a job needs before it runs, and when another one gives a slot |
| `mini_batch` | the checks of one mini-batch |
| `pipelines` | the steps of a pipeline |
| `waits` | the answers: one for lists of conditions, one for what a job waits for |
"""
