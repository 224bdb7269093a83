"""Vectors of regions: neighbours, density ratios and their null, spots, crops and inner layers."""

import sys
from itertools import pairwise

import numpy as np
import onnx
import pytest
import toy_networks
from onnx import TensorProto, helper
from scipy.spatial import cKDTree
from scipy.stats import hypergeom

from steadyeye.core.errors import UsageError
from steadyeye.core.stats.multiple_testing import benjamini_hochberg
from steadyeye.core.types import Classes
from steadyeye.explain.embedding.blind_spots import spots
from steadyeye.explain.embedding.density_ratio import nearest_groups, space, thinness
from steadyeye.explain.embedding.regions import GREY, CropRule, crop_image
from steadyeye.models.introspection.embedder import cut_graph, embedder
from steadyeye.models.preprocessing.recipe import Preprocessing
from steadyeye.models.runtimes.classifier import Recipe, classifier
from steadyeye.models.runtimes.onnx_session import OnnxSession
from steadyeye.models.runtimes.probe_images import patterns
from steadyeye.models.runtimes.python_function import FunctionClassifier
from steadyeye.models.runtimes.torch_classifier import Execution, torch_classifier
from steadyeye.report.charts.embedding_map import layout


def gaussian(n, dimensions=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, dimensions)).astype(np.float32)


def test_nearest_points_are_those_of_a_tree():
    points = gaussian(300)
    nearest = nearest_groups(points, np.arange(300), 7)
    distance, index = cKDTree(points.astype(np.float64)).query(points, 8)
    np.testing.assert_array_equal(nearest.group, index[:, 1:])
    np.testing.assert_allclose(nearest.distance, distance[:, 1:], atol=1e-3)


def test_a_group_counts_once_by_its_nearest_member_and_not_for_itself():
    # on a line: group 0 at 0 and 10, group 1 at 1 and 2, group 2 at 4, group 3 at 9
    points = np.array([[0], [10], [1], [2], [4], [9]], dtype=np.float32)
    group = np.array([0, 0, 1, 1, 2, 3])
    nearest = nearest_groups(points, group, 2)
    assert nearest.group.tolist() == [[1, 2], [3, 2], [0, 2], [0, 2], [1, 0], [0, 2]]
    assert nearest.distance[0].tolist() == pytest.approx([1, 4], abs=1e-3)
    among = nearest_groups(points, group, 1, np.array([False, True, True, False]))
    assert among.group[:, 0].tolist() == [1, 2, 2, 2, 1, 2]


def test_ties_go_to_the_lower_group_and_blocks_change_nothing(monkeypatch):
    points = np.array([[0], [1], [-1], [1], [-1]], dtype=np.float32)
    nearest = nearest_groups(points, np.arange(5), 2)
    assert nearest.group[0].tolist() == [1, 2]
    whole = nearest_groups(gaussian(100), np.repeat(np.arange(50), 2), 9)
    monkeypatch.setattr("steadyeye.explain.embedding.density_ratio.CELLS", 700)
    parts = nearest_groups(gaussian(100), np.repeat(np.arange(50), 2), 9)
    np.testing.assert_array_equal(whole.group, parts.group)


def test_benjamini_and_hochberg_by_hand():
    # 4 / 1 · 0.01, 4 / 2 · 0.02, 4 / 3 · 0.03, and the largest as it is
    np.testing.assert_allclose(benjamini_hochberg([0.5, 0.01, 0.03, 0.02]), [0.5, 0.04, 0.04, 0.04])
    assert benjamini_hochberg([]).size == 0


