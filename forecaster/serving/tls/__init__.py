"""Certificates and trust of the secure door, reloaded when they change."""
