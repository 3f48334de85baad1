"""Shims for Azure ML's first SDK: what scripts import from `azureml.core`, as far as it means something in a job.

The folder `for_users` has modules of these names, which are used only where the environment has no real ones. What
isn't here says so when it is imported or called, and what to do instead.
"""