def test_the_ratio_and_its_chance_by_hand():
    # reference at 0, 1, 2, 3; the data at 10, 10.1, 10.2 and at 1.5; k = 3 of the 7 others
    places = [0, 1, 2, 3, 10, 10.1, 10.2, 1.5]
    points = np.array(places, dtype=np.float32)[:, None]
    reference = np.arange(8) < 4
    sparseness = thinness(points, np.array(list("abcdefgh")), reference)
    assert (sparseness.k, sparseness.groups) == (3, (4, 4))
    # near 10: two of the data, then 3 of the reference; near 1.5: three of the reference
    expected = 4 / 7
    high = np.log((2 + 1 - expected) / (1 - expected)) - np.log((1 + expected) / expected)
    low = np.log((0 + 1 - expected) / (1 - expected)) - np.log((3 + expected) / expected)
    np.testing.assert_allclose(sparseness.ratio, [high, high, high, low])
    assert high > 0 > low
    np.testing.assert_allclose(sparseness.p[:3], hypergeom.cdf(1, 7, 4, 3))
    assert sparseness.p[3] == 1
    # third neighbours within the reference: 3, 2, 2, 3; of the data 9, 9.1, 9.2 and 1.5
    np.testing.assert_allclose(sparseness.far, [1, 1, 1, 0])
    assert not sparseness.thin.any()


def make_hole(seed, groups=150, boxes=2, share=0.03):
    """Four clouds of crops; the reference has next to none of the third."""
    rng = np.random.default_rng(seed)
    cloud = rng.integers(0, 4, 2 * groups)
    reference = np.arange(2 * groups) < groups
    present = ~(reference & (cloud == 2) & (rng.random(2 * groups) > share))
    cloud, reference = cloud[present], reference[present]
    middle = 6 * np.eye(4, 6)[cloud] + rng.normal(size=(len(cloud), 6))
    points = np.repeat(middle, boxes, axis=0) + 0.1 * rng.normal(size=(boxes * len(cloud), 6))
    names = np.repeat([f"image {i:04}" for i in range(len(cloud))], boxes)
    return points.astype(np.float32), names, np.repeat(reference, boxes), np.repeat(cloud, boxes)


def test_a_planted_hole_is_found_and_is_one_spot():
    points, names, reference, cloud = make_hole(0)
    sparseness = thinness(points, names, reference)
    mine = cloud[~reference]
    assert sparseness.chance <= 0.01
    assert sparseness.thin[mine == 2].mean() > 0.95
    assert sparseness.thin[mine != 2].mean() < 0.02
    assert np.median(sparseness.ratio[mine == 2]) > 1 > np.median(sparseness.ratio[mine != 2])
    assert np.median(sparseness.far[mine == 2]) > 0.95
    spot = spots(points[~reference][sparseness.thin])
    sizes = np.bincount(spot[spot >= 0])
    assert sizes[0] > 0.85 * (mine == 2).sum()
    assert len(sizes) == 1


@pytest.mark.slow
def test_without_a_hole_hardly_anything_is_found():
    # every image of both sets from one cloud, three boxes each that show nearly the same
    finds, trials = 0, 100
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        middle = rng.normal(size=(40, 5))
        points = np.repeat(middle, 3, axis=0) + 0.05 * rng.normal(size=(120, 5))
        names = np.repeat([f"{i:02}" for i in range(40)], 3)
        reference = np.repeat(rng.permutation(40) < 25, 3)
        sparseness = thinness(points.astype(np.float32), names, reference)
        finds += sparseness.thin.any()
        assert sparseness.chance > 0
    # 0.05 of them by chance: more than 10 would be seen once in 100
    assert finds <= 10


def test_boxes_of_one_video_are_one_witness():
    # sixty frames of two films of the data, far from all else: two groups are no proof
    rng = np.random.default_rng(0)
    films = np.repeat(8 * rng.normal(size=(2, 5)), 30, axis=0) + 0.01 * rng.normal(size=(60, 5))
    points = np.concatenate([rng.normal(size=(40, 5)), films]).astype(np.float32)
    names = np.array([f"image {i}" for i in range(40)] + ["film a"] * 30 + ["film b"] * 30)
    sparseness = thinness(points, names, np.arange(100) < 40)
    assert not sparseness.thin.any()
    assert sparseness.chance > 0.05
    np.testing.assert_allclose(sparseness.far, 1)


