"""The replay of many workloads under many policies at once: the exact HPA and `decide` as arithmetic on arrays.

A lane is one workload under one policy; arrays run over lanes, and time runs outside. Property tests hold every lane to
the scalar `after_minute` and `decide`, digit by digit. What this room does not know it refuses by name (`covers`), and
the scalar replay answers instead.
"""
