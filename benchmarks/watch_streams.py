"""A watch of an interrupted live stream: memory, frames, and the delay of an alert.

    python benchmarks/watch_streams.py rtsp VIDEO MODEL --minutes 120 --cuts 5 [--block 30]
    python benchmarks/watch_streams.py rtsp VIDEO MODEL --size 1920x1080 --fps 0

`rtsp`: a server of GStreamer (Debian's gir1.2-gst-rtsp-server-1.0, gstreamer1.0-plugins-good and
-bad, python3-gi); `hls`: segments of ffmpeg behind Python's file server. The video is encoded once
at `--size` and `--rate` frames per second, each of its frames once, and served without encoding it
again. `--fps` is that of the watch; 0: as many as the model can process. The stream is interrupted
by killing its server for 5 seconds, at equal distances in the first half. After that it is
interrupted once more and returns with black frames for 0.3 of every 0.6 seconds: the alert's delay
counts from the start of that server. Prints, every minute, the watch's resident memory and
processor time and the load of the machine; at the end the watch's own counts, and the frames that
it predicted per second of stream, and per second of processor time.
"""

import argparse
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

RTSP = """
import sys, gi
gi.require_version("Gst", "1.0"); gi.require_version("GstRtspServer", "1.0")
from gi.repository import Gst, GstRtspServer, GLib
Gst.init(None)
server = GstRtspServer.RTSPServer(service=sys.argv[2], address="127.0.0.1")
factory = GstRtspServer.RTSPMediaFactory()
factory.set_launch(
    f"( filesrc location={sys.argv[1]} ! qtdemux ! h264parse ! rtph264pay name=pay0 pt=96 )"
)
factory.set_shared(True)
server.get_mount_points().add_factory("/live", factory)
server.attach(None)
GLib.MainLoop().run()
"""
BLACK = "drawbox=color=black:t=fill:enable='lt(mod(t,0.6),0.3)'"
PAUSE = 5  # seconds without a server


def find_port() -> int:
    """A free port of this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def write_video(
    video: Path, file: Path, size: str, rate: int, seconds: int | None, change: str = "null"
) -> None:
    """A video at another size and rate, each of its frames once; again and again for `seconds`."""
    short = file if seconds is None else file.with_name(f"short-{file.name}")
    make = ["ffmpeg", "-v", "error", "-y"]
    filters = f"setpts=N/({rate}*TB),fps={rate},scale={size.replace('x', ':')},{change}"
    coding = ["-an", "-c:v", "libx264", "-preset", "ultrafast", "-g", str(rate), "-bf", "0"]
    coding += ["-pix_fmt", "yuv420p", str(short)]
    subprocess.run([*make, "-i", str(video), "-vf", filters, *coding], check=True)
    if seconds is not None:
        loop = ["-stream_loop", "-1", "-i", str(short), "-t", str(seconds), "-c", "copy"]
        subprocess.run([*make, *loop, str(file)], check=True)
        short.unlink()


def write_videos(options: argparse.Namespace, folder: Path, seconds: int) -> tuple[Path, Path]:
    """The stream as it is and with black frames, as long as the whole run."""
    good, black = folder / "good.mp4", folder / "black.mp4"
    write_video(options.video, good, options.size, options.rate, seconds)
    write_video(options.video, black, options.size, options.rate, seconds, BLACK)
    return good, black


def serve(kind: str, video: Path, folder: Path, port: int) -> list[subprocess.Popen[bytes]]:
    """The processes of a server of a video."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    if kind == "rtsp":
        return [subprocess.Popen(["/usr/bin/python3", "-c", RTSP, str(video), str(port)], **quiet)]
    for old in folder.glob("live*"):
        old.unlink()
    write = ["ffmpeg", "-v", "error", "-re", "-i", str(video), "-c", "copy", "-f", "hls"]
    settings = ["-hls_time", "2", "-hls_list_size", "5", "-hls_flags", "delete_segments"]
    files = ["-m", "http.server", str(port), "--bind", "127.0.0.1", "-d", str(folder)]
    return [
        subprocess.Popen([*write, *settings, str(folder / "live.m3u8")], **quiet),
        subprocess.Popen([sys.executable, *files], **quiet),
    ]


