"""What looks like a storage account: uploads of clients, and logs and outputs of jobs."""
