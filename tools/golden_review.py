"""Reviews a set over HTTP as its reviewers' browsers do; see `golden_runs.py`."""

import hashlib
import json
import os
import re
import signal
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

from golden_process import begin, wait

PATIENCE = 600
"""Seconds in which a server must start."""
STAGES = ("anchors", "pairs", "joint", "classification", "boxes", "box_check")
PAGES = ("index.json", "dashboard.json", "", "dashboard")
"""The pages of the site that are stored, for the admin at the end."""
SECRETS = re.compile(r"\b[0-9a-f]{64}(?!\.jpg)\b|\b[0-9a-f]{32}\b")


def review_set(folder: Path, words: Sequence[str], environment: Mapping[str, str]) -> bytes:
    """Serves `words[1]` with the options after it, and answers all items of the reviewers.

    Returns the output of the server, then the JSON and the pages of the admin.
    """
    port = find_port()
    log = folder / "server.log"
    log.touch()
    command = ["-m", "steadyeye", "review", *words[1:], "--port", str(port)]
    server = begin(folder, command, environment, (log, folder / "errors.log"))
    try:
        links = wait_for_links(log)
        reviewers = [Reviewer(name, link) for name, link in links.items() if name != "admin"]
        # twice, because answers of one open stages for earlier ones
        for reviewer in (*reviewers, *reviewers):
            reviewer.answer_all()
        pages = [Reviewer("admin", links["admin"]).read(page) for page in PAGES]
    finally:
        os.kill(server, signal.SIGINT)
        code = wait(server)
    printed = f"{log.read_text()}--\n{(folder / 'errors.log').read_text()}exit {code}"
    log.unlink()
    (folder / "errors.log").unlink()
    return "\n".join([printed, *(SECRETS.sub("SECRET", page) for page in pages)]).encode()


def find_port() -> int:
    """A free port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_links(log: Path) -> dict[str, str]:
    """The private link of each reviewer, once the server answers."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        pairs = re.findall(r"^\s*(\S+?):?\s+(http://\S+/r#\S+)", log.read_text(), re.MULTILINE)
        if pairs:
            try:
                Reviewer(*pairs[0])
            except urllib.error.URLError:
                pass
            else:
                return dict(pairs)
        time.sleep(0.1)
    raise TimeoutError(f"no link: {log.read_text()}")


class Reviewer:
    """A browser that has opened a private link."""

    def __init__(self, name: str, link: str) -> None:
        """Signs in, which leaves a cookie and the word for changes."""
        self.name = name
        self.site, _, self.token = link.rpartition("/r#")
        self.browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        self.count = 0
        self.word = ""
        self.word = self.send("sign-in", {"token": self.token})["csrf"]

    def read(self, page: str) -> str:
        """The text of a page."""
        with self.browser.open(f"{self.site}/{page}", timeout=60) as answer:
            return str(answer.read().decode())

    def answer_all(self) -> None:
        """Answers every stage until no item is left; withdraws the second decision once."""
        for stage in STAGES:
            while waiting := self.ask(stage):
                decided = self.decide(stage, waiting[0])
                if self.count == 2:
                    self.send(f"decisions/{decided['decision']}/undo", {"key": self.make_key()})

    def ask(self, stage: str) -> list[Any]:
        """The next items of a stage; none if the review does not have it."""
        try:
            return list(json.loads(self.read(f"stages/{stage}.json"))["next"])
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return []
            raise

    def decide(self, stage: str, item: Mapping[str, Any]) -> Any:
        """Sends an answer, which depends on the item and the reviewer alone."""
        sent = {
            "assignment": item["assignment"],
            "nonce": item["nonce"],
            "key": self.make_key(),
            "answer": choose(stage, item["payload"], self.name),
            "seconds": 1.0,
        }
        return self.send("decisions", sent)

    def make_key(self) -> str:
        """The key of the next request."""
        self.count += 1
        return f"{self.token[:8]}-{self.count:08d}"

    def send(self, path: str, content: Mapping[str, Any]) -> Any:
        """The server's reply to a change."""
        request = urllib.request.Request(  # noqa: S310
            f"{self.site}/{path}",
            json.dumps(content).encode(),
            {"content-type": "application/json", "x-csrf-token": self.word},
        )
        try:
            with self.browser.open(request, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            error.add_note(f"{path} of {content}: {error.read().decode()}")
            raise


def choose(stage: str, payload: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An answer: mostly yes; a fifth of the items is doubted."""
    question = {key: payload.get(key) for key in ("image", "box", "offset", "labels", "label")}
    text = json.dumps([stage, name, question], sort_keys=True)
    doubts = int(hashlib.sha256(text.encode()).hexdigest(), 16) % 5 == 0
    if stage == "anchors":
        labels = payload.get("labels") or ["car"]
        return {"quality": "bad" if doubts and name == "Bob" else "good", "labels": labels}
    if stage in ("pairs", "joint"):
        if doubts:
            return {"correct": "yes", "similar": "no", "reasons": ["blur"]}
        return {"correct": "yes", "similar": "yes"}
    if stage == "classification":
        flaws = {"blurry": doubts, "occluded": False, "depiction": False}
        return {"object": "weather vane", "well_sized": True, **flaws}
    return {"boxes": [{key: box[key] for key in ("box", "label")} for box in payload["boxes"]]}
