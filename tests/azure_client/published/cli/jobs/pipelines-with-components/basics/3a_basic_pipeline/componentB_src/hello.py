print("Hello Python World...\nI'm component B :-)")
