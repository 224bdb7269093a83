"""Augmentation: frequencies of draws, their only causes, and refusals."""

import hashlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.stats import binomtest, chisquare

from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import Spec
from steadyeye.degradation.counter_rng import stream_key
from steadyeye.degradation.operator import Context
from steadyeye.training.augmentation import augmentation

MIX = "jpeg(levels=0:30), gaussian_noise, random_noise(levels='5,10'), plain(share=0.25)"


def picture(seed=0, shape=(32, 40, 3)):
    return np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)


def invert(image, level):
    return (255 - image) if level == 2 else image


@pytest.mark.parametrize(
    "text",
    [
        "jpeg(levels=3:9:3)",
        "jpeg(levels='3,6,9')",
        "jpeg(levels=(3, 6, 9))",
        "jpeg(levels = 3:9:3 )",
    ],
)
def test_levels_are_drawn_uniformly_from_those_named(text):
    augment = augmentation(text, seed=4)
    image = picture()
    trail = plugins.build("operators", Spec("jpeg")).start(image, Context(np.uint64(0)))
    steps = {level: trail(level).tobytes() for level in (3, 6, 9)}
    counts = Counter(augment(image, f"frame {i}", 0).tobytes() for i in range(600))
    assert set(counts) == set(steps.values())
    assert chisquare(list(counts.values())).pvalue > 0.001


def test_all_levels_are_meant_where_none_are_named():
    assert augmentation("jpeg").choices[0].levels == tuple(range(31))
    assert augmentation("jpeg(levels=0:30)").choices[0].levels == tuple(range(31))
    assert augmentation("brightness").choices[0].levels == tuple(range(6))
    assert augmentation("brightness(levels=4)").choices[0].levels == (4,)
    assert augmentation("jpeg(subsampling='444', levels=2:4)").choices[0].levels == (2, 3, 4)


def test_level_zero_is_the_image_itself():
    image = picture()
    assert np.array_equal(augmentation("random_noise(levels=0)")(image, "a", 3), image)


def test_every_operator_that_needs_no_gradient_can_be_augmented_with():
    image = picture()
    before = image.copy()
    for name in plugins.names("operators"):
        if name not in ("albumentations", "callable", "gradient_descent", "kornia", "nrtk"):
            degraded = augmentation(f"{name}(levels=3:5)")(image, "a", 0)
            assert degraded.shape == image.shape
            assert degraded.dtype == np.uint8
            assert not np.array_equal(degraded, before)
    assert np.array_equal(image, before), "the input was changed"


def test_a_user_s_own_function_keeps_its_number_of_levels():
    text = f"callable(path='{__name__}:invert', levels=2, name='invert')"
    choice = augmentation(text).choices[0]
    assert (choice.operator.last, choice.levels) == (2, (0, 1, 2))
    image = picture()
    images = {augmentation(text)(image, f"{i}", 0).tobytes() for i in range(50)}
    assert images == {image.tobytes(), (255 - image).tobytes()}


def test_one_of_several_is_drawn_plain_as_often_as_it_says():
    augment = augmentation(MIX, seed=1)
    counts = Counter()
    for i in range(4000):
        chosen = augment._choose_level(f"frame {i}", 2)
        counts[chosen.operator.name if chosen.operator else "plain"] += 1
    assert set(counts) == {"jpeg", "gaussian_noise", "random_noise", "plain"}
    assert binomtest(counts["plain"], 4000, 0.25).pvalue > 0.001
    for name in ("jpeg", "gaussian_noise", "random_noise"):
        assert binomtest(counts[name], 4000, 0.25).pvalue > 0.001
    assert [choice["share"] for choice in augment.record()] == [0.25] * 4
    thirds = augmentation("jpeg, contrast, plain")
    assert [choice["share"] for choice in thirds.record()] == pytest.approx([1 / 3] * 3, abs=1e-6)


def test_an_image_is_the_same_alone_and_in_a_mixture():
    mixed, image = augmentation(MIX, seed=7), picture()
    alone = {
        "jpeg": augmentation("jpeg(levels=0:30)", seed=7),
        "gaussian_noise": augmentation("gaussian_noise", seed=7),
        "random_noise": augmentation("random_noise(levels='5,10')", seed=7),
    }
    for i in range(60):
        chosen = mixed._choose_level(f"{i}", 1).operator
        expected = alone[chosen.name](image, f"{i}", 1) if chosen else image
        assert np.array_equal(mixed(image, f"{i}", 1), expected)


def test_seed_epoch_and_id_each_change_what_is_drawn():
    image = picture()
    augment = augmentation("random_noise(levels=20)", seed=0)
    other = augmentation("random_noise(levels=20)", seed=1)
    outputs = [
        augment(image, "a", 0),
        augment(image, "a", 1),
        augment(image, "b", 0),
        other(image, "a", 0),
    ]
    assert len({output.tobytes() for output in outputs}) == 4
    assert np.array_equal(augment(image, "a", 1), outputs[1])
    # an id that ends in the digits of an epoch is another id
    assert not np.array_equal(augment(image, "a1", 0), augment(image, "a", 10))


def test_training_draws_are_not_those_of_a_sweep():
    """What is measured on is degraded by other draws than what was trained on."""
    image = picture()
    operator = plugins.build("operators", Spec("random_noise"))
    swept = operator.start(image, Context(stream_key(0, "a", "random_noise")))(20)
    assert not np.array_equal(augmentation("random_noise(levels=20)")(image, "a", 0), swept)


def test_order_threads_and_processes_do_not_matter():
    jobs = [(picture(i), f"frame {i}", epoch) for i in range(12) for epoch in (0, 1)]
    expected = [augmentation(MIX, seed=3)(*job) for job in jobs]
    augment = augmentation(MIX, seed=3)
    with ThreadPoolExecutor(4) as pool:
        backwards = list(pool.map(lambda job: augment(*job), reversed(jobs)))
    assert all(map(np.array_equal, reversed(backwards), expected))
    # as another process once computed it, whose texts have other hashes
    augment = augmentation("random_noise, white_fog(levels=0:5), plain(share=0.25)", seed=3)
    content = b"".join(augment(picture(5), f"frame {i}", 1).tobytes() for i in range(8))
    assert hashlib.sha256(content).hexdigest() == (
        "7d86eef832b2f67183e1da826e4d394e6e07385211befbc4c5cbcef55bf90003"
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("gradient_descent", "gradient_descent needs the gradient of the model"),
        ("jpg", "no operator named 'jpg'; did you mean 'jpeg'?"),
        ("jpeg(quality=3)", "no parameter of jpeg named 'quality'"),
        ("jpeg(levels=0:31)", "jpeg: levels '0:31': levels go from 0 to 30, not [31]"),
        ("gaussian_noise(levels=0:30)", "gaussian_noise: levels '0:30': levels go from 0 to 5"),
        ("jpeg(levels=0.5)", "write levels=0:30"),
        ("jpeg(levels='few')", "write first:last"),
        ("jpeg(levels=9:3)", "write the lower one first, as 5:10"),
        ("", "the augmentation is empty"),
        ("plain", "give 'plain' once, together with an operator"),
        ("jpeg, plain, plain", "give 'plain' once"),
        ("jpeg, plain(share=1)", "plain takes a share above 0 and below 1"),
        ("jpeg, plain(often=0.3)", "plain takes a share"),
        ("jpeg, jpeg(levels=3)", "'jpeg' twice"),
        ("jpeg(0:30)", "cannot read the spec"),
    ],
)
def test_an_invalid_augmentation_is_refused_in_one_line(text, why):
    with pytest.raises(UsageError) as caught:
        augmentation(text)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)
