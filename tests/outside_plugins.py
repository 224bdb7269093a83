"""Six plugins in a folder outside the package, one a kind."""

import textwrap

FILES = {
    "sources/greys.py": '''
        """Grey images, from black to white."""
        from dataclasses import dataclass
        import numpy as np
        from steadyeye.core.types import Classes, Sample


        @dataclass(frozen=True)
        class _Greys:
            n: int
            name: str = "greys"
            classes: Classes = Classes(("dark", "light"), closed=True)
            columns: tuple = ("truth",)
            notes: tuple = ()

            @property
            def fingerprint(self):
                return f"greys {self.n}"

            @property
            def ids(self):
                return [f"{i:03}" for i in range(self.n)]

            @property
            def truths(self):
                return [(int(i >= self.n / 2),) for i in range(self.n)]

            def missing(self):
                return ()

            def __len__(self):
                return self.n

            def __getitem__(self, i):
                return Sample(self.ids[i], lambda: shade(i, self.n), self.truths[i],
                              key=lambda: f"grey {i} of {self.n}")


        def shade(i, n):
            return np.full((32, 32, 3), 255 * i // max(n - 1, 1), dtype=np.uint8)


        def greys(*, n: int = 20):
            """Plain grey images, the lighter half labelled light."""
            return _Greys(n)
    ''',
    "models/brightness.py": '''
        """A classifier by brightness."""
        import numpy as np
        from steadyeye.core.types import Classes, Model
        from steadyeye.inference.function import FunctionClassifier


        def brightness(*, threshold: float = 0.5) -> Model:
            """Light where the mean of the pixels is above a threshold."""

            def score(images):
                mean = images.reshape(len(images), -1).mean(axis=1) / 255
                light = 1 / (1 + np.exp(-20 * (mean - threshold)))
                return np.stack([1 - light, light], axis=1)

            score.fingerprint = f"brightness {threshold}"
            return FunctionClassifier(score, Classes(("dark", "light")), name="brightness")
    ''',
    "operators/darken.py": '''
        """The image grows darker."""
        import numpy as np
        from steadyeye.degradation.operators import LEVELS, of_original


        def darken():
            """Each level takes a thirtieth of the brightness."""
            return of_original("darken", _darker)


        def _darker(image, level):
            return (image * ((LEVELS - level) / LEVELS)).astype(np.uint8)
    ''',
    "metrics/mean_confidence.py": '''
        """The mean confidence."""
        from steadyeye.core.types import Result, needs


        @needs()
        def mean_confidence(predictions):
            """The mean confidence over all samples that were predicted."""
            confidence = predictions.confidence[predictions.valid]
            value = float(confidence.mean()) if len(confidence) else None
            return Result("mean_confidence", value, None, None, len(confidence), "none")
    ''',
    "analyses/wrong_ones.py": '''
        """What is wrong."""
        from steadyeye.core.sections import Section, Table, Topic
        from steadyeye.core.types import needs


        @needs("truth")
        def wrong_ones(evaluated):
            """How many predictions are wrong, a row a model."""
            rows = tuple((e.predictions.model, str(int((~e.predictions.right).sum())))
                         for e in evaluated)
            table = Table("Wrong predictions", ("model", "wrong"), rows, open=True)
            return Section("How many predictions are wrong, counted by a plugin", Topic.MORE,
                           tables=(table,))
    ''',
    "probes/as_it_is.py": '''
        """The image as it is."""
        from steadyeye.probing.subject import Probe
        from steadyeye.probing.trials import Trials


        def as_it_is(subject):
            """Images as they are, asked about twice."""
            steps = [{"time": 0}, {"time": 1}]
            return Probe(Trials(subject, "as_it_is", steps, lambda image, target, step: image))
    ''',
}
NAMES = {kind: name[:-3] for kind, _, name in (file.partition("/") for file in FILES)}


def write_plugins(folder):
    """Writes the six files below a folder; returns it."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(textwrap.dedent(text).lstrip())
    return folder
