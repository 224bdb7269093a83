"""The commands of `golden_runs.py`, one per line, as words after `steadyeye`.

Groups share only the inputs and may run in parallel; in a group the lines run in order, in one
folder. `!python`, `!break` and `!review` are not commands: a script, a half-finished run, a review
with the answers of its reviewers; `!vision` declares torchvision's operators before its command.
"""

# ruff: noqa: E501 - a command is a line

NAMES = {
    "lite": "--model efficientnet_lite0 --model efficientnet_lite1",
    "lite0": "--model efficientnet_lite0",
    "clip": "--data \"video(path='clip.mp4', anchors=8, k=3, labels='clip.json')\"",
    "stills": "--data \"image_folder(root='stills')\"",
    "anchors": "--data \"video(path='clip.mp4', anchors=6, k=0, labels='clip.json')\"",
    "forty": "--data \"video(path='clip.mp4', anchors=40, k=0, labels='clip.json')\"",
    "squares": (
        "--model \"callable_detector(path='golden_inputs:find_squares', "
        "classes='squares/classes.json')\""
    ),
    "boxes": "--data \"coco(annotations='squares/boxes.json', images='squares/images')\"",
    "other": "\"coco(annotations='other/boxes.json', images='other/images')\"",
    "reviewed": "--data \"coco(annotations='exported/annotations.json', images='exported/images')\"",
    "yolos": "--model \"hf(name='yolos')\"",
    "yolox": "--model \"onnx_detector(path='yolox.onnx', decoder='yolox')\"",
    "coco": "--data \"coco(annotations='coco.json', images='coco')\"",
    "davis": "--data \"davis(root='davis', labels='davis/labels.csv', anchors=2, k=2)\"",
    "q": "--quiet",
}
"""Placeholders in the lines."""