def test_the_order_of_the_points_makes_no_difference():
    points, names, reference, _ = make_hole(1, groups=60)
    order = np.random.default_rng(5).permutation(len(points))
    sparseness = thinness(points, names, reference)
    other = thinness(points[order], names[order], reference[order])
    place = order[reference[order] == 0]
    back = np.searchsorted(np.flatnonzero(~reference), place)
    np.testing.assert_allclose(sparseness.ratio[back], other.ratio)
    np.testing.assert_array_equal(sparseness.thin[back], other.thin)
    np.testing.assert_allclose(sparseness.far[back], other.far)
    assert sparseness.chance == other.chance
    data = points[~reference]
    shuffled = np.random.default_rng(6).permutation(len(data))
    np.testing.assert_array_equal(spots(data)[shuffled], spots(data[shuffled]))


def test_spots_are_numbered_by_size_and_few_points_are_none():
    rng = np.random.default_rng(0)
    clouds = [(np.eye(3)[i] * 20 + rng.normal(size=(n, 3))) for i, n in enumerate((20, 60, 40))]
    spot = spots(np.concatenate(clouds).astype(np.float32))
    most = [np.bincount(part + 1).argmax() - 1 for part in np.split(spot, [20, 80])]
    assert most == [2, 0, 1]
    assert spots(gaussian(4)).tolist() == [-1] * 4
    # one cloud alone is one spot, not its core and noise
    assert (spots(gaussian(80, 16)) == 0).mean() > 0.8


def test_the_projection_keeps_directions_and_distances():
    vectors = gaussian(50, 20)
    coordinates = space(np.concatenate([vectors, 3 * vectors]), 20)
    np.testing.assert_allclose(coordinates[:50], coordinates[50:], atol=1e-5)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    np.testing.assert_allclose(
        np.linalg.norm(coordinates[0] - coordinates[1:50], axis=1),
        np.linalg.norm(unit[0] - unit[1:], axis=1),
        atol=1e-4,
    )
    spread = coordinates.var(axis=0)
    assert all(variance >= next_ - 1e-6 for variance, next_ in pairwise(spread))
    assert space(np.zeros((3, 5), dtype=np.float32)).tolist() == np.zeros((3, 5)).tolist()


def test_the_map_is_pca_without_umap_and_says_so(monkeypatch):
    points = space(gaussian(60, 12))
    monkeypatch.setitem(sys.modules, "umap", None)
    projection = layout(points)
    assert projection.name == "PCA"
    np.testing.assert_allclose(projection.place, points[:, :2])


@pytest.mark.parametrize(
    ("box", "side", "corner"),
    [
        ((40, 30, 60, 40), 24, (38, 23)),
        # moved back into the image at its corners
        ((0, 0, 20, 10), 24, (0, 0)),
        ((90, 70, 100, 80), 12, (88, 68)),
    ],
)
def test_a_crop_is_the_square_around_the_box(box, side, corner):
    image = np.arange(80 * 100 * 3, dtype=np.uint32).reshape(80, 100, 3).astype(np.uint8)
    crop = crop_image(image, np.array(box, dtype=float), CropRule(0.2))
    x, y = corner
    np.testing.assert_array_equal(crop, image[y : y + side, x : x + side])


def test_a_crop_larger_than_the_image_is_grey_beyond_it():
    image = np.zeros((10, 40, 3), dtype=np.uint8)
    crop = crop_image(image, np.array([0.0, 0.0, 40.0, 10.0]), CropRule(0.0))
    assert crop.shape == (40, 40, 3)
    assert (crop[15:25] == 0).all()
    assert (crop[:15] == GREY).all()
    assert (crop[25:] == GREY).all()
    with pytest.raises(UsageError, match="enlarge=-1: give a share from 0 to 4"):
        CropRule(-1)


RECIPE = Recipe(Preprocessing((32, 32), 40, (127.0,) * 3, (128.0,) * 3))
TEN = Classes(tuple(map(str, range(10))))


def toy(runtime, network=toy_networks.net):
    return torch_classifier(network(), "toy", TEN, RECIPE, Execution(runtime))


