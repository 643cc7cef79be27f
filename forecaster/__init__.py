"""Predictive autoscaling for Kubernetes."""
