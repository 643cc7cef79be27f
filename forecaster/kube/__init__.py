"""The cluster's API server: one client for every part that reads, asks for reviews or writes there.

`config` says where it is and with which credentials, `load` is the official loader in a process of its own, `client`
decodes what comes over `connections`, `reviews` and `objects` are wire types. What answers mean is not decided here.
"""