def test_features_are_what_the_last_layer_reads_in_either_runtime():
    images = patterns(32, 32, 3)
    on_torch, on_onnx = embedder(toy("torch")), embedder(toy("onnx"))
    features = on_torch(images)
    assert features.shape == (3, 8)
    np.testing.assert_allclose(features, on_onnx(images), atol=1e-4)
    # the network's own last layer makes its scores of them; the image is the crop already
    network = toy_networks.net()
    weight, bias = (parameter.detach().numpy() for parameter in network.linear.parameters())
    rest = toy("torch").at_input().model
    scores = features @ weight.T + bias
    expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(rest(images), expected, atol=1e-4)
    assert on_torch.recipe["layer"] == "what linear reads"
    assert len(on_torch.classes) == 8


def test_features_do_not_depend_on_the_batch_and_layers_have_names():
    images = patterns(48, 32, 4)
    features = embedder(toy("onnx"))
    np.testing.assert_array_equal(features(images)[2:3], features(images[2:3]))
    assert features([]).shape[0] == 0
    convolution = embedder(toy("torch"), "convolution")
    assert convolution(images).shape == (4, 8)
    assert convolution.fingerprint != embedder(toy("torch")).fingerprint
    with pytest.raises(UsageError, match="no layer named 'convolutoin'; did you mean"):
        embedder(toy("torch"), "convolutoin")


def test_a_function_is_its_own_embedder_and_a_detector_is_none():
    def means(images):
        return images.mean(axis=(1, 2))

    model = embedder(FunctionClassifier(means, size=16))
    assert model(patterns(20, 30, 2)).shape == (2, 3)
    with pytest.raises(UsageError, match="a function, whose layers cannot be read"):
        embedder(FunctionClassifier(means), "fc")

    class Detects:
        detects, name = True, "boxes"

    with pytest.raises(UsageError, match="boxes is a detector; embed with a classifier"):
        embedder(Detects())


def graph(nodes, weights):
    graph_proto = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, 4, 4])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    model = helper.make_model(
        graph_proto, opset_imports=[helper.make_opsetid("", 17)], ir_version=9
    )
    return model.SerializeToString()


def test_an_onnx_file_is_opened_before_its_last_product_with_weights():
    weights = {"w": np.eye(48, dtype=np.float32)[:, :5], "turned": np.eye(5, dtype=np.float32)}
    nodes = [
        helper.make_node("Flatten", ["images"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w"], ["five"]),
        helper.make_node("Transpose", ["turned"], ["weight"]),
        helper.make_node("MatMul", ["five", "weight"], ["out"]),
        helper.make_node("MatMul", ["out", "out_t"], ["scores"]),
    ]
    nodes.insert(4, helper.make_node("Transpose", ["out"], ["out_t"], perm=[1, 0]))
    session = OnnxSession(graph(nodes, weights), "file.onnx")
    image = np.arange(48, dtype=np.float32).reshape(1, 3, 4, 4)
    # the product of two things computed has no weights of its own
    inner, name = cut_graph(session)
    assert name == "five"
    assert inner(image).tolist() == [[0, 1, 2, 3, 4]]
    assert cut_graph(session, "flat")[0](image).shape == (1, 48)
    with pytest.raises(
        UsageError, match=r"no tensor of file\.onnx named 'flap'; did you mean 'flat'"
    ):
        cut_graph(session, "flap")
    plain = OnnxSession(graph([helper.make_node("Relu", ["images"], ["scores"])], {}), "plain")
    with pytest.raises(UsageError, match="'plain' has no layer with weights"):
        cut_graph(plain)


def test_a_layer_that_is_no_row_of_features_is_refused():
    weights = {"shape": np.array([2, 24], dtype=np.int64), "w": np.eye(24, dtype=np.float32)}
    nodes = [
        helper.make_node("Reshape", ["images", "shape"], ["two"]),
        helper.make_node("MatMul", ["two", "w"], ["three"]),
        helper.make_node("Flatten", ["three"], ["scores"], axis=0),
    ]
    session = OnnxSession(graph(nodes, weights), "two rows")
    recipe = Recipe(Preprocessing((4, 4), 4, (0.0,) * 3, (1.0,) * 3))
    model = classifier("two", None, recipe, session, "w", {})
    with pytest.raises(UsageError, match=r"output of shape \(2, 24\) for one image"):
        embedder(model)
