'''Explanations of a detector's confident mistakes: the interface and the parts of probes.

`steadyeye explain` evaluates the data, picks *targets* from the sealed detections (`targets`:
confident mistakes, and as control ordinary correct detections) and, for each analysis asked for,
builds a *probe*: a source of changed images that the same detector is then asked about, by the
same runner, into a sealed cell of the same run folder. The analysis is a pure function of that
cell, so a report is made again without the model.

A probe is a file in `explain/probes/`; the analysis of the same name reads it::

    # explain/probes/patch_shuffle.py
    def patch_shuffle(subject: Subject, repeats: int = 10) -> Probe:
        """Shuffled insides of boxes."""
        steps = [{"repeat": repeat} for repeat in range(repeats + 1)]
        return Probe(Trials(subject, "patch_shuffle", steps, change, settings))

    # report/analyses/patch_shuffle.py
    @needs("target", "patch_shuffle")
    def patch_shuffle(evaluated: Sequence[Evaluated]) -> Section | None: ...

The arguments in `--analyses "patch_shuffle(repeats=5)"` go to the probe; `probe='rise'` among them
takes another probe than the one of the analysis's name. An analysis without a probe of its name
takes no arguments and is asked of the plain cells (`boxes`, `detections`); so is every analysis
whose needs the plain cells meet.

- `Subject`: the detector, the data and the reference with their sealed predictions, the targets
  and the seed. `subject.sealed(name, source)` has the detector asked about any other source into a
  cell of its own and returns its predictions (the backgrounds that must qualify first).
- `Trials`: the source that most probes need: every target at every step. Step 0 should be the
  image as it is, which is what changes are measured against and what pictures show beside them.
  A probe that is no grid of targets and steps returns any `Source`. In either the columns hold
  `target` and the probe's own name, and not `truth`, `boxes` or `group`; `classes` is None, so
  that detections are over the detector's own classes.
- Samples carry the tags of `targets.tags`: `target` (the id), `cause` ("" for the control),
  `image` and `video` (what intervals resample), `x0 y0 x1 y1 own_label score`, and the step's
  own. The `group` is the target's id. A probe of whole images gives its own tags; `target` is ""
  there.
- What is measured *inside* the model (attributions, gradients) is a sample's `measure(image)`,
  with NaN for its values among the tags: floats, or one float32 vector of a fixed length a value,
  read back as tags of (n, m). `Probe(source, model)` asks another model instead of the detector:
  embeddings are the scores of a `Model` whose classes are the dimensions, read back as
  `Predictions.scores`.
- Randomness comes from `core.seeds.stream(subject.seed, probe, target.id, step)` alone, so that
  an image is the same in any order, batch, process or machine; a source's `fingerprint` changes
  with whatever changes its images. Then a cell is resumed after a crash as any other.
- `predictions.probe` holds the settings: `name`, `data` and `reference` (each a `name` and a
  `fingerprint`), `model`, `score`, `limit`, `seed` and the probe's own as `settings`.
'''
