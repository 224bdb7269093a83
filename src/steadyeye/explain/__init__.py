'''Explanations of a detector's confident mistakes: the interface and the parts of probes.

`steadyeye explain` evaluates the data and selects *targets* from the sealed detections (`targets`:
confident mistakes, and as control correct detections). For each analysis it builds a *probe*: a
source of changed images on which the same detector is run, into a sealed cell of the same run
folder. The analysis is a pure function of that cell, so a report can be made again without the
model.

A probe is a file in `explain/probes/`; the analysis of the same name reads it::

    # explain/probes/patch_shuffle.py
    def patch_shuffle(subject: Subject, repeats: int = 10) -> Probe:
        """Shuffled insides of boxes."""
        steps = [{"repeat": repeat} for repeat in range(repeats + 1)]
        return Probe(ProbeGrid(subject, "patch_shuffle", steps, change, settings))

    # report/analyses/patch_shuffle.py
    @needs("target", "patch_shuffle")
    def patch_shuffle(evaluated: Sequence[Evaluated]) -> Section | None: ...

The arguments in `--analyses "patch_shuffle(repeats=5)"` are those of the probe; `probe='rise'`
selects another probe. An analysis without a probe of its name has no arguments and reads the plain
cells (`boxes`, `detections`), as does every analysis whose needs the plain cells meet.

- `Subject`: the detector, the data and the reference with their sealed predictions, the targets
  and the seed. `subject.sealed(name, source)` runs the detector on any other source, in a separate
  cell, and returns its predictions (for example on the backgrounds that must qualify first).
- `ProbeGrid`: the source that most probes need: every target at every step. Step 0 should be the
  unchanged image, with which changes are compared and which pictures show beside them. A probe
  that is no grid of targets and steps returns any `Source`. Its columns include `target` and the
  probe's own name, and not `truth`, `boxes` or `group`; `classes` is None, so that detections are
  over the detector's own classes.
- Samples have the tags of `targets.tags`: `target` (the id), `cause` ("" for the control), `image`
  and `video` (the units of resampling), `x0 y0 x1 y1 own_label score`, and those of the step. The
  `group` is the target's id. In a probe of whole images, `target` is "".
- Measurements *inside* the model (attributions, gradients) are a sample's `measure(image)`, with
  NaN for its values among the tags: floats, or float32 vectors of a fixed length, read back as
  tags of (n, m). `Probe(source, model)` runs another model instead of the detector: embeddings are
  the scores of a `Model` whose classes are the dimensions, read back as `Predictions.scores`.
- Random numbers come from `core.seeds.stream(subject.seed, probe, target.id, step)` alone, so that
  an image is the same in any order, batch, process or machine; a source's `fingerprint` changes
  with anything that changes its images. A cell can then be resumed after a crash.
- `predictions.probe` has the settings: `name`, `data` and `reference` (each a `name` and a
  `fingerprint`), `model`, `score`, `limit`, `seed` and the probe's own as `settings`.
'''
