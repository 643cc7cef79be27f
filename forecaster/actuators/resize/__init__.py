"""Sizes of pods: running ones in place, new ones by the webhook. Plans, and the requests that carry them out."""
