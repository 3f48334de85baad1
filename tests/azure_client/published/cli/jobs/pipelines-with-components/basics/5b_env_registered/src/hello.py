print("Hello Python World")
