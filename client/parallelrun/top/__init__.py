"""A running job on one screen: what is to be shown (`snapshot`), and how (`screen`)."""
