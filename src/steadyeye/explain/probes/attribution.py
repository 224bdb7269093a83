"""The attribution that a detector allows."""

from steadyeye.core.abilities import Explainable
from steadyeye.core.plugins import load
from steadyeye.explain.context import Probe, Subject


def attribution(subject: Subject) -> Probe:
    """Integrated gradients of detectors with gradients, and RISE of all others.

    Every number names its method. Each method has its own settings, which are given with its name:
    see `integrated_gradients` and `rise`.

    Example: `attribution`
    """
    inside = isinstance(subject.model, Explainable) and subject.model.fix_candidates is not None
    probe: Probe = load("probes", "integrated_gradients" if inside else "rise")(subject)
    return probe
