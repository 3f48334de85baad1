"""The people of a cluster: who makes a request, by what token, and what is whose.

person.py    the person of a request, and the scopes of their token
issued.py    tokens that the server has made, stored as hashes
proxies.py   people who have signed in at a proxy
oidc.py      people who show a token of an OpenID Connect provider
quotas.py    how much of a cluster a person may use
access.py    decides what a person may see and change
"""
