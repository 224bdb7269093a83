"""The default metrics, operators and analyses: fixed lists, so that a new plugin changes no result.

A plugin that is not listed here is used only by name.
"""

OPERATORS = (
    *("adjacent_swap", "black_lines", "fade_black", "fade_grey", "fade_white", "global_blur"),
    *("gradient_descent", "jpeg", "local_blur", "posterize", "random_boxes", "random_noise"),
    *("random_swap", "white_fog", "white_lines"),
)
"""The fifteen operators of Swingler 2022, which `all` stands for."""

IMAGENET_C = (
    *("gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur"),
    *("motion_blur", "zoom_blur", "snow", "frost", "fog", "brightness", "contrast"),
    *("elastic_transform", "pixelate", "jpeg_compression"),
)
"""The fifteen corruptions of Hendrycks and Dietterich 2019, which `imagenet_c` stands for."""

IMAGENET_C_EXTRA = ("speckle_noise", "gaussian_blur", "spatter", "saturate")
"""Their four corruptions to choose parameters by, which `imagenet_c_extra` stands for."""

METRICS = (
    *("accuracy", "pm_k", "drop", "flip_rate", "dwell_time", "self_consistency"),
    *("confidence_jump", "conditional_robustness", "degraded_accuracy", "degraded_probability"),
    *("degraded_rank", "effective_robustness", "failure_points", "localization", "map"),
    *("map_drop", "map_without_ood", "mar", "pm_k_map", "random_neighbour", "blink_rate"),
    *("flicker_rate", "class_change_rate", "box_jitter", "confidence_swing", "detection_delay"),
    *("object_recall", "true_blink_rate", "true_detection_delay", "fragment_error"),
    *("center_position_error", "scale_and_ratio_error", "window_map", "mpc", "rpc"),
    *("degraded_recall", "map_failure_points", "recall_failure_points"),
)
"""Default metrics, computed if the predictions have their columns; in the order of the report."""

ANALYSES = (
    *("attribution", "background", "blind_spots", "comparison", "conditional_robustness"),
    *("confident_mistakes", "confusion_pairs", "degradation_gains", "degradation_map"),
    *("degradation_profiles", "degradation_ranking", "failure_levels", "failure_strips"),
    *("failures", "flips", "frame_rates", "frame_types", "gains", "linf_distances", "lost_boxes"),
    "lost_tracks",
    *(
        "map_breakdown",
        "map_curve",
        "object_steadiness",
        "offset_errors",
        "patch_shuffle",
        "per_class",
        "pm_curve",
    ),
    *("precision_recall", "published_detectors", "published_models", "published_nao"),
    *("review_impact", "static_transfer", "timeline", "unstable_clips", "unsteady_objects"),
    "what_changed",
    "wrong_predictions",
)
"""The default analyses of a report."""
