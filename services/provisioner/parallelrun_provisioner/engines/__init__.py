"""The engines that provide nodes: one module or package each, named like the kind of compute, with a class
named like it, as `DockerEngine` in `docker`.

`interface.py` says what an engine does. All deciding is elsewhere (`parallelrun_provisioner.policy`): an engine only
carries out, and says how things stand. `image_settings.py` is what engines share whose nodes are of an image.
"""
