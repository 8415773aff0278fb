"""Whether this machine can run EStream: Java, Python, Spark, memory, folders, libraries, and what to do about each."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal, TypeAlias

from packaging.requirements import Requirement

Status: TypeAlias = Literal["ok", "warn", "fail"]

JAVA = 17
"""The oldest Java that Spark 4.3 runs on."""
GIGABYTE = 1 << 30
ENOUGH_MEMORY = 4 * GIGABYTE
_MEMORY_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: how it is, and what to do if it is not well."""

    name: str
    status: Status
    found: str
    advice: str | None = None


def examine(folders: Mapping[str, Path], environment: Mapping[str, str]) -> tuple[Finding, ...]:
    """Every finding about this machine; `folders` are those EStream writes to, by their setting."""
    return (
        python(sys.version_info[:3]),
        java(environment),
        spark(environment),
        memory(available_memory()),
        cores(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1),
        *(folder(setting, path) for setting, path in folders.items()),
        *libraries(metadata.requires("estream") or ()),
        time_zones(),
    )


def python(version: tuple[int, ...]) -> Finding:
    """Python itself."""
    found = ".".join(map(str, version))
    if version >= (3, 11):
        return Finding("python", "ok", f"{found} ({sys.executable})")
    return Finding("python", "fail", found, "install Python 3.11 or newer and make the virtual environment anew")


def java(environment: Mapping[str, str]) -> Finding:
    """The Java that Spark will start: that of JAVA_HOME, else the first one on the path."""
    home = environment.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else "java"
    origin = f"JAVA_HOME={home}" if home else "from PATH; JAVA_HOME is not set"
    advice = "install Java 17 or newer (Debian: apt-get install openjdk-17-jre-headless), or set JAVA_HOME"
    try:
        answer = subprocess.run(
            [program, "-version"], check=False, capture_output=True, text=True, timeout=20, env=dict(environment)
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("java", "fail", f"{program} does not run: {error} ({origin})", advice)
    version = re.search(r'version "((?:1\.)?(\d+)[^"]*)"', answer.stderr + answer.stdout)
    if answer.returncode or version is None:
        return Finding("java", "fail", f"{program} -version gives no version ({origin})", advice)
    if int(version[2]) < JAVA:
        return Finding("java", "fail", f"{version[1]} ({origin})", advice)
    return Finding("java", "ok", f"{version[1]} ({origin})")


def spark(environment: Mapping[str, str]) -> Finding:
    """PySpark, and whether another Spark would be started in its place."""
    try:
        version = metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        return Finding("spark", "fail", "not installed", "pip install 'pyspark~=4.3.0'")
    if home := environment.get("SPARK_HOME"):
        return Finding("spark", "warn", f"{version}; SPARK_HOME={home}", "unset it, or make sure that it is Spark 4.3")
    return Finding("spark", "ok", version)


def memory(size: int | None) -> Finding:
    """Memory this process may use."""
    if size is None:
        return Finding("memory", "warn", "unknown", "make sure that there are at least 4 GB")
    found = f"{size / GIGABYTE:.1f} GB"
    if size < ENOUGH_MEMORY:
        return Finding("memory", "warn", found, "Spark and its Python workers want 4 GB or more")
    return Finding("memory", "ok", found)


def cores(count: int) -> Finding:
    """Processor cores this process may use."""
    if count < 2:
        return Finding("cores", "warn", str(count), "Spark's threads and Python workers share one core: give it two")
    return Finding("cores", "ok", str(count))


def folder(setting: str, path: Path) -> Finding:
    """Whether EStream can write to a folder, or make it."""
    name = f"folder {setting}"
    if path.exists() and not path.is_dir():
        return Finding(name, "fail", f"{path} is not a folder", f"remove the file, or set {setting} to another place")
    there = next(place for place in (path, *path.absolute().parents) if place.exists())
    if os.access(there, os.W_OK | os.X_OK):
        return Finding(name, "ok", f"{path}" if there == path else f"{path} (will be made)")
    return Finding(name, "fail", f"{there} is not writable", f"chown or chmod it, or set {setting} to another place")


def libraries(requirements: Iterable[str]) -> tuple[Finding, ...]:
    """Each library EStream was installed with, against the versions it works with."""
    wanted = (Requirement(text) for text in requirements)
    return tuple(_library(each) for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""}))


def time_zones() -> Finding:
    """Time zone data, which `cron` events with a time zone need."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

    try:
        ZoneInfo("Europe/Zurich")
    except ZoneInfoNotFoundError:
        return Finding("time zones", "fail", "no data", "pip install tzdata")
    return Finding("time zones", "ok", f"{len(available_timezones())} zones")


def available_memory() -> int | None:
    """Bytes of memory of this machine, or of this container if it has less; None if the system does not say."""
    try:
        sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (ValueError, OSError):
        return None
    for limit in _MEMORY_LIMITS:
        if limit.is_file() and (text := limit.read_text().strip()).isdigit():
            sizes.append(int(text))
    return min(sizes)


def _library(wanted: Requirement) -> Finding:
    name = f"library {wanted.name}"
    advice = f"pip install '{wanted}'"
    try:
        version = metadata.version(wanted.name)
    except metadata.PackageNotFoundError:
        return Finding(name, "fail", "not installed", advice)
    if version not in wanted.specifier:
        return Finding(name, "warn", f"{version}; EStream is made for {wanted.specifier}", advice)
    return Finding(name, "ok", version)
