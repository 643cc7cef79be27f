"""How connections come in and what they may cost: accepting, handshakes, limits of size and time.

What does not belong here: who the caller is (`access`) and what is answered.
"""