GROUPS = {
    "basics": """
        --help
        ls models
        ls sources
        ls metrics
        ls analyses
        ls operators
        ls probes
        ls nonsense
        classmap --from imagenet1k --to vid30
        classmap --from imagenet1k --to classes.txt
        check job.toml
        check {lite0} {clip} --metrics pm_k(k=2)
        check {lite0} {clip} --metrics pmk
        check --model efficientnet_lite9 --data nowhere.mp4
        picture photo.png --levels 0,10,30 --size 96 --out sheet.png
        picture photo.png --operators jpeg,white_fog --model efficientnet_lite0 --out two.png
        picture photo.png --operators jepg
        run --model efficientnet_lite0
        gate nowhere --require accuracy>=1%
        check-plugin operators jpeg
        check-plugin metrics pm_k
        check-plugin models golden_inputs.py:find_squares
    """,
    "classify": """
        run {lite} {clip} --out runs/two --workers 2 {q}
        run {lite} {clip} --out runs/two
        run {lite} {clip} --out runs/one --workers 1 --no-cache --progress none
        run {lite} {clip} --out runs/kept --workers 1 {q}
        run {lite} {clip} --out runs/half --no-cache {q}
        !break runs/half
        run {lite} {clip} --out runs/half --no-cache {q}
        run {lite0} --data "video(path='clip.mp4', anchors=8, k=2, labels='clip.json')" --out runs/two
        run {lite0} {stills} {clip} --out runs/sets --class-list open {q}
        run {lite} --data "every_frame(path='clip.mp4', step=5)" --out runs/free {q}
        score answers.json {stills} --out runs/scored {q}
        report runs/two --format html,md,json,csv
        report runs/two runs/one --out several.html
        measure runs/two {q}
        measure runs/one --workers 2 {q}
        report runs/two --out measured.html --format html,json,csv
        report runs/two --metrics pm_k(k=1),accuracy --out some.md
        compare runs/two --format html,md,json,csv
        compare runs/two runs/one --metrics pm_k(k=2) --out compared.md
        gate runs/sets --require accuracy>=1%
        rows runs/sets --out rows.csv
        card runs/two --out card.md
        leaderboard runs/two runs/free --out leaderboard
        plan runs/free --model efficientnet_lite0 --decide pm_k(k=5)>=30% --premise constant-class
        gate runs/two --require accuracy>=99% --require pm_k(k=3)>=0.1 --junit gate.xml --github
        gate runs/free --require flip_rate<=99% --against runs/free --max-drop 2%
        view runs --html runs.html
        cache ls
        cache prune --model efficientnet_lite1
        cache ls
        run {lite} {clip} --out runs/apart --no-cache --engine local(processes=2) {q}
    """,
    "sweep": """
        degrade {lite} {anchors} --operators jpeg,white_fog,random_noise --levels 0:30:10 --out runs/sweep {q}
        degrade {lite} {anchors} --operators jpeg,white_fog,random_noise --levels 0:30:10 --out runs/same --workers 1 --no-cache {q}
        degrade {lite0} {anchors} --operators jpeg,gaussian_noise --fast --out runs/fast {q}
        degrade {lite0} {anchors} --operators all --levels 8,20 --images all --seed 3 --out runs/all {q}
        degrade {lite0} {clip} --operators posterize --levels 0,25 --out runs/neighbours {q}
        degrade job.toml --out runs/job --progress none
        report runs/sweep --format html,md,json,csv
        report runs/fast --format md,json,csv --out fast
        compare runs/sweep --format html,json,csv
        gate runs/sweep --require accuracy>=1%
    """,
    "detect": """
        run {squares} {boxes} --out runs/squares --workers 2 {q}
        run {squares} {boxes} --out runs/same --workers 1 --no-cache {q}
        !vision run {yolos} {boxes} --out runs/yolos {q}
        run {yolox} {davis} --out runs/davis {q}
        run {yolox} {coco} --out runs/coco {q}
        measure runs/davis {q}
        report runs/davis --format html,md,json,csv
        report runs/coco --format md,json,csv --out stills
        compare runs/squares runs/yolos --format html,json,csv
        gate runs/davis --require map>=1%
        run {squares} --data "every_frame(path='clip.mp4')" --out runs/film {q}
        propose runs/film --out proposed.json --seconds 0.2 --sure 0.1
        score detections.json --data "coco(annotations='val2014.json')" --out runs/val2014 {q}
    """,
    "mine": """
        mine {squares} {boxes} --score 0.5 --out mined {q}
        mine {squares} {boxes} --score 0.3 --rank novelty --causes misclassification,unverified --out novel
        mine {yolox} {coco} --score 0.5 --out coco-mined {q}
        sample --boxes squares/boxes.json --images squares/images --out suggested {q}
        !review mined --reviewer Ann --reviewer Bob --reviewer Cem --reviewer Dan --reviewer Eve
        review-status mined
        review-status mined --format json
        review-export mined --out exported --partial
        run {squares} {reviewed} --out runs/reviewed {q}
    """,
    "explain": """
        explain {squares} {boxes} --reference {other} --analyses "patch_shuffle(repeats=2), background(folder='behind')" --out both {q}
        explain {squares} {boxes} --analyses "attribution(probe='rise', masks=40), attribution(probe='occlusion')" --limit 3 --out hidden {q}
        explain {squares} {boxes} --reference {other} --analyses "blind_spots(embedder='efficientnet_lite0')" --out blind {q}
        !vision explain {yolos} {boxes} --score 0.3 --limit 1 --analyses "attribution(probe='integrated_gradients', steps=32)" --out inside {q}
        explain {squares} {boxes} --analyses shuffle --out wrong
        report both --format html,md,json,csv
    """,
    "tune": """
        finetune {lite0} {forty} --holdout 0.3 --by time --gap 5 --iterations 3 --batch 4 --then "video(path='clip.mp4', anchors=4, k=2, labels='clip.json')" --out tuned {q}
        run --model "torch(path='tuned')" {stills} --out runs/tuned {q}
        !vision finetune {yolos} {coco} --holdout 0.4 --iterations 2 --batch 2 --out detector {q}
        !vision run --model "torch(path='detector')" {coco} --out runs/detector {q}
        finetune {lite0} {forty} --holdout 0.3 --by time --gap 5 --augment jpeg(levels=0:30) --mirror --iterations 2 --batch 2 --out augmented {q}
    """,
    "review": """
        sample clip.mp4 --anchors 6 --k 2 --labels clip.json --out set {q}
        sample clip.mp4 --anchors 2 --k 1 --classes cat,dog --out unlabelled
        run {lite0} --data "reviewed(root='set')" --out runs/unreviewed {q}
        !review set --reviewer Ann --reviewer Bob --reviewer Cem
        review-status set
        review-status set --format json --runs runs/unreviewed
        review-audit set --most 0.5
        review-export set --out exported
        review-export set --out formats --format set,pmsets,label_studio,cvat --partial
        run {lite0} --data "reviewed(root='exported')" --out runs/reviewed {q}
        run {lite0} --data "reviewed(root='set', review=False)" --out runs/before {q}
        report runs/reviewed --format html,json,csv
    """,
    "python": """
        !python script.py
        report api0 api1 --format json,csv
    """,
}

