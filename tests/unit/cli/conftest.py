from tests.support.evidence import evidence_once

__all__ = ["evidence_once"]
