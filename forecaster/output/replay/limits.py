"""What a replay cannot know; printed with every outcome."""

REACTION = (
    "Demand is taken as it was measured and does not react: requests that were shed and not tried again, retries after "
    "a shortage, and work that slow answers put off are not in it."
)
CENSORED = (
    "What was measured while pods were at their limit is what they served, not what was asked: shortage in such "
    "minutes is understated, for every policy alike."
)
WITHIN = (
    "Within a minute demand is steady, and ready pods share it evenly; a shortage of seconds, or of one hot pod, is "
    "not seen."
)
NODES = "Pods start after the stated times whatever the nodes hold: no waiting for a node, no eviction."
PAID = "A pod is paid for from the moment it is asked for, and stops at once when it is not wanted any more."
LIMITS = (REACTION, CENSORED, WITHIN, NODES, PAID)
