"""Fine-tuned classifiers: heads of every library, both losses, and folders read back."""

import os
import shutil
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch
import toy_networks
from forged_records import forge_record
from gpu_marks import on_a_gpu
from tiny_vit import save_vit
from toy_classifiers import NET, build_examples, noise
from toy_training import RecordingWatcher

from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import parse
from steadyeye.core.types import Classes
from steadyeye.data.images import image_file
from steadyeye.models.finetuned import checkpoint_format
from steadyeye.models.finetuned.heads import heads, with_head
from steadyeye.models.runtimes import uninitialised
from steadyeye.training import checkpoint
from steadyeye.training.augmentation import mirror_images
from steadyeye.training.batches import Lesson
from steadyeye.training.classification import FEWEST, Learning, classification
from steadyeye.training.dataset import examples
from steadyeye.training.hyperparameters import Course
from steadyeye.training.loop import train

LITE0 = "efficientnet_lite0(runtime='torch')"
SEQUENCES = {"blackswan": "swan", "car-shadow": "car", "dog": "dog", "goat": "goat"}
pytestmark = pytest.mark.usefixtures("own_cache", "torchvision")


@pytest.fixture(scope="module")
def lite0():
    return build_model(LITE0)


@pytest.fixture
def net(tmp_path):
    (tmp_path / "ten.txt").write_text("\n".join(f"class {i}" for i in range(10)))
    return NET.format(tmp_path / "ten.txt")


@pytest.fixture
def photos(test_data):
    return [image_file.read(test_data / "photos" / name) for name in ("hot_dog.jpg", "pets.jpg")]


@pytest.fixture(scope="module")
def davis(test_data, tmp_path_factory):
    """16 frames: four of each of four sequences."""
    root = tmp_path_factory.mktemp("davis")
    rows = [f"{video},{label}" for video, label in SEQUENCES.items()]
    (root / "labels.csv").write_text("\n".join(["video,labels", *rows]))
    for kind in ("JPEGImages", "Annotations"):
        (root / kind).mkdir()
        for video in SEQUENCES:
            (root / kind / video).symlink_to(test_data / "davis" / kind / video)
    spec = f"davis(root='{root}', labels='{root}/labels.csv', anchors=4, k=0)"
    return examples(plugins.build("sources", parse(spec)))


def build_model(spec):
    return plugins.build("models", parse(spec))


def save(task, folder):
    """The spec of the folder that a training writes."""
    checkpoint_format.write(folder, task.record(), task.module.state_dict())
    return f"torch(path='{folder}')"


def call_refused(call, *arguments):
    """The one line with which a call is refused."""
    with pytest.raises(UsageError) as error:
        call(*arguments)
    assert "\n" not in str(error.value)
    return str(error.value)


def softmaxed(net):
    return toy("softmaxed", net).replace("'size': 64", "'size': 64, 'output': 'probabilities'")


def prepare_batch(task, training_set):
    return [task.prepare(example, task.fit(example.image())) for example in training_set.items]


