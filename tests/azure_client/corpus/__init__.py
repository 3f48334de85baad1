"""Documents that the client sends: each must mean what it means through our command line."""
