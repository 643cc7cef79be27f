"""Other autoscalers' own protocols over the same table: one file each, and `pages` with their addresses.

`watermark` is the recommender webhook of WatermarkPodAutoscaler, `kapacity` the ConfigMap in which Kapacity looks for
results. (KEDA's are in `keda` and `workloads`.)
"""