def train_module(task, batch, steps, rate=1e-3):
    """A copy of the task's module after some steps of Adam on one batch, and the losses."""
    torch.manual_seed(0)
    module, losses = task.module.train(), []
    optimizer = torch.optim.Adam(module.parameters(), rate)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = task.loss(module, batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return module.eval(), losses


def judge_batch(task, module, batch):
    with torch.no_grad():
        return task.judge(module, [batch[:10], batch[10:]] if len(batch) > 10 else [batch])


def test_lite0_overfits_8_frames_and_is_read_back(lite0, davis, tmp_path):
    frames = replace(davis, items=davis.items[::2])
    task = classification(lite0, LITE0, frames)
    assert task.record()["head"] == {"layers": ["_fc"], "kept": False}
    batch = prepare_batch(task, frames)
    before = judge_batch(task, task.module.eval(), batch)
    module = task.module
    losses = learned_head(task, module._fc, features(module, batch))
    after = judge_batch(task, module, batch)
    assert before["accuracy"] < 0.6
    assert after["accuracy"] == 1.0
    assert after["loss"] < 0.1 < before["loss"]
    assert losses[-1] < losses[0] / 5
    assert after["n"] == 8

    model = build_model(save(task, tmp_path / "models" / "ft"))
    assert model.recipe["runtime"] == "onnx", model.recipe
    assert model.cacheable
    assert model.name == "ft"
    assert model.classes == davis.classes
    assert model.recipe["base"] == {
        "spec": LITE0,
        "name": "efficientnet_lite0",
        "fingerprint": lite0.fingerprint,
    }
    expected = {"name": davis.name, "fingerprint": davis.fingerprint, "n": 8}
    assert expected.items() <= model.recipe["trained on"].items()
    images = [example.image() for example in frames.items[::3]]
    # one image a pass, as the model takes them
    with torch.no_grad():
        expected = torch.cat([module(inputs[None]).softmax(1) for inputs, *_ in batch[::3]]).numpy()
    scores = model(images)
    np.testing.assert_allclose(scores, expected, atol=1e-4)
    right = [example.labels[0] for example in frames.items[::3]]
    assert scores.argmax(axis=1).tolist() == right


class InterruptAfter(RecordingWatcher):
    """Presses Ctrl-C in the step after so many."""

    def __init__(self, steps):
        super().__init__()
        self.steps = steps

    def show_loss(self, name, loss):
        super().show_loss(name, loss)
        self.steps -= 1
        if not self.steps:
            os.kill(os.getpid(), signal.SIGINT)


@on_a_gpu
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_a_gpu_repeats_a_training_and_one_that_was_interrupted(precision, lite0, davis, tmp_path):
    course = Course(epochs=2, batch=4, rate=1e-3, every=1, precision=precision)

    def trained(name, watcher):
        task = classification(lite0, LITE0, davis)
        return train(Lesson(task, davis, davis), course, tmp_path / name, watcher)

    histories = [trained(name, RecordingWatcher()) for name in ("first", "again")]
    with pytest.raises(KeyboardInterrupt):
        trained("interrupted", InterruptAfter(5))
    histories.append(trained("interrupted", RecordingWatcher()))
    assert histories[0].losses == histories[1].losses == histories[2].losses
    last = [
        checkpoint.read(checkpoint.path(tmp_path / name, 8)).module
        for name in ("first", "again", "interrupted")
    ]
    for name, value in last[0].items():
        assert all(torch.equal(value, other[name]) for other in last[1:]), name


def features(module, batch):
    """What the head reads of each example, with its labels: the rest of the network stays."""
    read = []
    handle = module._fc.register_forward_hook(lambda _, inputs, __: read.append(inputs[0]))
    with torch.no_grad():
        module(torch.stack([example[0] for example in batch]))
    handle.remove()
    return [(row, *example[1:]) for row, example in zip(read[0], batch, strict=True)]


def learned_head(task, head, batch):
    """The losses of a head that learns in place."""
    losses = []
    optimizer = torch.optim.Adam(head.parameters(), 1e-2)
    for _ in range(40):
        optimizer.zero_grad()
        loss = task.loss(head, batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


LIBRARIES = [
    ("torchvision(name='squeezenet1_1', weights=None)", ["classifier.1"]),
    ("timm(name='deit_tiny_distilled_patch16_224', pretrained=False)", ["head", "head_dist"]),
]


@pytest.mark.parametrize(("spec", "layers"), LIBRARIES, ids=[spec for spec, _ in LIBRARIES])
def test_heads_of_libraries_are_replaced_and_read_back(spec, layers, tmp_path, photos):
    base = build_model(spec.replace(")", ", runtime='torch')"))
    before = {name: weight.clone() for name, weight in base.gradient.module.state_dict().items()}
    task = classification(base, spec, build_examples([[0], [1], [2]]))
    assert task.record()["head"]["layers"] == layers
    tuned, after = task.module.state_dict(), base.gradient.module.state_dict()
    assert all(tuned[f"{layer}.weight"].shape[0] == 3 for layer in layers)
    assert all(torch.equal(after[name], before[name]) for name in before), "the base stays"
    again = with_head(base.gradient.module, task.preprocessing.size, 3).state_dict()
    assert all(torch.equal(weight, again[name]) for name, weight in tuned.items())
    model = build_model(save(task, tmp_path / "ft").replace(")", ", runtime='torch')"))
    pixels = [torch.from_numpy(_input(task, photo))[None] for photo in photos]
    with torch.no_grad():
        expected = torch.cat([task.module.eval()(tensor).softmax(1) for tensor in pixels]).numpy()
    np.testing.assert_allclose(model(photos), expected, atol=1e-6)
    assert model.settings == base.settings


def _input(task, photo):
    return task.prepare(build_examples([[0]]).items[0], task.fit(photo))[0].numpy()


@pytest.mark.slow
def test_a_network_that_its_weights_change_is_built_with_them(tmp_path, monkeypatch, torchvision):
    """GoogLeNet: with weights torchvision changes its input and takes its auxiliary heads away."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    cache = tmp_path / "home" / "hub" / "checkpoints"
    cache.mkdir(parents=True)
    torch.manual_seed(0)
    library = torchvision.models.googlenet(init_weights=False)
    entry = torchvision.models.get_model_weights("googlenet").DEFAULT
    torch.save(library.state_dict(), cache / entry.url.rpartition("/")[2])
    spec = "torchvision(name='googlenet', runtime='torch')"
    training_set = build_examples([[0], [1], [2]])
    base = build_model(spec)
    task = classification(base, spec, training_set)
    # it was built so and compared before the training
    assert task.record()["bare"] is False
    fresh = classification(base, spec, training_set, Learning(from_scratch=True))
    assert fresh.record()["bare"] is True
    loss = fresh.loss(fresh.module.train(), prepare_batch(fresh, training_set))
    assert loss.item() > 0, "the main head's alone, though three give scores"


def test_a_network_that_cannot_be_built_again_is_refused_at_once(net):
    spec = toy("moody", net)
    with pytest.raises(UsageError, match="cannot be built again after training: every build"):
        classification(build_model(spec), spec, build_examples([[0], [1]]))


def test_transformers_learn_are_read_back_and_begin_from_scratch(tmp_path, photos):
    processor = {"image_processor_type": "ViTImageProcessor", "size": {"height": 64, "width": 64}}
    folder = save_vit(tmp_path / "tiny", processor, ("ant", "bee", "cow", "doe"))
    spec = f"hf(name='{folder}', runtime='torch')"
    base = build_model(spec)
    training_set = build_examples([[i % 3] for i in range(12)])
    task = classification(base, spec, training_set)
    assert task.record()["head"]["layers"] == ["model.classifier"]
    batch = prepare_batch(task, training_set)
    module, losses = train_module(task, batch, 60, rate=1e-2)
    assert losses[-1] < losses[0] / 5
    model = build_model(save(task, tmp_path / "ft"))
    with torch.no_grad():
        expected = torch.cat([module(example[0][None]).softmax(1) for example in batch]).numpy()
    answered = model([example.image() for example in training_set.items])
    np.testing.assert_allclose(answered, expected, atol=1e-4)

    fresh = classification(base, spec, training_set, Learning(from_scratch=True, seed=3))
    fresh_weights, before = fresh.module.state_dict(), base.gradient.module.state_dict()
    common = before.keys() & fresh_weights.keys()
    same = [name for name in common if torch.equal(fresh_weights[name], before[name])]
    # what every model of the kind begins with: ones and zeros
    assert all(before[name].std() == 0 for name in same), same


def test_a_base_that_answers_in_the_classes_keeps_its_head(net, tmp_path):
    base = build_model(net)
    task = classification(base, net, build_examples([[0], [1]], base.classes))
    assert task.record()["head"] == {"layers": ["linear"], "kept": True}
    own = base.gradient.module
    assert torch.equal(task.module.linear.weight, own.linear.weight)
    assert task.module is not own


def test_a_tuned_model_is_trained_further_and_remembers_its_first_base(net, tmp_path, photos):
    first = classification(build_model(net), net, build_examples([[0], [1], [2]]))
    spec = save(first, tmp_path / "one").replace(")", ", runtime='torch')")
    four = build_examples([[0], [3]], Classes(("a", "b", "c", "d")))
    second = classification(build_model(spec), spec, four, Learning(several=True))
    assert second.record()["build"] == net
    assert second.record()["base"]["name"] == "one"
    two = save(second, tmp_path / "two")
    shutil.rmtree(tmp_path / "one")
    assert build_model(two)(photos).shape == (2, 4)
    # and from independent probabilities back to one label
    spec = two.replace(")", ", runtime='torch')")
    third = classification(build_model(spec), spec, build_examples([[0], [1], [2]]))
    assert third.output == "logits"
    scores = build_model(save(third, tmp_path / "three"))(photos)
    np.testing.assert_allclose(scores.sum(axis=1), 1)


def test_several_labels_are_learned_as_probabilities_of_their_own(net, tmp_path):
    training_set = build_examples([[0, 1], [1], [2, 0], [0]] * 3)
    task = classification(build_model(net), net, training_set, Learning(several=True))
    batch = prepare_batch(task, training_set)
    with torch.no_grad():
        scores = task.module(torch.stack([example[0] for example in batch])).double().numpy()
    truth = np.zeros_like(scores)
    for row, labelled_image in enumerate(training_set.items):
        truth[row, list(labelled_image.labels)] = 1
    chance = 1 / (1 + np.exp(-scores))
    expected = -(truth * np.log(chance) + (1 - truth) * np.log(1 - chance)).mean()
    assert task.loss(task.module, batch).item() == pytest.approx(expected, rel=1e-5)
    right = np.mean([truth[row, best] for row, best in enumerate(scores.argmax(axis=1))])
    assert judge_batch(task, task.module, batch)["accuracy"] == pytest.approx(right)

    folder = save(task, tmp_path / "ft")
    for runtime in ("torch", "onnx"):
        model = build_model(folder.replace(")", f", runtime='{runtime}')"))
        assert model.settings.output == "probabilities"
        answered = model([example.image() for example in training_set.items])
        np.testing.assert_allclose(answered, chance, atol=1e-5)
        assert not np.allclose(answered.sum(axis=1), 1)


def test_a_class_that_nobody_verified_counts_for_nothing(net):
    training_set = build_examples([[0]], verified=(0, 2))
    task = classification(build_model(net), net, training_set, Learning(several=True))
    batch = prepare_batch(task, training_set)
    with torch.no_grad():
        chance = task.module(batch[0][0][None]).sigmoid()[0].double()
    expected = -(chance[0].log() + (1 - chance[2]).log()) / 2
    assert task.loss(task.module, batch).item() == pytest.approx(float(expected), rel=1e-5)


def test_any_label_of_an_image_is_right(net):
    training_set = build_examples([[0, 1], [2]])
    task = classification(build_model(net), net, training_set)
    with torch.no_grad():
        task.module.linear.weight.zero_()
        task.module.linear.bias.copy_(torch.tensor([0.0, 1.0, 0.5]))
    measures = judge_batch(task, task.module, prepare_batch(task, training_set))
    assert measures["accuracy"] == 0.5, "class 1 of the first, though class 0 is what it learns"
    total = np.exp([0.0, 1.0, 0.5]).sum()
    assert measures["loss"] == pytest.approx(np.log(total) - 0.25, rel=1e-5)


def test_the_new_head_is_drawn_by_its_seed_alone(net):
    def head(seed):
        two, learning = build_examples([[0], [1]]), Learning(seed=seed)
        return classification(build_model(net), net, two, learning).module.linear

    torch.manual_seed(1)
    layer = head(0)
    torch.manual_seed(2)
    assert torch.equal(layer.weight, head(0).weight)
    assert not torch.equal(layer.weight, head(1).weight)
    assert layer.weight.abs().max().item() <= 1 / np.sqrt(8)
    # as drawn here; another machine draws the same
    assert layer.weight[0, :3].tolist() == pytest.approx(HEAD, abs=1e-7)


HEAD = [0.16883063, -0.26715359, 0.10244925]


def toy(name, net):
    """The spec of a network of `finetune_toys`, with the ten classes of `net`."""
    return net.replace("toy_networks:net", f"finetune_toys:{name}")


def test_small_batches_leave_batch_normalisation_as_it_is(net):
    spec = toy("normed", net)
    training_set = build_examples([[0], [1]] * FEWEST)
    task = classification(build_model(spec), spec, training_set)
    batch = prepare_batch(task, training_set)
    norm = task.module.train().norm
    before = norm.running_mean.clone()
    with torch.no_grad():
        for few in (batch[: FEWEST - 1], batch[:1]):
            task.loss(task.module, few)
        assert torch.equal(norm.running_mean, before)
        assert norm.training, "settled only while the loss is taken"
        task.loss(task.module, batch[:FEWEST])
    assert not torch.equal(norm.running_mean, before)
    fresh = classification(build_model(spec), spec, training_set, Learning(from_scratch=True))
    assert fresh.fewest == 2


@pytest.mark.parametrize(
    "spec", ["torchvision(name='mobilenet_v3_small', weights=None)", "{normed}"]
)
def test_training_from_scratch_initialises_every_weight_by_the_seed(spec, net):
    spec = spec.format(normed=toy("normed", net))
    base = build_model(spec)

    def fresh(seed):
        learning = Learning(from_scratch=True, seed=seed)
        return classification(base, spec, build_examples([[0], [1]]), learning).module

    module, again, other = fresh(0), fresh(0), fresh(1)
    before = base.gradient.module.state_dict()
    for name, weight in module.named_parameters():
        assert torch.equal(weight, again.get_parameter(name)), name
        if weight.ndim > 1:
            assert not torch.equal(weight, other.get_parameter(name)), name
            if weight.shape == before[name].shape:
                assert not torch.equal(weight, before[name]), name
    means = [buffer for name, buffer in module.named_buffers() if name.endswith("running_mean")]
    assert means
    assert not any(mean.any() for mean in means), "what batch normalisation learned is forgotten"


def test_bases_that_cannot_be_trained_are_refused(net, tmp_path, lite0):
    training_set = build_examples([[0], [1]])

    network = toy_networks.net()
    torch.jit.trace(network, torch.zeros(1, 3, 64, 64)).save(tmp_path / "net.pt")
    traced = net.replace("py:toy_networks:net", str(tmp_path / "net.pt"))
    torch.onnx.export(network, (torch.zeros(1, 3, 64, 64),), tmp_path / "net.onnx", dynamo=False)
    onnx = net.replace("torch(", "onnx(").replace("py:toy_networks:net", f"{tmp_path}/net.onnx")
    onnx = onnx.replace("runtime='torch', ", "")
    function = "callable(path='py:toy_networks:brightness')"
    ungradable = "has no gradients to train by: it is run by"
    for spec, line, learning in (
        (toy("stuck", net), "1 weight of Stuck cannot be reset, first 'gain'", {"from_scratch": 1}),
        (toy("headless", net), "no fully connected layer or 1 × 1 convolution of Headless", {}),
        (softmaxed(net), "a softmax, which cannot be trained on several labels", {"several": True}),
        (traced, "is compiled, and its head cannot be replaced", {}),
        (onnx, f"{ungradable} onnx; give the torch model", {}),
        (function, f"brightness {ungradable} python", {}),
    ):
        arguments = (build_model(spec), spec, training_set, Learning(**learning))
        assert line in call_refused(classification, *arguments)


def test_a_detector_is_no_classifier(net):
    spec = "torchvision(name='ssdlite320_mobilenet_v3_large', weights=None)"
    with pytest.raises(UsageError, match="is a detector; give a classifier"):
        classification(build_model(spec), spec, build_examples([[0], [1]]))


def test_networks_that_end_in_a_softmax_learn_too(net, tmp_path):
    spec = softmaxed(net)
    training_set = build_examples([[0], [1], [2]])
    task = classification(build_model(spec), spec, training_set)
    batch = prepare_batch(task, training_set)
    with torch.no_grad():
        chance = task.module.eval()(torch.stack([example[0] for example in batch]))
    expected = -chance[range(3), range(3)].log().mean()
    assert judge_batch(task, task.module, batch)["loss"] == pytest.approx(float(expected), rel=1e-5)
    model = build_model(save(task, tmp_path / "ft"))
    answered = model([example.image() for example in training_set.items])
    np.testing.assert_allclose(answered, chance.numpy(), atol=1e-5)


def test_folders_that_hold_no_model_are_refused(net, tmp_path):
    folder = tmp_path / "ft"
    folder.mkdir()
    spec = f"torch(path='{folder}')"

    def read_refusal(more=""):
        return call_refused(build_model, spec.replace(")", f"{more})"))

    missing = f"the folder '{folder}' has no model.json; give one that finetune wrote"
    assert missing in read_refusal()
    task = classification(build_model(net), net, build_examples([[0], [1]]))
    save(task, folder)
    assert "sets its classes itself; leave out classes=" in read_refusal(", classes='vid30'")
    written = (folder / "model.json").read_text()
    weights = (folder / "weights.pt").read_bytes()
    (folder / "weights.pt").write_bytes(weights[:-10])
    assert "weights.pt' does not match model.json; copy both" in read_refusal()
    (folder / "weights.pt").unlink()
    assert "weights.pt' does not match model.json; copy both" in read_refusal()
    (folder / "weights.pt").write_bytes(weights)
    (folder / "model.json").write_text(written.replace('"version": 1', '"version": 2'))
    changed = "model.json' was changed after finetune wrote it; copy it again or run finetune"
    assert changed in read_refusal()
    (folder / "model.json").write_text(written)
    forge_record(folder / "model.json", lambda record: record.update(version=2))
    assert "holds a classifier of version 2; this steadyeye reads 1" in read_refusal()
    (folder / "model.json").write_text(written[:100])
    assert changed in read_refusal()
    (folder / "model.json").write_text(written)
    checkpoint_format.write(folder, task.record(), {"linear.weight": torch.zeros(3, 8)})
    assert "weights.pt' does not fit: '" in read_refusal()
    (tmp_path / "ten.txt").unlink()
    assert f"'{folder}' is built from {net}: no class list at" in read_refusal()


def test_the_architecture_is_built_without_weights():
    gone = "checkpoint='no/such/file.pth', classes='no/such.txt'"
    spec = f"timm(name='mobilenetv3_small_050', {gone}, precision='bf16')"
    model = uninitialised.bare(spec, seed=1)
    assert model.recipe["runtime"] == "torch"
    again = uninitialised.bare(spec, seed=1)
    assert model.fingerprint == again.fingerprint != uninitialised.bare(spec, seed=2).fingerprint


def test_a_new_head_leaves_the_random_numbers_of_torch_unchanged():
    network = toy_networks.net()
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    uninitialised.reset(network, 0)
    with_head(network, (64, 64), 3)
    assert torch.equal(torch.rand(3), expected)


def test_half_of_the_images_are_mirrored_by_their_names_and_epochs():
    image = noise(0)
    augment = mirror_images(seed=1)
    turned = [np.array_equal(augment(image, f"{i}", 0), image[:, ::-1]) for i in range(200)]
    assert 70 < sum(turned) < 130
    assert turned == [np.array_equal(augment(image, f"{i}", 0), image[:, ::-1]) for i in range(200)]
    epochs = {np.array_equal(augment(image, "a", epoch), image) for epoch in range(20)}
    assert epochs == {True, False}
    darker = mirror_images(lambda pixels, _id, _epoch: pixels // 2, seed=1)
    assert np.array_equal(darker(image, "0", 0), augment(image, "0", 0) // 2)
    assert np.array_equal(image, noise(0))


def test_heads_run_beside_each_other_or_alone():
    assert heads(toy_networks.net(), (64, 64)).layers == ("linear",)
    assert heads(toy_networks.net(), (64, 64)).width == 10
