"""Writes the reference page from the folders: a new plugin file is documented by being there."""

from pathlib import Path

from mkdocs.structure.files import File

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "steadyeye"
KINDS = {
    "models": "Models",
    "sources": "Sources",
    "metrics": "Metrics",
    "analyses": "Analyses",
    "degrade": "Degradation operators",
    "probes": "Probes",
}
TYPES = {
    "Python interface": ["api"],
    "Core": ["core.types", "core.table", "core.pm_sets", "core.intervals", "core.blocks"],
    "Degradation": ["degradation.operators", "degradation.search", "degradation.moved"],
    "Training": ["training.augmentation"],
    "Probing": ["probing", "probing.targets", "probing.subject", "probing.trials"],
    "Reviewed sets": ["core.reviewed"],
    "Detection": ["core.boxes", "detection.matching", "detection.average_precision"],
    "Mining": ["mining.causes", "mining.candidates", "mining.novelty"],
    "Embedding": ["embedding.thinness", "embedding.crops", "embedding.spots"],
    "Measurement": ["measurement.pixels", "measurement.motion", "measurement.logistic"],
    "Preprocessing": ["images.preprocessing"],
    "Class lists and maps": ["classes.known", "classes.mapping"],
    "Labels and cuts of videos": ["footage.sidecar", "footage.cuts"],
    "Answers along time": ["sequences.runs", "sequences.changes", "sequences.windows"],
}


def on_files(files, config):
    """Adds reference.md to the site."""
    lines = ["# Reference", "", "Written from the docstrings of the code.", ""]
    for title, modules in TYPES.items():
        lines += [f"## {title}", ""]
        for module in modules:
            lines += [f"::: steadyeye.{module}", ""]
    for kind, title in KINDS.items():
        lines += [f"## {title}", ""]
        names = (file.stem for file in sorted((PACKAGE / kind).glob("*.py")))
        for name in names:
            if not name.startswith("_"):
                lines += [f"::: steadyeye.{kind}.{name}.{name}", ""]
    files.append(File.generated(config, "reference.md", content="\n".join(lines)))
    return files
