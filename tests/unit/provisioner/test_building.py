"""What an Engine is sent that builds an image, and what jobs get of what it says."""

from __future__ import annotations

import io
import os
import tarfile
import time
from pathlib import Path

import pytest

from parallelrun_core.computes.kinds.docker import DockerCompute
from parallelrun_core.computes.launch import Launch, Shape, launch_id
from parallelrun_core.names.computes import BuiltImage
from parallelrun_provisioner.engines.docker.building import Builds
from parallelrun_provisioner.engines.docker.building.log import MOST_BYTES, BuildLog
from parallelrun_provisioner.engines.docker.building.sent import parameters, tag_of, tar_of
from parallelrun_provisioner.engines.docker.container import container
from parallelrun_provisioner.engines.docker.settings import DockerSettings
from parallelrun_provisioner.engines.interface import EngineEnvironment, LaunchRefused

IMAGE = BuiltImage("a" * 64, "docker/Dockerfile")
AROUND = EngineEnvironment(cluster="c1", root=Path("/nowhere"), redis_url="redis://x")


def docker(**fields: object) -> DockerCompute:
    return DockerCompute.model_validate({"type": "docker", "name": "pool", **fields})


def test_an_image_is_called_by_what_it_is_built_of_and_for() -> None:
    others = [BuiltImage("b" * 64, IMAGE.dockerfile), BuiltImage(IMAGE.context, "Dockerfile")]
    tags = {
        tag_of(IMAGE, "linux/amd64"),
        tag_of(IMAGE, "linux/arm64"),
        *(tag_of(each, "linux/amd64") for each in others),
    }
    assert len(tags) == 4
    assert tag_of(IMAGE, "linux/amd64") == tag_of(BuiltImage(*IMAGE), "linux/amd64")


def test_a_step_of_a_build_may_use_what_a_node_may() -> None:
    limited = parameters(IMAGE, "tag", "c1", docker(cpus=1.5, memory_bytes=1 << 30), DockerSettings())
    assert limited["cpuquota"] == 1.5 * limited["cpuperiod"]
    assert limited["memory"] == limited["memswap"] == 1 << 30
    assert IMAGE.name in limited["labels"]
    free = parameters(IMAGE, "tag", "c1", docker(), DockerSettings())
    assert not {"memory", "cpuquota", "networkmode", "cgroupparent"} & free.keys()


def test_an_operator_says_where_the_steps_of_a_build_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARALLELRUN_DOCKER_BUILD_NETWORK", "builds")
    monkeypatch.setenv("PARALLELRUN_DOCKER_BUILD_CGROUP", "builds.slice")
    sent = parameters(IMAGE, "tag", "c1", docker(), DockerSettings.from_environment())
    assert (sent["networkmode"], sent["cgroupparent"]) == ("builds", "builds.slice")


def test_the_same_files_are_the_same_tar_whenever_and_by_whomever_they_were_written(tmp_path: Path) -> None:
    long = "d" * 90
    made = []
    for name in ("one", "two"):
        folder = tmp_path / name
        (folder / long).mkdir(parents=True)
        for file in ("b", "a", f"{long}/{long}.txt"):
            (folder / file).write_text(file * 300)
        (folder / "a").chmod(0o500 if name == "one" else 0o755)
        made.append(b"".join(tar_of(folder)))
    assert made[0] == made[1]
    with tarfile.open(fileobj=io.BytesIO(made[0])) as archive:
        entries = {entry.name: (entry.mode, entry.mtime, entry.uid) for entry in archive}
        read = archive.extractfile(f"{long}/{long}.txt")
        assert read is not None
        assert read.read().decode() == f"{long}/{long}.txt" * 300
    assert entries == {"a": (0o755, 0, 0), "b": (0o644, 0, 0), f"{long}/{long}.txt": (0o644, 0, 0)}


