print("Hello Python World...\nI'm component C :-)")
