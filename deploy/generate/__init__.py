"""Generated files of deploy/: the Helm chart from the kustomizations, roles from the table of rights.

./dev run python -m deploy.generate            # writes them
./dev run python -m deploy.generate --check    # names those that differ
"""
