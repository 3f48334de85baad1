print("Hello Python World\nI tell a new joke each time you run me. Today's joke:\n")

import pyjokes

print(pyjokes.get_joke())

print("\nHow was it??\n\n")
