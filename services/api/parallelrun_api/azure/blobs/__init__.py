"""The facade of a storage account: uploads of clients, and logs and outputs of jobs."""
