"""The provisioner: asks engines for nodes while jobs need them, and gives back those that nobody needs."""
