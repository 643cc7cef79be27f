"""The steps of one cycle in order, and the state between cycles. No network, no clock: ports only."""
