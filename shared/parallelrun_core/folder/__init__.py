"""What a job leaves on the volume: its folder, the logs in it, and who may write them."""
