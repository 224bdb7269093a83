"""Fine-tuned detectors: their targets, losses, heads and folders, and refusals.

Weights are random: nothing is downloaded.
"""

import json
from dataclasses import replace

import cv2
import numpy as np
import pytest
import torch
from PIL import Image as Pillow

from steadyeye.core import plugins
from steadyeye.core.boxes import EMPTY, OOD, boxes
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import parse
from steadyeye.core.types import Classes
from steadyeye.models.detectors.trainable import learnable
from steadyeye.models.finetuned import checkpoint_format
from steadyeye.models.runtimes.torch_module import one_thread
from steadyeye.training import checkpoint
from steadyeye.training.batches import Lesson
from steadyeye.training.dataset import examples
from steadyeye.training.detection import detection
from steadyeye.training.hyperparameters import Constant, Course
from steadyeye.training.loop import train
from steadyeye.training.protocol import Example, Examples
from steadyeye.training.selection import Selection, data

SEQUENCES = {"blackswan": "bird", "car-shadow": "car", "dog": "dog", "goat": "goat"}
FRAMES = 4
SIDES = {"height": 64, "width": 96}
CLASSES = Classes(("bird", "dog"))
MOBILE = "fasterrcnn_mobilenet_v3_large_320_fpn"
pytestmark = pytest.mark.usefixtures("torchvision")


@pytest.fixture(autouse=True)
def _one_thread():
    with one_thread():
        yield


