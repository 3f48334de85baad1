def run(mini_batch):
    raise ValueError("the model does not fit")