def end(processes: list[subprocess.Popen[bytes]]) -> None:
    """Kill the processes of a server."""
    for process in processes:
        process.kill()
        process.wait()


def resident(pid: int) -> float:
    """Resident memory of a process in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def processor_time(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


def print_rates(text: str, seconds: float, used: float) -> None:
    """Print the frames that the model took, of the watch's own counts, for each second."""
    counts = dict(re.findall(r"^(steadyeye_\S+) (\S+)", text, re.M))
    frames = float(counts['steadyeye_frames_total{state="processed"}'])
    down = float(counts["steadyeye_down_seconds_total"])
    print(f"{frames / (seconds - down):.1f} frames to the model for each second with a stream")
    print(f"{frames / used:.1f} for each second of a processor, {used:.0f} s in all")


def watch(options: argparse.Namespace, folder: Path) -> None:
    """Serve, watch, cut, and print what became of it."""
    seconds = round(options.minutes * 60)
    good, black = write_videos(options, folder, seconds + 60)
    port, metrics = find_port(), find_port()
    live = folder / "served"
    live.mkdir()
    address = {"rtsp": f"rtsp://127.0.0.1:{port}/live", "hls": f"http://127.0.0.1:{port}/live.m3u8"}
    server = serve(options.kind, good, live, port)
    time.sleep(8)
    command = [sys.executable, "-m", "steadyeye", "watch", address[options.kind]]
    command += ["--model", options.model, "--block", str(options.block), "--no-page"]
    command += ["--fps", str(options.fps)] if options.fps else []
    command += ["--metrics-port", str(metrics), "--alert", options.promise]
    process = subprocess.Popen(
        [*command, "--out", str(folder / "watch")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    begin, changed = time.monotonic(), [float("inf")]

    def tell() -> None:
        for line in process.stdout or ():
            now = time.monotonic()
            print(f"{now - begin:6.0f} s  {line.rstrip()}", flush=True)
            if "broken:" in line:
                print(f"alert {now - changed[0]:.0f} s after the change", flush=True)

    threading.Thread(target=tell, daemon=True).start()
    half = seconds / 2
    cuts = [half * (i + 1) / (options.cuts + 1) for i in range(options.cuts)] + [half]
    sample = 60.0
    try:
        while (now := time.monotonic() - begin) < seconds and process.poll() is None:
            if cuts and now >= cuts[0]:
                cuts.pop(0)
                end(server)
                time.sleep(PAUSE)
                server = serve(options.kind, good if cuts else black, live, port)
                changed[0] = changed[0] if cuts else time.monotonic()
                print(f"{now:6.0f} s  cut{'' if cuts else ', black frames from now'}", flush=True)
            if now >= sample:
                sample += 60
                used, load = processor_time(process.pid), os.getloadavg()[0]
                print(f"{now:6.0f} s  {resident(process.pid):.0f} MB", end=", ")
                print(f"{used:.0f} s of a processor, load {load:.1f}", flush=True)
            time.sleep(0.5)
        print(f"memory at the end: {resident(process.pid):.0f} MB")
        with urllib.request.urlopen(f"http://127.0.0.1:{metrics}/metrics", timeout=20) as answer:
            text = answer.read().decode()
        counts = r"^steadyeye_(?:frames|streams|down|stored|evidence).*"
        print("\n".join(re.findall(counts, text, re.M)))
        print_rates(text, time.monotonic() - begin, processor_time(process.pid))
    finally:
        process.send_signal(signal.SIGTERM)
        print("exit code", process.wait())
        end(server)


def main() -> None:
    """Read the arguments and watch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("rtsp", "hls"))
    parser.add_argument("video")
    parser.add_argument("model")
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--cuts", type=int, default=5)
    parser.add_argument("--size", default="640x360")
    parser.add_argument("--rate", type=int, default=24)
    parser.add_argument("--fps", type=float, default=6)
    parser.add_argument("--block", type=float, default=30)
    parser.add_argument("--promise", default="flip_rate <= 5%")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        watch(options, Path(folder))


if __name__ == "__main__":
    main()