READING = {
    "classify": """
        report runs/two --out read --format html,md,json,csv
        run {lite} {clip} --out runs/two {q}
        !break runs/one
        run {lite} {clip} --out runs/one --workers 1 --no-cache --progress none
        measure runs/half {q}
        compare runs/two runs/free --out read.html
        compare runs/two runs/kept --out read-compared.json
        gate runs/two --require accuracy>=1%
        view runs --html read-runs.html
    """,
    "sweep": """
        report runs/sweep --out read --format html,md,json,csv
        !break runs/sweep
        degrade {lite} {anchors} --operators jpeg,white_fog,random_noise --levels 0:30:10 --out runs/sweep --no-cache {q}
        degrade {lite0} {anchors} --operators jpeg,gaussian_noise --fast --out runs/fast {q}
    """,
    "detect": """
        report runs/squares --out read --format html,md,json,csv
        !break runs/davis
        run {yolox} {davis} --out runs/davis --no-cache {q}
        !vision run {yolos} {boxes} --out runs/yolos {q}
        compare runs/squares runs/yolos --out read.json
    """,
    "mine": """
        mine {squares} {boxes} --score 0.5 --out mined {q}
        !review mined --renew admin
        review-status mined --format json
        review-export mined --out exported-again --partial
        run {squares} {reviewed} --out runs/reviewed {q}
    """,
    "explain": """
        report both --out read --format html,md,json,csv
        explain {squares} {boxes} --reference {other} --analyses "patch_shuffle(repeats=2), background(folder='behind')" --out both {q}
        !vision explain {yolos} {boxes} --score 0.3 --limit 1 --analyses "attribution(probe='integrated_gradients', steps=32)" --out inside {q}
    """,
    "tune": """
        finetune {lite0} {forty} --holdout 0.3 --by time --gap 5 --augment jpeg(levels=0:30) --mirror --iterations 2 --batch 2 --out augmented {q}
        run --model "torch(path='tuned')" {stills} --out runs/tuned {q}
        run --model "torch(path='tuned')" {anchors} --out runs/again {q}
        !vision run --model "torch(path='detector')" {coco} --out runs/detector {q}
    """,
    "review": """
        !review set --renew admin --reviewer Dan
        review-status set --format json
        review-export set --out exported-again
        run {lite0} --data "reviewed(root='exported')" --out runs/reviewed {q}
    """,
    "python": """
        report api0 api1 --out read.json
    """,
}
"""The commands that read the runs of an earlier commit, in their folders."""

SAME = (
    ("classify/runs/one", "classify/runs/two"),
    ("classify/runs/kept", "classify/runs/two"),
    ("classify/runs/apart", "classify/runs/two"),
    ("classify/runs/half", "classify/runs/two"),
    ("sweep/runs/same", "sweep/runs/sweep"),
    ("detect/runs/same", "detect/runs/squares"),
)
"""Pairs of runs with equal sealed predictions: one worker or two, cached, resumed."""
