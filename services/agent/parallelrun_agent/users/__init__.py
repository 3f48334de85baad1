"""The users that workers are: which one, and all that an agent does as one of them."""
