"""The labeling configs of Label Studio: what is shown and asked in each stage.

The tags are those of https://labelstud.io/tags.
"""

from collections.abc import Sequence
from xml.sax.saxutils import quoteattr

from steadyeye.review.interchange.asked import FORMS
from steadyeye.review.protocol.stages import DRAWN, REASONS, STAGES, list_labels

MANY = ("labels", "reasons")
"""Questions of which several choices may hold."""


def labeling(stage: str, classes: Sequence[str]) -> str:
    """The config of a project for one stage, XML."""
    lines = ["<View>", f"  <Header value={quoteattr(STAGES[stage].question)}/>"]
    if stage not in DRAWN:
        lines.append('  <Text name="shown" value="$labels"/>')
    if stage in ("pairs", "joint"):
        lines.append('  <Image name="anchor" value="$anchor" zoom="true"/>')
    lines.append('  <Image name="image" value="$image" zoom="true"/>')
    if stage in ("classification", *DRAWN):
        lines += [
            '  <RectangleLabels name="boxes" toName="image" canRotate="false">',
            *(f"    <Label value={quoteattr(name)}/>" for name in list_labels(stage, classes)),
            "  </RectangleLabels>",
        ]
    for name, choices in FORMS[stage].items():
        lines += _choices(name, choices, 'choice="single" required="true" showInline="true"')
    if stage == "anchors" and classes:
        lines += _choices("labels", classes, 'choice="multiple" layout="select"')
    if stage in ("pairs", "joint"):
        lines += _choices("reasons", REASONS, 'choice="multiple" showInline="true"')
    lines += ['  <TextArea name="comment" toName="image" rows="1" maxSubmissions="1"/>', "</View>"]
    return "\n".join(lines) + "\n"


def _choices(name: str, choices: Sequence[str], how: str) -> list[str]:
    return [
        f'  <Header value={quoteattr(name.replace("_", " "))} size="5"/>',
        f'  <Choices name="{name}" toName="image" {how}>',
        *(f"    <Choice value={quoteattr(choice)}/>" for choice in choices),
        "  </Choices>",
    ]
