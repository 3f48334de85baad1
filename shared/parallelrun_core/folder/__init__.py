"""The folder of a job on the volume, the logs in it, and who may write them."""
