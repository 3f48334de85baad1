"""Datastores: places in object stores with a name, and with the name of the credentials for them.

    definition.py     what a datastore is: the fields of a definition, and the address that it stands for
    document.py       from a user's document to a definition; it has no place for a secret
    bound_secrets.py  the bucket that a secret is for
    credentials.py    what is in the file of secrets that a datastore refers to (`core/service/secret_sources/`)
    registry.py       what this process knows of both, as it is now

A job names `azureml://datastores/NAME/paths/PATH`, which stays so in its folder and in messages: so it always says
which credentials are meant, and never has them. Only masters, agents and concatenators read secrets; API and workers
don't.
"""
