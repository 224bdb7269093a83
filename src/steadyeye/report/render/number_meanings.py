"""The meanings of the main numbers, one sentence each."""

READING = (
    ("accuracy", "accuracy", "the share of images for which the prediction is a true class."),
    (
        "pm_k",
        "anchor, neighbour, set",
        "an anchor is a frame of a video, its neighbours are the frames within ±k of it, and both "
        "together are a set. Where there are sets, accuracy is that of the anchors.",
    ),
    (
        "pm_k",
        "pm-k",
        "the share of anchors on which the model is right and on whose every neighbour it is "
        "right too.",
    ),
    ("drop", "drop", "accuracy minus pm-k, in percentage points (pp)."),
    (
        "conditional_robustness",
        "conditional robustness",
        "the share of the frames exactly k away from a right anchor that are right.",
    ),
    (
        "random_neighbour",
        "random-neighbour accuracy",
        "the share of anchors whose neighbour, drawn at random, is right; pm-k takes the worst.",
    ),
    (
        "effective_robustness",
        "effective robustness",
        "pm-10 minus the pm-10 of published models of the same accuracy, in percentage points; "
        "above 0 means steadier than these.",
    ),
    (
        "flip_rate",
        "flip rate",
        "the share of pairs of consecutive frames with different predictions. No labels are "
        "needed.",
    ),
    (
        "self_consistency",
        "self-consistency",
        "the share of frames whose prediction is the same for every frame within ±k. No labels "
        "are needed.",
    ),
    (
        "dwell_time",
        "dwell time",
        "the median time for which a prediction stays the same; one that the end of a scene cuts "
        "off counts as at least that long.",
    ),
    (
        "confidence_jump",
        "confidence jump",
        "the mean change of confidence between consecutive frames.",
    ),
    (
        "blink_rate",
        "blink rate",
        "the share of the frames between an object's first and last detection in which the "
        "detector misses the object; a frame counts once per object. No labels are needed.",
    ),
    (
        "flicker_rate",
        "flicker rate",
        "the share of objects that are detected for two frames at most; most are false positives.",
    ),
    (
        "class_change_rate",
        "class change rate",
        "the share of consecutive detections of one object that have different classes.",
    ),
    (
        "box_jitter",
        "box jitter",
        "the mean distance of an object's box from its smooth path, as a share of its size.",
    ),
    (
        "confidence_swing",
        "confidence swing",
        "the mean change of an object's score from frame to frame.",
    ),
    (
        "map",
        "mAP",
        "average precision of a detector, averaged over classes; 100 % means that every object "
        "is detected and nothing else.",
    ),
    (
        "map_without_ood",
        "mAP without OOD",
        "mAP without the detections of objects of a class that the model does not have.",
    ),
    ("mar", "mAR", "the share of objects that are detected, averaged over IoU thresholds."),
    (
        "precision_at",
        "precision",
        "the share of the detections with at least this score that are right.",
    ),
    (
        "recall_at",
        "recall",
        "the share of the objects that a detection with at least this score finds.",
    ),
    ("f1_at", "F1", "the harmonic mean of precision and recall at one score threshold."),
    (
        "best_f1",
        "best F1",
        "F1 at the score threshold at which it is highest on these images, so that it is lower on "
        "others.",
    ),
    (
        "pm_k_map",
        "pm-k mAP",
        "mAP over the worst frame within ±k of each anchor.",
    ),
    ("map_drop", "mAP drop", "mAP minus pm-k mAP, in percentage points (pp)."),
    ("localization", "localization", "pm-k mAP with all classes merged into one."),
    (
        "degraded_accuracy",
        "operator, level",
        "a way to degrade an image, and how strongly: level 0 is the original image, and most "
        "operators go up to level 30.",
    ),
    (
        "degraded_accuracy",
        "degraded accuracy",
        "the share of images on which the model is right, averaged over levels and operators. "
        "Where only images count that are right at level 0, 100 % means that nothing is lost.",
    ),
    (
        "degraded_rank",
        "degraded rank",
        "the number of classes with a higher score than the true one, averaged in the same way; 0 "
        "is best.",
    ),
    (
        "degraded_probability",
        "degraded probability",
        "the probability of the true class, averaged in the same way.",
    ),
    (
        "mce",
        "mCE",
        "mean corruption error: the share of wrong predictions, averaged over the severities and "
        "the fifteen corruptions of ImageNet-C; divided by AlexNet's share unless its baseline is "
        "none.",
    ),
    (
        "relative_mce",
        "relative mCE",
        "how much the error rises under the corruptions of ImageNet-C, as a share of AlexNet's "
        "rise.",
    ),
    (
        "confident_mistakes",
        "confident mistake",
        "a detection above the threshold that disagrees with the labels. The share is of all "
        "detections above the threshold that the labels can check.",
    ),
    (
        "misclassification",
        "wrong class",
        "misclassification, a confident mistake on an object of another class.",
    ),
    (
        "out_of_distribution",
        "out of distribution",
        "a confident mistake on an object of a class that the detector does not have.",
    ),
    ("background", "background", "a confident mistake where no object is labelled."),
    (
        "failure_points",
        "failure point",
        "the first level at which accuracy is below a threshold.",
    ),
)
"""(metric, term, meaning)."""