def test_what_lacks_a_part_is_not_sent_as_if_it_were_whole(tmp_path: Path) -> None:
    (tmp_path / "shorter").symlink_to("/sys/class/net/lo/mtu")  # says that it has 4096 bytes, and has fewer
    with pytest.raises(OSError, match="has become shorter"):
        b"".join(tar_of(tmp_path))
    with pytest.raises(FileNotFoundError):  # what the walk meets in a folder is no folder without files
        b"".join(tar_of(tmp_path / "away"))


def has(file: Path, text: str) -> bool:
    """Whether a log comes to have this, which a thread of its own begins."""
    deadline = time.monotonic() + 20
    while not (file.exists() and file.read_text() == text):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)  # a file gives no sign
    return True


def test_each_job_that_waits_has_all_of_the_log_and_no_link_is_followed(tmp_path: Path) -> None:
    for job in ("one", "two", "link", "folder"):
        (tmp_path / job / "logs" / "sys").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link" / "logs" / "sys" / "image.txt").symlink_to(tmp_path / "elsewhere" / "new")
    (tmp_path / "folder" / "logs" / "sys").rmdir()
    (tmp_path / "folder" / "logs" / "sys").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "two" / "logs" / "sys").rmdir()
    (tmp_path / "two" / "logs").rmdir()
    files = [tmp_path / job / "logs" / "sys" / "image.txt" for job in ("one", "two", "link", "folder", "gone")]
    log = BuildLog()
    log.also_to(files[:1])
    log.write("Step 1\n")
    log.also_to([*files[2:], *files[:2]])
    log.write("Step 2\n")
    log.also_to(files)
    assert has(files[0], "Step 1\nStep 2\n")
    assert has(files[1], "Step 1\nStep 2\n")
    log.write("Step 3\n")
    assert not list((tmp_path / "elsewhere").iterdir())
    assert not (tmp_path / "gone").exists(), "the folder of a job that was removed"


def test_a_pipe_in_the_place_of_a_log_holds_up_nobody(tmp_path: Path) -> None:
    files = [tmp_path / job / "logs" / "sys" / "image.txt" for job in ("silent", "read", "good")]
    for file in files:
        file.parent.mkdir(parents=True)
    for file in files[:2]:
        os.mkfifo(file)
    reader = os.open(files[1], os.O_RDONLY | os.O_NONBLOCK)
    try:
        log = BuildLog()
        log.also_to(files)
        log.write("Step 1\n")
        assert has(files[2], "Step 1\n")
        log.write("Step 2\n")
        assert has(files[2], "Step 1\nStep 2\n")
        assert os.read(reader, 100) == b"", "it is no log"
    finally:
        os.close(reader)


def test_an_endless_log_is_cut_off(tmp_path: Path) -> None:
    log, file = BuildLog(), tmp_path / "job" / "logs" / "sys" / "image.txt"
    file.parent.parent.mkdir(parents=True)
    log.also_to([file])
    for _ in range(6):
        log.write("x" * (MOST_BYTES // 4))
    whole = "x" * (MOST_BYTES // 4) * 4 + "\n… cut off here\n"
    assert has(file, whole)


@pytest.mark.parametrize(
    "settings, what_to_do",
    [
        (DockerSettings(kit="kit"), "PARALLELRUN_DOCKER_BUILDS=true"),
        (DockerSettings(builds=True), "PARALLELRUN_DOCKER_KIT"),
    ],
)
def test_nothing_is_built_unless_the_operator_says_so(settings: DockerSettings, what_to_do: str) -> None:
    builds = Builds(docker(), settings, AROUND)
    no_engine = object()
    state = builds.go_on(no_engine, {IMAGE.name: ["job"]})[IMAGE.name]
    assert not state.is_there
    assert what_to_do in state.failure


def test_an_image_that_is_not_built_is_not_looked_for_in_registries() -> None:
    launch = Launch(id=launch_id("pool", "0123456789ab"), compute="pool", shape=Shape(image=IMAGE.name))
    settings = DockerSettings(kit="kit", builds=True, images="**")
    with pytest.raises(LaunchRefused, match="not built"):
        container(docker(), settings, "c1", launch)
    assert container(docker(), settings, "c1", launch, "parallelrun-built:1")["Image"] == "parallelrun-built:1"