@pytest.fixture(scope="module")
def davis(test_data, tmp_path_factory):
    """A spec of four sequences: four frames of each at a quarter of the sides, a box in each."""
    root = tmp_path_factory.mktemp("davis")
    for kind in ("JPEGImages", "Annotations"):
        for sequence in SEQUENCES:
            (root / kind / sequence).mkdir(parents=True)
            files = sorted((test_data / "davis" / kind / sequence).iterdir())
            for number, file in enumerate(files[::5][:FRAMES]):
                frame = Pillow.open(file)
                small_frame = frame.resize((frame.width // 4, frame.height // 4), Pillow.NEAREST)
                small_frame.save(root / kind / sequence / f"{number:05d}{file.suffix}")
    rows = [f"{sequence},{name}" for sequence, name in SEQUENCES.items()]
    (root / "labels.csv").write_text("\n".join(["video,labels", *rows]))
    return f"davis(root='{root}', labels='{root / 'labels.csv'}', anchors='all', k=0)"


@pytest.fixture(scope="module")
def davis_examples(davis):
    return examples(plugins.build("sources", parse(davis)), boxed=True)


def save_detector(kind, folder, labels=("thing", "other"), **options):
    """A small random detector of transformers in a folder; its spec."""
    import transformers

    class_names = {"id2label": dict(enumerate(labels))}
    class_names["label2id"] = {name: i for i, name in enumerate(labels)}
    size = SIDES
    torch.manual_seed(7)
    if kind == "Yolos":
        settings = {"hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4}
        settings |= {"intermediate_size": 256, "image_size": list(SIDES.values())}
        settings |= {"num_detection_tokens": 10}
        settings |= dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), 0.0)
    else:
        stages = {"embedding_size": 16, "hidden_sizes": [16, 16, 32, 32]}
        stages |= {"depths": [1] * 4, "layer_type": "basic"}
        settings = {"decoder_layers": 2, "d_model": 32, "num_queries": 10, "decoder_ffn_dim": 32}
        settings |= {"encoder_ffn_dim": 32}
        settings |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    if kind == "Detr":
        stages["out_features"] = ["stage4"]
        settings |= {"use_timm_backbone": False, "encoder_layers": 2, "dropout": 0.0}
        settings["backbone_config"] = transformers.ResNetConfig(**stages)
        size = {"shortest_edge": 96, "longest_edge": 160}
    if kind == "RTDetr":
        stages["out_features"] = ["stage2", "stage3", "stage4"]
        settings |= {"encoder_hidden_dim": 32, "encoder_in_channels": [16, 32, 32]}
        settings |= {"decoder_in_channels": [32] * 3, "num_denoising": 10}
        settings["backbone_config"] = transformers.RTDetrResNetConfig(**stages)
    config = getattr(transformers, f"{kind}Config")(**settings, **class_names, **options)
    network = getattr(transformers, f"{kind}ForObjectDetection")(config)
    network.save_pretrained(folder)
    processor = {"image_processor_type": f"{kind}ImageProcessor", "size": size}
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    return f"hf(name='{folder}')"


KINDS = ("Yolos", "Detr", "RTDetr")


def build_model(spec):
    return plugins.build("models", parse(spec))


@pytest.fixture(scope="module")
def bases(tmp_path_factory):
    """Kind → (model, spec); training copies the model."""
    specs = {kind: save_detector(kind, tmp_path_factory.mktemp(kind.lower())) for kind in KINDS}
    return {kind: (build_model(spec), spec) for kind, spec in specs.items()}


def picture(height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 255, (height, width, 3), dtype=np.uint8)


def example(name, image, truth):
    return Example(name, name, lambda: image, tuple(set(truth.labels.tolist()) - {OOD}), truth)


def small(*more):
    """Two pictures with a box each and one without any object, of one size."""
    items = [
        example("one", picture(60, 100, 1), boxes([[10, 10, 50, 40]], [0])),
        example("two", picture(60, 100, 2), boxes([[30, 20, 90, 55]], [1])),
        example("none", picture(60, 100, 3), EMPTY),
        *more,
    ]
    return Examples("small", CLASSES, tuple(items), "small")


def ready(task, whole):
    return [task.prepare(item, task.fit(item.image())) for item in whole.items]


MIXED = boxes(
    [[-10, 20, 60, 70], [0, 0, 30, 30], [5, 5, 20, 25], [90, 40, 170, 99], [40, 8, 40, 20]],
    [1, 0, OOD, 0, 1],
    crowd=[False, True, False, False, False],
)
"""Over the border, a crowd, an object outside the classes, over the border, without area."""


def test_training_boxes_are_clipped_to_the_image():
    targets = learnable(MIXED, (100, 150))
    assert targets.boxes.tolist() == [[0, 20, 60, 70], [90, 40, 150, 99]]
    assert targets.labels.tolist() == [1, 0]
    assert targets.area.tolist() == [3000, 60 * 59]
    assert MIXED.boxes[0, 0] == -10
    # cut where the image is smaller still, and beyond its border nothing
    assert learnable(MIXED, (100, 80)).boxes.tolist() == [[0, 20, 60, 70]]


@pytest.mark.parametrize("kind", KINDS)
def test_targets_are_what_the_library_makes_of_the_same_boxes(kind, bases):
    import transformers

    image = picture(100, 150)
    folder = parse(bases[kind][1]).kwargs["name"]
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    annotations = [
        {"bbox": [x0, y0, x1 - x0, y1 - y0], "category_id": label, "area": 1.0, "iscrowd": int(c)}
        for (x0, y0, x1, y1), label, c in zip(MIXED.boxes, MIXED.labels, MIXED.crowd, strict=True)
        if label != OOD
    ]
    truth = {"image_id": 0, "annotations": annotations}
    encoding = processor(images=image, annotations=truth, return_tensors="pt")
    task = detection(*bases[kind], small())
    sample, truth = task.prepare(example("mixed", image, MIXED), image)
    assert truth is MIXED
    assert torch.equal(sample["input"]["pixel_values"], encoding["pixel_values"][0])
    (target,) = encoding["labels"]
    torch.testing.assert_close(sample["target"]["boxes"], target["boxes"])
    assert sample["target"]["class_labels"].tolist() == target["class_labels"].tolist() == [1, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_head_for_the_classes_of_the_data(kind, bases):
    model, spec = bases[kind]
    before = {name: weight.clone() for name, weight in model.copies.module.state_dict().items()}
    weights, again, other = (
        detection(model, spec, small(), seed=seed).module.state_dict() for seed in (0, 0, 1)
    )
    three = Examples("three", Classes(("a", "b", "c")), small().items, "three")
    wider = detection(model, spec, three).module
    assert wider.config.num_labels == 3
    head = {name for name, w in wider.state_dict().items() if w.shape != before[name].shape}
    assert head
    assert all("class" in name or "score" in name for name in head)
    # as many classes as before, and yet the head is new
    for name, tensor in weights.items():
        assert torch.equal(tensor, before[name]) == (name not in head) or tensor.ndim == 1
        assert torch.equal(tensor, again[name])
    changed = {name for name, tensor in weights.items() if not tensor.equal(other[name])}
    assert changed
    assert changed <= head
    after = model.copies.module.state_dict()
    assert all(torch.equal(weight, after[name]) for name, weight in before.items())


def steps(task, whole, n, rate=1e-3):
    """The losses of some steps on the whole, before each step."""
    prepared = ready(task, whole)
    learning = [parameter for parameter in task.module.parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam(learning, rate)
    task.module.train()
    losses = []
    for step in range(n):
        torch.manual_seed(step)
        loss = task.loss(task.module, prepared)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    task.module.eval()
    return losses


@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_falls_with_a_picture_without_objects_among_them(kind, bases):
    task = detection(*bases[kind], small())
    torch.manual_seed(0)
    with torch.autocast("cpu", torch.bfloat16):
        half = task.loss(task.module.train(), ready(task, small()))
        half.backward()
    losses = steps(task, small(), 12)
    assert half.item() == pytest.approx(losses[0], rel=0.1)
    assert np.isfinite(losses).all()
    # the normalisation of DETR and RT-DETR is frozen, over a backbone that is random here
    assert min(losses[-3:]) < losses[0] * (0.9 if kind == "Yolos" else 0.99)
    with torch.no_grad():
        measures = task.judge(task.module, [ready(task, small())])
    assert 0 <= measures["ap"] <= measures["ap50"] < 1 + 1e-9
    assert measures["n"] == 3


def test_pictures_of_several_sizes_are_learned_from_each_at_its_own(bases):
    tall = example("tall", picture(100, 60, 4), boxes([[5, 5, 50, 60]], [0]))
    task = detection(*bases["Detr"], small(tall))
    prepared = ready(task, small(tall))
    shapes = {tuple(sample["input"]["pixel_values"].shape) for sample, _ in prepared}
    assert len(shapes) == 2
    task.module.eval()
    with torch.no_grad():
        tall_loss = task.loss(task.module, prepared[3:])
        wide_loss = task.loss(task.module, prepared[:3])
        mixed = task.loss(task.module, [prepared[0], prepared[3], prepared[1], prepared[2]])
        torch.testing.assert_close(mixed, (tall_loss + 3 * wide_loss) / 4)
        together = task.judge(task.module, [prepared])
        apart = task.judge(task.module, [[pair] for pair in prepared])
    assert together["ap"] == pytest.approx(apart["ap"], abs=1e-6)


def test_a_batch_of_pictures_without_objects_has_a_loss(bases):
    empty = Examples("empty", CLASSES, (small().items[2],) * 2, "empty")
    task = detection(*bases["Yolos"], small())
    assert steps(task, empty, 2)[0] > 0
    with pytest.raises(UsageError, match="none of the 2 held-out images has an object"):
        task.judge(task.module, [ready(task, empty)])


def test_notes_count_the_boxes_that_no_loss_is_computed_of(bases):
    mixed = example("mixed", picture(100, 150), MIXED)
    notes = detection(*bases["Yolos"], small(mixed)).notes
    assert notes == (
        "4 boxes for training, cut at the border of their image",
        "1 box around crowds, left out of the loss",
        "1 box of objects outside the classes, left out of the loss",
        "1 box without any area, left out of the loss",
        "1 image without an object, used as background",
    )
    frozen = detection(*bases["Detr"], small())
    layers = [n for n, m in frozen.module.named_modules() if "FrozenBatchNorm" in type(m).__name__]
    weights = [n for n, weight in frozen.module.named_parameters() if not weight.requires_grad]
    assert layers
    assert frozen.record()["frozen"] == [*weights, *layers]
    assert f"{len(layers)} layers of batch normalisation frozen as" in frozen.notes[-1]


def test_crowds_and_objects_outside_in_the_judgement(bases):
    """Of two perfect detections and one of an object outside, the last is a false positive."""
    task = detection(*bases["Yolos"], small())
    truth = boxes([[0, 0, 20, 20], [30, 30, 60, 60], [0, 40, 20, 60]], [0, 0, OOD])
    detections = (
        torch.tensor([[0.0, 40, 20, 60], [0, 0, 20, 20], [30, 30, 60, 60]]),
        torch.tensor([0, 0, 0]),
        torch.tensor([0.9, 0.8, 0.7]),
    )
    fixed = replace(task.trainable, evaluate=lambda *_: (None, [detections]))
    fixed_task = replace(task, trainable=fixed)
    measures = fixed_task.judge(task.module, [[(None, truth)]])
    # precision 1/2 and 2/3: the best at a recall or beyond it is 2/3 throughout
    assert measures == {"ap": pytest.approx(2 / 3), "ap50": pytest.approx(2 / 3), "n": 1}
    crowd = boxes(truth.boxes, [0, 0, 0], crowd=[False, False, True])
    assert fixed_task.judge(task.module, [[(None, crowd)]])["ap"] == pytest.approx(1)


def check_answer(detector, model, task, image):
    """The detector that was read back answers as the module, the most confident first."""
    (detections,) = detector([image])
    with torch.inference_mode():
        expected = model.asking.detections(task.module, model.asking.prepare(image), image)
    corners, labels, scores = (tensor.double().numpy() for tensor in expected)
    order = np.argsort(-scores, kind="stable")
    assert len(detections) == len(corners) > 0
    assert np.array_equal(detections.boxes, corners[order])
    assert np.array_equal(detections.labels, labels[order])
    assert np.array_equal(detections.scores, scores[order])


def rebuild_detector(task, folder):
    checkpoint_format.write(folder, task.record(), task.module.state_dict())
    return build_model(f"torch(path='{folder}')")


@pytest.mark.parametrize("kind", KINDS)
def test_a_trained_detector_answers_from_its_folder_as_the_module_does(kind, bases, tmp_path):
    model, spec = bases[kind]
    task = detection(model, spec.replace(model.name, "nowhere"), small())
    steps(task, small(), 3)
    again = rebuild_detector(task, tmp_path / "ft")
    assert again.name == "ft"
    assert again.classes == CLASSES
    assert again.recipe["base"]["name"] == model.name
    assert again.recipe["runtime"] == "torch"
    for item in small().items:
        check_answer(again, model, task, item.image())
    # and it can be trained further, on other classes
    more = detection(again, f"torch(path='{tmp_path / 'ft'}')", small())
    assert np.isfinite(steps(more, small(), 1)).all()


def test_from_scratch_no_weight_stays(bases):
    weights, same = (
        detection(*bases["Yolos"], small(), from_scratch=True).module.state_dict() for _ in range(2)
    )
    base = bases["Yolos"][0].copies.module.state_dict()
    for name, weight in weights.items():
        assert torch.equal(weight, same[name])
        if weight.ndim > 1 and weight.std() > 0:
            assert not torch.equal(weight, base[name])


def test_untrainable_detectors_and_data_are_refused_in_one_line(bases, test_data, tmp_path):
    onnx = f"onnx_detector(path='{test_data}/models/yolox_nano.onnx', decoder='yolox')"
    masks = "torchvision(name='maskrcnn_resnet50_fpn', weights=None)"
    bare = Examples("bare", CLASSES, (Example("a", "a", lambda: picture(9, 9), (0,)),), "bare")
    for spec, whole, line in (
        (onnx, small(), "yolox_nano has no gradients to train by: it is run by onnx; give a"),
        (bases["Yolos"][1], bare, "'bare' has no boxes of its classes to train a detector on, in"),
        (masks, small(), "maskrcnn_resnet50_fpn trains on masks, not on boxes alone"),
    ):
        with pytest.raises(UsageError) as error:
            detection(build_model(spec), spec, whole)
        assert str(error.value).startswith(line)
        assert "\n" not in str(error.value)


def test_a_network_that_gives_what_is_no_number_is_no_traceback(bases):
    task = detection(*bases["Yolos"], small())
    with torch.no_grad():
        for parameter in task.module.parameters():
            parameter.fill_(float("nan"))
        measures = task.judge(task.module.eval(), [ready(task, small())])
    assert np.isnan(measures["ap"])


def fewer(module):
    """Limits the proposals, because torchvision's roi_align is Python here."""
    module.roi_heads.fg_bg_sampler.batch_size_per_image = 16
    module.rpn._pre_nms_top_n = {"training": 100, "testing": 100}
    module.rpn._post_nms_top_n = {"training": 30, "testing": 30}


@pytest.mark.slow
def test_faster_rcnn_learns_by_the_losses_of_torchvision(tmp_path):
    spec = f"torchvision(name='{MOBILE}', weights=None, size=[96, 160])"
    torch.manual_seed(0)
    model = build_model(spec)
    task = detection(model, spec, small())
    fewer(task.module)
    assert task.module.roi_heads.box_predictor.cls_score.out_features == 3
    kernel = task.module.backbone.body["0"][0].weight
    assert torch.equal(kernel, model.copies.module.backbone.body["0"][0].weight)
    sample, _ = task.prepare(small().items[1], small().items[1].image())
    assert sample["target"]["labels"].tolist() == [2]
    assert sample["target"]["boxes"].tolist() == [[30, 20, 90, 55]]
    assert sample["input"]["pixels"].shape == (3, 60, 100)
    losses = steps(task, small(), 2, rate=3e-4)
    assert np.isfinite(losses).all()
    assert losses[-1] < losses[0]
    state = {name: tensor.clone() for name, tensor in task.module.state_dict().items()}
    with torch.no_grad():
        measures, again = (task.judge(task.module, [ready(task, small())]) for _ in range(2))
    assert measures == again
    assert np.isfinite(measures["loss"])
    # the held loss is taken with the layers in eval mode: no running mean moves
    assert all(torch.equal(tensor, state[n]) for n, tensor in task.module.state_dict().items())
    assert not any(layer.training for layer in task.module.modules())
    detector = rebuild_detector(task, tmp_path / "ft")
    fewer(detector.copies.module)
    check_answer(detector, model, task, small().items[0].image())
    assert detector.recipe["min_size"] == [96]


def test_faster_rcnn_over_resnet_101_has_the_parts_of_that_over_resnet_50(torchvision):
    from steadyeye.models.detectors.torchvision_networks import Settings, network

    with torch.device("meta"):
        fifty, more = (network(f"fasterrcnn_resnet{n}_fpn", 90, Settings()) for n in (50, 101))
    assert len(more.backbone.body.layer3) == 23
    shapes = {name: weight.shape for name, weight in more.state_dict().items()}
    for name, tensor in fifty.state_dict().items():
        assert shapes[name] == tensor.shape
    extra = set(shapes) - set(fifty.state_dict())
    assert extra
    assert all(name.startswith("backbone.body.layer3.") for name in extra)
    assert more.eval().transform([torch.zeros(3, 120, 160)])[0].tensors.shape[-1] == 1088


@pytest.mark.slow
def test_a_trained_backbone_stays_frozen_where_torchvision_freezes_it(
    tmp_path, monkeypatch, torchvision
):
    from steadyeye.models.detectors import torchvision_networks

    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    cache = tmp_path / "hub" / "checkpoints"
    cache.mkdir(parents=True)
    entry = torchvision.models.ResNet101_Weights.DEFAULT
    with torch.device("meta"):
        state = torchvision.models.resnet101(weights=None).state_dict()
    weights = {name: torch.zeros(tensor.shape) for name, tensor in state.items()}
    kernel = weights["layer4.0.conv1.weight"].normal_()
    torch.save(weights, cache / entry.url.rpartition("/")[2])
    spec = "torchvision(name='fasterrcnn_resnet101_fpn')"
    model, again = build_model(spec), build_model(spec)
    assert model.fingerprint == again.fingerprint
    task = detection(model, spec, small())
    body = task.module.backbone.body
    assert torch.equal(body.layer4[0].conv1.weight, kernel)
    assert not body.layer1[0].conv1.weight.requires_grad
    assert body.layer2[0].conv1.weight.requires_grad
    assert not [m for m in task.module.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    assert any(note.endswith("first 'backbone.body.conv1.weight'") for note in task.notes)
    assert any("104 layers of batch normalisation frozen as" in note for note in task.notes)
    record = task.record()["detector"]
    with torch.device("meta"):
        chosen = torchvision_networks.settings_of(record["settings"])
        again = torchvision_networks.network(record["network"], len(CLASSES), chosen)
        free = detection(model, spec, small(), from_scratch=True)
    assert torchvision_networks.settings(again).frozen == 1e-5
    assert again.state_dict().keys() == task.module.state_dict().keys()
    assert free.record()["frozen"] == []
    assert isinstance(free.module.backbone.body.bn1, torch.nn.BatchNorm2d)
    assert free.record()["detector"]["settings"]["frozen"] is None


def test_impossible_sizes_of_torchvision_are_refused(tmp_path):
    for spec, line in (
        ("ssdlite320_mobilenet_v3_large', weights=None, size=[96, 96]", "has a fixed image size"),
        (f"{MOBILE}', weights=None, size=[96]", "give the shorter side and the most"),
        ("resnet18', weights=None, size=[96, 96]", "is for detectors"),
    ):
        with pytest.raises(UsageError, match=line):
            build_model(f"torchvision(name='{spec})")


def test_frames_of_davis_are_examples_with_boxes(davis_examples):
    assert len(davis_examples.items) == 4 * FRAMES
    assert davis_examples.classes.names == ("bird", "car", "dog", "goat")
    assert all(len(item.boxes) == 1 for item in davis_examples.items)


@pytest.mark.slow
def test_a_detector_learns_the_boxes_of_davis(davis_examples, bases, tmp_path):
    from toy_training import RecordingWatcher

    task = detection(*bases["Yolos"], davis_examples)
    how = {"optimizer": "adam", "rate": 1e-3, "schedule": Constant()}
    course = Course(iterations=60, batch=8, round=30, **how)
    lesson = Lesson(task, davis_examples, davis_examples)
    went = train(lesson, course, tmp_path / "checkpoints", RecordingWatcher())
    assert went.start["ap"] < 0.02
    assert went.best.measures["ap"] > 0.2
    assert went.best.measures["ap50"] > 0.45
    assert went.best.measures["loss"] < 0.5 * went.start["loss"]
    state = checkpoint.read(checkpoint.path(tmp_path / "checkpoints", went.best.step))
    checkpoint_format.write(tmp_path / "ft", task.record(), state.module)
    again = build_model(f"torch(path='{tmp_path / 'ft'}')")
    sure = [again([item.image()])[0] for item in davis_examples.items]
    labels = [item.labels[0] for item in davis_examples.items]
    assert np.mean([detections.labels[0] for detections in sure] == np.array(labels)) > 0.7


def test_images_without_objects_are_learned_from_and_one_class_is_enough(test_data, tmp_path):
    annotations = test_data / "coco/tinycoco/annotations/instances_train2017.json"
    content = json.loads(annotations.read_text())
    only = content["categories"][0]
    content["categories"] = [only]
    content["annotations"] = [a for a in content["annotations"] if a["category_id"] == only["id"]]
    (tmp_path / "one.json").write_text(json.dumps(content))
    images = test_data / "coco/tinycoco/images/train2017"
    text = f"coco(annotations='{tmp_path / 'one.json'}', images='{images}')"
    source = plugins.build("sources", parse(text))
    image_ids = {str(a["image_id"]) for a in content["annotations"] if not a["iscrowd"]}
    training_set = examples(source, boxed=True)
    assert len(training_set.items) == len(content["images"]) > len(image_ids) > 1
    assert {item.id for item in training_set.items if item.labels} == image_ids
    assert {item.id for item in examples(source).items} == image_ids
    sides = data(source, None, Selection(holdout=0.3, boxed=True))
    assert len(sides.train.items) + len(sides.validation.items) == len(content["images"])
    with pytest.raises(UsageError, match="at least two classes are needed"):
        data(source, None, Selection(holdout=0.3))


def test_boxes_of_an_image_of_another_size_are_not_learned(tmp_path):
    """A picture that was made smaller after it was annotated: its boxes would lie elsewhere."""
    images = []
    for number, size in ((1, (60, 80)), (2, (30, 40))):
        cv2.imwrite(str(tmp_path / f"{number}.png"), np.zeros((*size, 3), np.uint8))
        name = f"{number}.png"
        images.append({"id": number, "file_name": name, "height": 60, "width": 80})
    boxes = [
        {"id": i, "image_id": i, "category_id": 1, "bbox": [5, 5, 20, 20], "iscrowd": 0}
        for i in (1, 2)
    ]
    categories = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
    content = {"images": images, "annotations": boxes, "categories": categories}
    (tmp_path / "b.json").write_text(json.dumps(content))
    text = f"coco(annotations='{tmp_path / 'b.json'}', images='{tmp_path}')"
    source = plugins.build("sources", parse(text))
    right, smaller = examples(source, boxed=True).items
    assert right.image().shape == (60, 80, 3)
    with pytest.raises(UsageError, match="'2' are of an image of 80 × 60 pixels, but it has 40"):
        smaller.image()
    # a label holds of the picture in any size
    assert examples(source, several=True).items[1].image().shape == (30, 40, 3)
