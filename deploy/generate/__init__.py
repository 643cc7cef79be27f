"""What of deploy/ is made: the Helm chart from the kustomizations, roles from the table of rights.

./dev run python -m deploy.generate            # writes them
./dev run python -m deploy.generate --check    # says which are not as they should be
"""
