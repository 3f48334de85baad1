"""The concatenator: puts the committed segments of a job together, in mini-batch order, into one file."""
