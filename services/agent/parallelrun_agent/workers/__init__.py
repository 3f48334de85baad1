"""The processes of workers: started, communicated with, ended with all that they leave behind."""
