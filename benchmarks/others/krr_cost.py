"""CPU seconds of KRR's simple strategy for each of some workloads: `python krr_cost.py SOURCE URL NAMES.json`.

SOURCE is a checkout of github.com/robusta-dev/krr; NAMES.json has [namespace, workload, [pod, ...]] for each. Its own
questions, decoding and arithmetic, with its defaults; what it asks the API server is left out. One JSON object to
stdout. It needs nothing of this repository, so that it runs in an environment of its own.
"""

import asyncio
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def main() -> None:
    source, url, names = sys.argv[1:]
    sys.path.insert(0, source)
    from prometrix import PrometheusConfig, get_custom_prometheus_connect  # noqa: PLC0415
    from robusta_krr.core.models.allocations import ResourceAllocations, ResourceType  # noqa: PLC0415
    from robusta_krr.core.models.config import Config  # noqa: PLC0415
    from robusta_krr.core.models.objects import K8sObjectData, PodData  # noqa: PLC0415
    from robusta_krr.strategies.simple import SimpleStrategy, SimpleStrategySettings  # noqa: PLC0415

    given = {"namespaces": ["shop"], "resources": ["Deployment"], "other_args": {}}
    config = Config(format="json", show_cluster_name=False, strategy="simple", log_to_stderr=True, **given)
    Config.set_config(config)
    strategy = SimpleStrategy(SimpleStrategySettings())
    none = ResourceAllocations(requests=dict.fromkeys(ResourceType), limits=dict.fromkeys(ResourceType))
    prometheus = get_custom_prometheus_connect(PrometheusConfig(url=url))
    loaders = [metric(prometheus, "Prometheus", ThreadPoolExecutor(config.max_workers)) for metric in strategy.metrics]
    objects = [
        K8sObjectData(
            cluster=None,
            name=name,
            container="app",
            pods=[PodData(name=pod, deleted=False) for pod in pods],
            hpa=None,
            namespace=namespace,
            kind="Deployment",
            allocations=none,
            labels={},
            annotations={},
        )
        for namespace, name, pods in json.loads(Path(names).read_text(encoding="utf-8"))
    ]

    async def scanned(workload: K8sObjectData) -> object:
        settings = strategy.settings
        data = await asyncio.gather(
            *(each.load_data(workload, settings.history_timedelta, settings.timeframe_timedelta) for each in loaders)
        )
        return strategy.run({type(each).__name__: values for each, values in zip(loaders, data, strict=True)}, workload)

    async def scan() -> list[object]:
        return [await scanned(workload) for workload in objects]

    begin = time.process_time()
    results = asyncio.run(scan())
    known = [
        result for result in results if all(each.request == each.request and each.request for each in result.values())
    ]
    json.dump({"seconds": (time.process_time() - begin) / len(objects), "known": len(known)}, sys.stdout)


if __name__ == "__main__":
    main()
