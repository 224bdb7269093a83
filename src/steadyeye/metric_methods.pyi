"""The metrics as methods of a run; written by tools/write_metric_methods.py."""

from collections.abc import Sequence

from steadyeye.core.types import Result

class MetricMethods:
    def accuracy(self) -> Result:
        """The share of right predictions, of anchors if samples form pm-sets, else of labelled samples.

        Right is any of the sample's own labels. Value None on empty input.

        Example with invented predictions:

            >>> from steadyeye.testing import example_predictions
            >>> print(accuracy(example_predictions(margin=0.5)))
            accuracy 83.3 % (95 % interval 42.9–97.8 %, n = 12, among 3 classes)
        """
    def best_f1(self, iou: float = 0.5) -> Result:
        """The highest F1 over all score thresholds, over all classes together.

        `cells`: the threshold, the highest of equal ones, and precision and recall there. The threshold
        is chosen on the evaluated images, so that F1 is higher than on other images: a note gives the
        difference, and the interval is lowered by it. Every replicate of the bootstrap chooses its own
        threshold. `iou` as of `f1_at`. n images. Value None without objects.

        Example with invented predictions:

            >>> from steadyeye.testing import example_detections
            >>> print(best_f1(example_detections()))
            best_f1 93.3 % (95 % interval 70.3–99.2 %, n = 30)
        """
    def blink_rate(self, score: float = 0.5) -> Result:
        """The share of an object's frames, from its first to its last detection, without a detection.

        Detections with a score of `score` or more are linked to objects. Every frame of a gap of up to
        a second is looked up among all detections: it does not count if it has one of `score` or more,
        or if another object covers the place. `cells`: the share not detected at all, and the share
        below the threshold. n frames of objects with 5 detections or more; intervals as of `flip_rate`.
        Value None without such objects.

        Example with invented detections, missing in every tenth frame:

            >>> from steadyeye.testing import example_tracks
            >>> print(blink_rate(example_tracks()))
            blink_rate 16.1 % (95 % interval 2.5–86.7 %, n = 478)
        """
    def box_jitter(self, score: float = 0.5) -> Result:
        """The mean distance of a box's centre from its smoothed path, as a share of √area.

        The path is the least-squares parabola through the centres of a frame and the two before and
        after it; a distance above 1 counts as 1. `cells`: "size", |ln| of √area over its own parabola,
        and "pixels", the mean distance in pixels. Objects and `score`, 0…1, as of `blink_rate`; boxes
        below the threshold count as well.

        Example:
            >>> from steadyeye.testing import example_tracks
            >>> print(box_jitter(example_tracks()))
            box_jitter 0.7 % (95 % interval 0.1–84.3 %, n = 354)
        """
    def center_position_error(self, score: float = 0.5) -> Result:
        """σ of centre offsets ÷ width plus σ of those ÷ height, averaged over true objects, 0…1.

        Zhang and Wang 2016; formulas in `metrics.sequences.stability_errors`. n objects found in two
        frames or more; the interval is clustered by video. Value None without such objects. `score`:
        the lowest score of a detection, above 0.1 and below 1. Raises `UsageError` for another score.

        Example:
            >>> from steadyeye.testing import example_true_tracks
            >>> print(center_position_error(example_true_tracks()))
            center_position_error 1.6 % (95 % interval 0.3–84.4 %, n = 4)
        """
    def class_change_rate(self, score: float = 0.5) -> Result:
        """The share of consecutive detections of one object whose classes differ; n counts pairs.

        Objects and `score`, 0…1, as of `blink_rate`; of overlapping boxes, the one with the highest
        score counts.

        Example:
            >>> from steadyeye.testing import example_tracks
            >>> print(class_change_rate(example_tracks()))
            class_change_rate 4.5 % (95 % interval 0.6–84.9 %, n = 397)
        """
    def conditional_robustness(self, k: int | None = None) -> Result:
        """The share of right frames exactly ±k from a right anchor; n counts these frames.

        `k`: distance in native frames, by default the largest in the data. `cells`: distances 1 … k.
        Each frame counts separately, unlike in pm-k, for which all frames between it and the anchor
        count, too. Value None if no right anchor has a frame that far away. Gu et al., "Using Videos to
        Evaluate Image Model Robustness", 2019; Shankar et al., Figure 8.

        Example with invented predictions:

            >>> from steadyeye.testing import example_predictions
            >>> print(conditional_robustness(example_predictions(margin=0.5), k=1))
            conditional_robustness(k=1) 70.0 % (95 % interval 35.9–89.1 %, n = 20, among 3 classes)
        """
    def confidence_jump(self) -> Result:
        """The mean |Δ confidence| between consecutive frames, 0…1; n counts pairs.

        Confidence is the probability of each frame's own top-1 class; scores outside 0…1 count as
        logits (softmax). `cells`: the 95th percentile of the jumps. Intervals: over videos, or over
        blocks of one video. Value None without consecutive frames, or if only the best logit of each
        frame was stored.

        Example with invented predictions:

            >>> from steadyeye.testing import example_video
            >>> print(confidence_jump(example_video()))
            confidence_jump 13.8 % (95 % interval 2.2–86.4 %, n = 238, among 3 classes)
        """
    def confidence_swing(self, score: float = 0.5) -> Result:
        """The mean |Δ score| of an object from one of its boxes to the next, 0…1; n counts pairs.

        Objects and `score`, 0…1, as of `blink_rate`; scores below the threshold count as well, frames
        without a detection do not.

        Example:
            >>> from steadyeye.testing import example_tracks
            >>> print(confidence_swing(example_tracks()))
            confidence_swing 13.8 % (95 % interval 2.2–86.4 %, n = 451)
        """
    def degraded_accuracy(self, images: str = "right") -> Result:
        """The share of images still right, averaged over the levels and then over the operators.

        `images`: "right", those that are right at level 0, so that it starts from 1; or "all". `cells`:
        the operators, each with its levels from 0. Raises `UsageError` if no image is right at level 0.
        Swingler 2022.

        Example with invented predictions:

            >>> from steadyeye.testing import example_sweep
            >>> print(degraded_accuracy(example_sweep()))
            degraded_accuracy 88.8 % (95 % interval 73.2–93.6 %, n = 20, among 3 classes)
        """
    def degraded_probability(self, images: str = "right") -> Result:
        """The mean probability of the true class, over levels and then over operators.

        The true class's own score, not the top-1 confidence, in fp32. `images` and `cells` as in
        `degraded_accuracy`. Value None if the model's scores are no probabilities. Swingler 2022.

        Example with invented predictions:

            >>> from steadyeye.testing import example_sweep
            >>> print(degraded_probability(example_sweep()))
            degraded_probability 54.3 % (95 % interval 45.0–62.2 %, n = 20, among 3 classes)
        """
    def degraded_rank(self, images: str = "right") -> Result:
        """The mean rank of the true class (0 = first), over levels and then over operators.

        Among the competing classes, computed in fp32. `images` and `cells` as in `degraded_accuracy`.
        Swingler 2022.

        Example with invented predictions:

            >>> from steadyeye.testing import example_sweep
            >>> print(degraded_rank(example_sweep()))
            degraded_rank 0.1 (95 % interval 0.1–0.4, n = 20, among 3 classes)
        """
    def degraded_recall(self, objects: str = "found", score: float = 0.5) -> Result:
        """The share of objects still detected, averaged over the levels and then over the operators.

        Found: a detection of the class with `score` or more and an IoU of 0.5 or more. `objects`:
        "found", those found at level 0, so that it starts from 1; or "all". `cells`: the operators,
        each with its levels from 0. Objects that an operator moves outside the image are ignored at
        that level. n objects; intervals clustered by image, or by video. Value None without objects
        that count.

        Example:
            >>> from steadyeye.testing import example_detector_sweep
            >>> print(degraded_recall(example_detector_sweep()))
            degraded_recall 60.4 % (95 % interval 42.1–72.9 %, n = 18)
        """
    def detection_delay(self, score: float = 0.5) -> Result:
        """The median time from the first box of 0.1 at an object's place to its first detection.

        Backwards from the first detection, frame by frame, a box counts if it overlaps that of the next
        frame (IoU > 0.5). Time without any box is not counted: with true tracks `true_detection_delay`
        counts it. Objects as of `blink_rate`, without those that are present when a scene begins; a
        delay that reaches the start of a scene is censored (Kaplan and Meier's median). In seconds, n
        objects; a bootstrap over videos. `score`: the lowest score of a detection, above 0.1 and below
        1. Raises `UsageError` for another score.

        Example:
            >>> from steadyeye.testing import example_tracks
            >>> print(detection_delay(example_tracks(late=20)))
            detection_delay 0.50 s (n = 4)
        """
    def drop(self, k: int | None = None) -> Result:
        """Accuracy − pm-k: the share of right anchors with a wrong frame within ±k.

        Because pm-k is never above accuracy, the drop is a proportion and has a proportion's interval.
        `k`: native frames, by default the largest in the data. Value None on empty input.

        Example with invented predictions:

            >>> from steadyeye.testing import example_predictions
            >>> print(drop(example_predictions(margin=0.5), k=1))
            drop(k=1) 50.0 pp (95 % interval 15.9–84.1 pp, n = 12, among 3 classes)
        """
    def dwell_time(self) -> Result:
        """The median time in seconds for which a prediction stays the same.

        Runs that are cut off by the end of a scene or video are censored: the median is Kaplan and
        Meier's, and None if fewer than half of the runs end. `cells`: the median in frames, and the
        mean time and frames between changes, the total ÷ the changes. Intervals: a bootstrap over
        videos, or within one video over blocks of consecutive runs.

        Example with invented predictions:

            >>> from steadyeye.testing import example_video
            >>> print(dwell_time(example_video()))
            dwell_time 0.70 s (n = 14, among 3 classes)
        """
    def effective_robustness(self, line: str | None = None, space: str = "probit") -> Result:
        """pm-10 minus the value of the line through 335 published models at the model's accuracy.

        `line`: "imagenet_vid_robust" or "ytbb_robust", the set on which the line was measured; by
        default the data's own, and ImageNet-Vid-Robust's for other data, as a yardstick only. `space`:
        "probit" or "plain", in which the line is straight. The interval covers the sampling of the
        anchors, accuracy and pm-10 together, and the line's own uncertainty. Raises `UsageError` if the
        data do not reach ±10, because the line is for k = 10, and for a part or a variant of a released
        set, on which no published model was measured. Value None on empty input. Taori et al., NeurIPS
        2020, Section 2.

        Example with invented predictions:

            >>> from steadyeye.testing import example_predictions
            >>> result = effective_robustness(example_predictions(margin=0.7, k=10))
            >>> print(f"{result.value:.3f}, n = {result.n}")
            -0.833, n = 12
        """
    def f1_at(self, score: float = 0.5, iou: float = 0.5) -> Result:
        """The harmonic mean of `precision_at` and `recall_at`: 2 TP ÷ (detections + objects).

        `score`, `iou`, intervals and errors as there. `cells`: the classes with the number of their
        objects; n images. Value None with neither detections nor objects.

        Example with invented predictions:

            >>> from steadyeye.testing import example_detections
            >>> print(f1_at(example_detections(), score=1))
            f1_at(score=1) 90.9 % (95 % interval 69.5–96.9 %, n = 30)
        """
    def failure_points(
        self, thresholds: Sequence[float] = (0.9, 0.5, 0.1), images: str = "right"
    ) -> Result:
        """The first level of each operator with accuracy below each threshold.

        `thresholds`: shares, 0…1. `images` as in `degraded_accuracy`. `cells`: the operators, each with
        its thresholds, the level (None: not reached) and its interval, and in these the share of
        changed pixels and the mean value there. The whole has no value of its own. Swingler 2022,
        Tables 1–3. After a search (`--fast`) the interval is that of the search. Raises `UsageError`
        for thresholds that are no shares.

        Example with invented predictions:

            >>> from steadyeye.testing import example_sweep
            >>> for operator in failure_points(example_sweep(), thresholds=(0.9,)).cells:
            ...     print(operator.name, operator.cells[0])
            blur below 0.9 2 (95 % interval ≥ 1, n = 20)
            noise below 0.9 4 (95 % interval ≥ 1, n = 20)
        """
    def flicker_rate(self, score: float = 0.5) -> Result:
        """The share of objects that are detected in at most two consecutive frames, and never again.

        These are mostly false positives. Objects and `score`, 0…1, as of `blink_rate`, without those
        that are present when a scene begins or ends. n objects; the interval is clustered by video.

        Example:
            >>> from steadyeye.testing import example_tracks
            >>> print(flicker_rate(example_tracks()))
            flicker_rate 100.0 % (95 % interval 15.8–100.0 %, n = 4)
        """
    def flip_rate(self) -> Result:
        """The share of consecutive frame pairs whose top-1 class changes; n counts pairs.

        A pair in several sets counts once. The interval is clustered by video; for one video it is by
        blocks of consecutive pairs. Value None without consecutive frames.

        Example with invented predictions:

            >>> from steadyeye.testing import example_video
            >>> print(flip_rate(example_video()))
            flip_rate 5.0 % (95 % interval 0.7–85.0 %, n = 238, among 3 classes)
        """
    def fragment_error(self, score: float = 0.5) -> Result:
        """Changes between detected and missed ÷ (frames − 1), averaged over true objects, 0…1.

        Zhang and Wang 2016; formulas in `metrics.sequences.stability_errors`. n objects; the interval
        is clustered by video. Value None without true objects. `score`: the lowest score of a
        detection, above 0.1 and below 1. Raises `UsageError` for another score.

        Example:
            >>> from steadyeye.testing import example_true_tracks
            >>> print(fragment_error(example_true_tracks()))
            fragment_error 29.8 % (95 % interval 4.7–88.9 %, n = 4)
        """
    def hota(self, score: float = 0.5) -> Result:
        """HOTA, averaged over its 19 thresholds, 0…1; objects are linked as for `blink_rate`.

        It measures the detector and the linking together, and counts every detection of a class of the
        data without a true box as wrong: only for data in which all objects are labelled. Luiten et
        al., "HOTA: A Higher Order Metric for Evaluating Multi-Object Tracking", 2021, as computed by
        `trackeval`. `score`: the lowest score of a detection, above 0.1 and below 1. Raises
        `UsageError` for another score.

        Example of what it needs:

            >>> from steadyeye.core.plugins import install_line
            >>> install_line([], PACKAGES)
            'pip install --no-deps trackeval'
        """
    def idf1(self, score: float = 0.5) -> Result:
        """The F1 of boxes whose track is that of their object, 0…1; linked as for `blink_rate`.

        n true objects. For the same data as `hota`. Ristani et al., "Performance Measures and a Data
        Set for Multi-Target, Multi-Camera Tracking", 2016, as computed by `trackeval`. `score`: the
        lowest score of a detection, above 0.1 and below 1. Raises `UsageError` for another score.

        Example of what it needs:

            >>> from steadyeye.core.plugins import install_line
            >>> install_line([], PACKAGES)
            'pip install --no-deps trackeval'
        """
    def localization(self, k: int | None = None, iou: float | str = 0.5) -> Result:
        """pm-k mAP with all classes merged into one, so that only the position counts.

        `cells`: k = 0, the anchors alone, 1 … k. `k`, `iou` and the rest as in `pm_k_map`. Shankar et
        al., Section 4.2.

        Example with invented predictions:

            >>> from steadyeye.testing import example_detections
            >>> print(localization(example_detections(), k=1))
            localization(k=1) 100.0 % (95 % interval 78.2–100.0 %, n = 30)
        """
    def map(self, iou: float | str = 0.5, size: str = "all", detections: int = 100) -> Result:
        """mAP: AP averaged over the classes present, of anchors where samples form pm-sets.

        Interpolated at 101 recalls, at most 100 detections per image and class, crowds ignored: equal
        to COCOeval of pycocotools. `iou`: 0.5 … 0.95, or "coco", the mean over all ten. `size`: of the
        objects that count, "small" (up to 32² square pixels), "medium" (up to 96²) or "large".
        `detections`: the number per image and class that count, the most confident first. Value None
        without objects. Raises `UsageError` for other values. Lin et al., "Microsoft COCO", 2014.

        Example with invented predictions:

            >>> from steadyeye.testing import example_detections
            >>> print(map(example_detections(), iou="coco"))
            map(iou=coco) 40.6 % (95 % interval 14.6–57.8 %, n = 30)
        """
    def map_drop(self, k: int | None = None, iou: float | str = 0.5) -> Result:
        """The mAP of the anchors minus that of the worst frames within ±k of them.

        `k` and `iou` as in `pm_k_map`. The interval is that of the difference, with each video left out
        of both; the worst frames have another mix of objects, so that a drop may be below 0. Value None
        without objects. Shankar et al., Section 4.2.

        Example with invented predictions:

            >>> from steadyeye.testing import example_detections
            >>> print(map_drop(example_detections(), k=1))
            map_drop(k=1) 6.6 pp (95 % interval −7.5 to +18.7 pp, n = 30)
        """
    def map_failure_points(
        self, thresholds: Sequence[float] = (0.9, 0.5, 0.1), iou: float | str = "coco"
    ) -> Result:
        """The first level of each operator with mAP below each share of mAP at level 0.

        `thresholds`: shares, 0…1. `iou` as in `map`. `cells` as of `failure_points`. After a search
        (`--fast`) the level equals that of a full sweep if mAP never rises again.

        Example:
            >>> from steadyeye.testing import example_detector_sweep
            >>> for operator in map_failure_points(example_detector_sweep(), (0.9,), iou=0.5).cells:
            ...     print(operator.name, operator.cells[0])
            blur below 0.9 1 (95 % interval 1–3, n = 12)
            noise below 0.9 1 (95 % interval 1–3, n = 12)
        """
    def map_without_ood(self, iou: float | str = 0.5) -> Result:
        """The mAP that ignores detections which match nothing but an out-of-distribution object.

        Such a detection overlaps, by the threshold or more, an object labelled as outside the classes,
        or of a class without a mapped model class, and is no true positive: at that threshold it is
        ignored, and so is any other there. Classes without a mapped model class do not count as AP 0
        either, and in a hierarchy neither do children of a mapped class. The rest, also `iou`, as in
        `map`; `cells`: AP of every present class, with its number of objects. Value None without
        objects. Lau et al., "Natural Adversarial Objects", 2021, Section 4 and Table 2.

        Example with invented predictions:

            >>> from steadyeye.testing import example_detections
            >>> print(map_without_ood(example_detections()))
            map_without_ood(iou=0.5) 92.7 % (95 % interval 69.0–99.7 %, n = 30)
        """
    def mar(self, detections: int = 100) -> Result:
        """mAR: the share of objects detected, averaged over IoU 0.50 … 0.95 and the classes present.

        `detections`: the number per image and class that count, the most confident first; at most 100.
        COCO's AR. Value None without objects. Raises `UsageError` for other values.

        Example with invented predictions:

            >>> from steadyeye.testing import example_detections
            >>> print(mar(example_detections(), detections=1))
            mar(detections=1) 47.7 % (95 % interval 24.4–64.5 %, n = 30)
        """
    def mce(self, baseline: str = "alexnet") -> Result:
        """The error relative to AlexNet's, averaged over the fifteen corruptions of ImageNet-C.

        Of a sweep over `imagenet_c` at all severities, of all images. 100 % means as many errors as
        AlexNet on ImageNet-C, which is comparable on the validation images of ImageNet only.
        `baseline`: "alexnet", or "none": the mean error itself, for other data. `cells`: the
        corruptions. Raises `UsageError` if corruptions or severities are missing. Hendrycks and
        Dietterich 2019, Section 4.2.

        Example with invented predictions:

            >>> from steadyeye.testing import example_corruptions
            >>> print(mce(example_corruptions()))
            mce 21.8 % (95 % interval 17.2–40.1 %, n = 20, among 3 classes)
        """
    def mpc(self, iou: float | str = "coco") -> Result:
        """The mAP of degraded images, averaged over levels from 1 on and then over operators, 0…1.

        `iou` as in `map`. `cells`: the operators, each with its levels from 0. Intervals are those of
        `map`, over images, or over videos if these have several images. Michaelis et al., "Benchmarking
        Robustness in Object Detection", 2019, Equation 1. Value None without objects.

        Example:
            >>> from steadyeye.testing import example_detector_sweep
            >>> print(mpc(example_detector_sweep(), iou=0.5))
            mpc(iou=0.5) 63.1 % (95 % interval 31.0–81.1 %, n = 12)
        """
    def object_recall(self, score: float = 0.5) -> Result:
        """The share of a true object's frames in which it is detected, averaged over objects.

        Found: a detection of `score` or more, of its class, with an IoU of 0.5 or more. `cells`: the
        shares found as another class, found below the threshold, and not found. n objects; intervals
        clustered by video. Value None without true objects.

        Example:
            >>> from steadyeye.testing import example_true_tracks
            >>> print(object_recall(example_true_tracks()))
            object_recall 81.5 % (95 % interval 12.9–97.1 %, n = 4)
        """
    def pm_k(self, k: int | None = None) -> Result:
        """The share of anchors with a right prediction on every frame within ±k, the anchor included.

        `k`: distance in native frames, by default the largest in the data. `cells`: pm-0 … pm-k. A set
        without neighbours counts as its anchor alone. Value None on empty input. Shankar et al., "Do
        Image Classifiers Generalize Across Time?", Section 2, Equation 1.

        Example with invented predictions:

            >>> from steadyeye.testing import example_predictions
            >>> print(pm_k(example_predictions(margin=0.5), k=1))
            pm_k(k=1) 33.3 % (95 % interval 11.1–65.9 %, n = 12, among 3 classes)
        """
    def pm_k_map(self, k: int | None = None, iou: float | str = 0.5) -> Result:
        """The mAP of the worst frames: of each anchor, the frame of lowest frame AP within ±k.

        `k`: native frames, by default the largest in the data. `iou` as in `map`; the worst frame is
        chosen at 0.5 or, with another threshold, at that. Frames without objects are no candidates.
        `cells`: k = 0, 1 … Value None without objects. Shankar et al., Section 4.2.

        Example with invented predictions:

            >>> from steadyeye.testing import example_detections
            >>> print(pm_k_map(example_detections(), k=1))
            pm_k_map(k=1) 86.1 % (95 % interval 63.7–96.1 %, n = 30)
        """
    def precision_at(self, score: float = 0.5, iou: float = 0.5) -> Result:
        """The share of right detections among those of `score` or more, over all classes together.

        Right: a true positive at `iou`, 0.5 … 0.95, matched as for `map`, on the same images as `map`;
        on a crowd neither right nor wrong. Detections of classes without an object are wrong, and a
        note counts them. `cells`: the classes. n detections; intervals clustered by video, or by image.
        Value None without such detections. Raises `UsageError` for other values.

        Example with invented predictions:

            >>> from steadyeye.testing import example_detections
            >>> print(precision_at(example_detections(), score=1))
            precision_at(score=1) 100.0 % (95 % interval 76.7–100.0 %, n = 25)
        """
    def random_neighbour(self, k: int | None = None) -> Result:
        """The expected share of anchors with a right prediction on a random neighbour within ±k.

        The mean over sets of the share of their accepted neighbours that are right: the expectation of
        the third number of the released scorer, which draws one neighbour per anchor. `k`: native
        frames, by default the largest in the data. A set without a neighbour counts as its anchor
        alone; the released scorer counts it as right, and a note gives that value. The interval is that
        of a mean over videos. Value None on empty input. Shankar et al., "Do Image Classifiers
        Generalize Across Time?", Section 2.

        Example with invented predictions:

            >>> from steadyeye.testing import example_predictions
            >>> print(random_neighbour(example_predictions(margin=0.5), k=1))
            random_neighbour(k=1) 62.5 % (95 % interval 33.1–80.9 %, n = 12, among 3 classes)
        """
    def recall_at(self, score: float = 0.5, iou: float = 0.5) -> Result:
        """The share of objects detected with `score` or more, over all classes together.

        `iou`, `cells`, intervals and errors as of `precision_at`; n objects, without crowds. Value None
        without objects.

        Example with invented predictions:

            >>> from steadyeye.testing import example_detections
            >>> print(recall_at(example_detections(), score=1))
            recall_at(score=1) 83.3 % (95 % interval 62.1–94.1 %, n = 30)
        """
    def recall_failure_points(
        self, thresholds: Sequence[float] = (0.9, 0.5, 0.1), score: float = 0.5
    ) -> Result:
        """The first level of each operator at which less than each share of objects is detected.

        Of the objects found at level 0, as in `degraded_recall`. `thresholds`: shares, 0…1. `score`:
        the lowest score of a detection. `cells` as of `failure_points`. After a search (`--fast`) the
        level equals that of a full sweep if the share never rises again.

        Example:
            >>> from steadyeye.testing import example_detector_sweep
            >>> for operator in recall_failure_points(example_detector_sweep(), (0.9,)).cells:
            ...     print(operator.name, operator.cells[0])
            blur below 0.9 1 (95 % interval 1–1, n = 18)
            noise below 0.9 1 (95 % interval 1–2, n = 18)
        """
    def relative_mce(self) -> Result:
        """The rise in error relative to AlexNet's, averaged over the fifteen ImageNet-C corruptions.

        The rise above the error on undegraded images, divided by AlexNet's rise on ImageNet-C, which is
        comparable on the validation images of ImageNet only. Of a sweep over `imagenet_c` at all
        severities, of all images. `cells`: the corruptions. Raises `UsageError` if corruptions or
        severities are missing. Hendrycks and Dietterich 2019, Section 4.2.

        Example with invented predictions:

            >>> from steadyeye.testing import example_corruptions
            >>> print(relative_mce(example_corruptions()))
            relative_mce +53.7 % (95 % interval −10.4 to +99.9 %, n = 20, among 3 classes)
        """
    def rpc(self, iou: float | str = "coco") -> Result:
        """rPC: mPC ÷ mAP at level 0; n counts images, and `cells` holds the same of each operator.

        `iou` as in `map`. Michaelis et al. 2019, Equation 2. Value None if mAP is 0 at level 0.

        Example:
            >>> from steadyeye.testing import example_detector_sweep
            >>> print(rpc(example_detector_sweep(), iou=0.5))
            rpc(iou=0.5) 63.1 % (95 % interval 41.9–81.7 %, n = 12)
        """
    def scale_and_ratio_error(self, score: float = 0.5) -> Result:
        """σ of √area plus that of width ÷ height, each relative to the true box; 0…1.26.

        The mean over true objects. Zhang and Wang 2016; formulas in
        `metrics.sequences.stability_errors`. n objects found in two frames or more; the interval is
        clustered by video. Value None without such objects. `score`: the lowest score of a detection,
        above 0.1 and below 1. Raises `UsageError` for another score.

        Example:
            >>> from steadyeye.testing import example_true_tracks
            >>> print(scale_and_ratio_error(example_true_tracks()))
            scale_and_ratio_error 3.3 % (95 % interval 0.5–106.3 %, n = 4)
        """
    def self_consistency(self, k: int | None = None) -> Result:
        """The share of frames with the same top-1 class on every frame within ±k in the scene.

        The top-1 class among all the model's own classes, whether or not the data have them. It is pm-k
        with the anchor's own prediction in place of the label: steady, right or wrong. `k`: native
        frames; by default 10, for pm-sets the largest in the data. For pm-sets n counts the anchors and
        the interval is that of `pm_k`. For whole videos n counts all frames, each an anchor: they share
        neighbours, so one video is resampled in blocks longer than a window. Value None on empty input.
        Raises `UsageError` for a `k` below the distance of the frames.

        Example with invented predictions:

            >>> from steadyeye.testing import example_video
            >>> print(self_consistency(example_video(), k=5))
            self_consistency(k=5) 69.2 % (95 % interval 10.8–95.4 %, n = 240, among 3 classes)
        """
    def true_blink_rate(self, score: float = 0.5) -> Result:
        """The share of a true object's frames, from first to last detection, in which it is missed.

        `blink_rate` estimates it without labels. Of objects found in five frames or more; a gap may
        have any length, and an object detected as another class is not found. n frames; the interval as
        of `blink_rate`. Value None without such objects. `score`: the lowest score of a detection,
        above 0.1 and below 1. Raises `UsageError` for another score.

        Example:
            >>> from steadyeye.testing import example_true_tracks
            >>> print(true_blink_rate(example_true_tracks()))
            true_blink_rate 18.2 % (95 % interval 2.8–87.1 %, n = 478)
        """
    def true_detection_delay(self, score: float = 0.5) -> Result:
        """The median time from a true object's first frame to its first detection.

        An object that is never found is censored at its last frame (Kaplan and Meier's median). In
        seconds, n objects; a bootstrap over videos. Value None if fewer than half are found. After Mao,
        Yang and Dally, "A Delay Metric for Video Object Detection", 2019. `score`: the lowest score of
        a detection, above 0.1 and below 1. Raises `UsageError` for another score.

        Example:
            >>> from steadyeye.testing import example_true_tracks
            >>> print(true_detection_delay(example_true_tracks()))
            true_detection_delay 0.00 s (n = 4)
        """
    def window_map(self, k: int = 10, iou: float | str = 0.5) -> Result:
        """pm-k mAP of whole sequences: for every frame, the frame of lowest frame AP within ±k.

        As `pm_k_map` with each frame that has objects as an anchor; ties go to the smaller distance,
        then to the earlier frame. `k`: frames, 0 or more. `iou` as in `map`. n frames; the interval is
        over videos. Value None without objects. Raises `UsageError` for a negative `k`.

        Example:
            >>> from steadyeye.testing import example_true_tracks
            >>> print(window_map(example_true_tracks(), k=2))
            window_map(k=2) 68.3 % (n = 240)
        """
