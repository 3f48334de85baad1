import time


def run(mini_batch):
    time.sleep(120)
    return mini_batch
