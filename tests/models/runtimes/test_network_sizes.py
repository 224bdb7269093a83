"""Configurations of transformers against the headers of their weights, of several architectures."""

import json

import pytest
import torch

from steadyeye.core.errors import UsageError
from steadyeye.models.runtimes.network_sizes import check_config, check_file

pytestmark = pytest.mark.usefixtures("torchvision")  # transformers imports it

RESNET = {
    "model_type": "resnet",
    "embedding_size": 8,
    "hidden_sizes": [8, 16, 16, 16],
    "depths": [1, 1, 1, 1],
}
STAGES = [[8, 8, 16, 1], [16, 8, 24, 1], [24, 8, 32, 1], [32, 8, 1024, 1]]
HGNET = {
    "model_type": "hgnet_v2",
    "stem_channels": [3, 8, 8],
    "stage_in_channels": [stage[0] for stage in STAGES],
    "stage_mid_channels": [stage[1] for stage in STAGES],
    "stage_out_channels": [stage[2] for stage in STAGES],
    "stage_num_blocks": [1, 1, 1, 1],
    "stage_numb_of_layers": [1, 1, 1, 1],
    "out_features": ["stage2", "stage3", "stage4"],
}
SMALL = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "num_queries": 4}
FEED = {"encoder_ffn_dim": 32, "decoder_ffn_dim": 32}
RT = {
    **FEED,
    "d_model": 16,
    "encoder_hidden_dim": 16,
    "encoder_in_channels": [16, 16, 16],
    "decoder_in_channels": [16, 16, 16],
    "num_queries": 4,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
}
ARCHITECTURES = {
    "vit": {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 32},
    "convnext": {"hidden_sizes": [8, 16, 16, 16], "depths": [1, 1, 1, 1]},
    "swin": {"embed_dim": 8, "depths": [1, 1], "num_heads": [1, 1], "image_size": 64},
    "resnet": RESNET,
    "efficientnet": {"width_coefficient": 0.1, "depth_coefficient": 0.1, "hidden_dim": 64},
    "detr": {**SMALL, **FEED, "backbone": None, "backbone_config": RESNET},
    "yolos": {
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "image_size": [64, 96],
    },
    "rt_detr": {**RT, "backbone_config": {**RESNET, "model_type": "rt_detr_resnet"}},
    "d_fine": {
        **RT,
        "backbone_config": HGNET,
        "encoder_in_channels": [24, 32, 1024],
        "decoder_layers": 2,
    },
}
HUGE = {
    "vit": {"num_hidden_layers": 2**53 + 1, "intermediate_size": 10**12, "image_size": 100_000},
    "convnext": {"depths": [1, 1, 10**9, 1], "hidden_sizes": [8, 16, 16, 10**6]},
    "swin": {"depths": [10**6, 1], "mlp_ratio": 1e6, "embed_dim": 2**20},
    "resnet": {"depths": [1, 1, 1, 5000], "hidden_sizes": [8, 16, 16, 10**5], "num_labels": 10**8},
    "efficientnet": {"depth_coefficient": 1e4, "width_coefficient": 1e5, "hidden_dim": 10**7},
    "detr": {"num_queries": 10**9, "encoder_layers": 10**7, "decoder_ffn_dim": 10**6},
    "yolos": {"num_detection_tokens": 10**8, "image_size": [10**5, 10**5]},
    "rt_detr": {"decoder_layers": 10**5, "d_model": 2**20, "num_feature_levels": 10**6},
    "d_fine": {"decoder_layers": 10**5, "decoder_ffn_dim": 10**8, "max_num_bins": 10**6},
}
DETECTORS = ("detr", "yolos", "rt_detr", "d_fine")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder of each architecture, saved by the library; made when it is asked for."""
    import transformers

    home = tmp_path_factory.mktemp("saved")

    def save(name):
        kind = (
            transformers.AutoModelForObjectDetection
            if name in DETECTORS
            else transformers.AutoModelForImageClassification
        )
        folder = home / name
        if not folder.exists():
            torch.manual_seed(0)
            config = transformers.AutoConfig.for_model(
                name, **{k: v for k, v in ARCHITECTURES[name].items() if k != "model_type"}
            )
            kind.from_config(config).save_pretrained(folder, max_shard_size="100kB")
        return folder, kind

    return save


def check(folder, kind):
    import transformers

    size = check_file(str(folder))
    config = transformers.AutoConfig.from_pretrained(folder)
    check_config(config, kind, size, f"config.json of '{folder}'")
    return size


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_network_as_it_was_saved_is_accepted(name, folders):
    folder, kind = folders(name)
    size = check(folder, kind)
    saved = kind.from_pretrained(folder).state_dict().values()
    assert 0 < size.numbers <= sum(tensor.numel() for tensor in saved)
    assert size.longest == max(side for tensor in saved for side in tensor.shape)


@pytest.mark.parametrize(("name", "key"), [(name, key) for name in HUGE for key in HUGE[name]])
def test_a_network_that_the_weights_do_not_hold_is_refused(name, key, folders, tmp_path):
    folder, kind = folders(name)
    for path in folder.iterdir():
        (tmp_path / path.name).symlink_to(path)
    content = json.loads((folder / "config.json").read_text())
    (tmp_path / "config.json").unlink()
    (tmp_path / "config.json").write_text(json.dumps({**content, key: HUGE[name][key]}))
    with pytest.raises(UsageError, match="download or save it again") as raised:
        check(tmp_path, kind)
    assert len(str(raised.value).splitlines()) == 1
    assert str(tmp_path) in str(raised.value)


def test_without_weights_a_configuration_asks_for_little(folders, tmp_path):
    folder, _ = folders("vit")
    content = json.loads((folder / "config.json").read_text())
    path = tmp_path / "config.json"
    path.write_text(json.dumps(content))
    assert check_file(str(tmp_path)) is None
    path.write_text(json.dumps({**content, "num_labels": 10**8}))
    with pytest.raises(UsageError, match="num_labels = 100000000, and no weights of it can be"):
        check_file(str(tmp_path))
